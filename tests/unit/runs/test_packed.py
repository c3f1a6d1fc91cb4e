"""The events of a long run in memory: a list like any other, of which only the end is kept as objects."""

import pytest

from tests.twins import AT
from toolcrib.contracts import ProgressMade, RunEvent
from toolcrib.core.runs.journal.log import KEPT, PACK, PackedEntries

pytestmark = pytest.mark.requirement("workflow_running.memory")


def entry(number: int) -> RunEvent:
    return RunEvent("run_1", number, AT, "acme", "ann", ProgressMade(key=f"k{number}", kind="told", data={"n": number}))


@pytest.mark.parametrize("count", [0, 1, KEPT + PACK - 1, KEPT + PACK, KEPT + 3 * PACK + 7])
def test_events_come_back_as_they_were_added_however_many_there_are(count: int):
    entries = [entry(number) for number in range(1, count + 1)]
    packed = PackedEntries(entries[: count // 2])
    for each in entries[count // 2 :]:
        packed.append(each)

    assert len(packed) == count
    assert list(packed) == entries
    assert (
        [packed[0], packed[-1], packed[count // 3]] == [entries[0], entries[-1], entries[count // 3]] if count else True
    )
    assert packed[5:900:7] == entries[5:900:7]
    for place in (count, -count - 1):
        with pytest.raises(IndexError):
            packed[place]
