"""One conversation, many processes: all at once, and killed at every event of a turn."""

from itertools import count
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from tests.chaos.crashing import CrashPoint
from tests.chaos.processes import KILLED, Child
from tests.chaos.talkers import chatter, insist, remembered, speak

pytestmark = [pytest.mark.chaos, pytest.mark.slow]


@pytest.mark.requirement("conversations.one_turn")
async def test_twenty_messages_from_two_processes_become_twenty_turns_that_know_all_before_them(tmp_path: Path):
    conversation_id = await Child(tmp_path / "first", speak, tmp_path, "begin").result()
    talkers = [Child(tmp_path / name, chatter, tmp_path, name, conversation_id, 10) for name in ("a", "b")]
    runs: dict[str, str] = {}
    for talker in talkers:
        runs |= await talker.result()
    told: Any = await Child(tmp_path / "told", remembered, tmp_path, conversation_id).result()

    said = [message for message, _, _ in told["turns"]]
    assert told["counted"] == [21, 21]
    assert said[0] == "begin"
    assert sorted(said[1:]) == sorted(runs)
    assert {message: run_id for message, run_id, _ in told["turns"][1:]} == runs
    for place, (_, _, known) in enumerate(told["turns"], start=1):
        assert known == said[:place]


@pytest.mark.requirement("conversations.healing", "conversations.resumed")
async def test_a_turn_killed_before_any_event_is_carried_on_or_given_to_the_next_message(tmp_path: Path):
    begun = tmp_path / "begun"
    begun.mkdir()
    conversation_id = await Child(tmp_path / "first", speak, begun, "one").result()
    outcomes: set[int] = set()
    ended = KILLED
    for event in count(1):
        if ended != KILLED:
            break
        folder = tmp_path / str(event)
        copytree(begun, folder)
        ended = await Child(
            folder / "second", speak, folder, "two", conversation_id, CrashPoint("before", event)
        ).ended()
        told: Any = await Child(folder / "third", insist, folder, "three", conversation_id).result()

        said = [message for message, _, _ in told["turns"]]
        assert said in (["one", "two", "three"], ["one", "three"])
        assert told["turns"][-1][2] == said
        assert told["counted"] == [len(said), len(said)]
        outcomes.add(len(said))

    assert outcomes == {2, 3}
