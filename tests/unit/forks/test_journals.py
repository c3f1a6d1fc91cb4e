"""What is read of journals that a run of today would not write: of older releases, of crashes, of dry runs."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from tests.unit.forks.test_edges import ENVELOPE
from tests.unit.store.samples import FIRST, NOON, REQUEST, new_run
from toolcrib.contracts import CallFinished, ChildStarted, Event, JsonObject, ModelFinished, NotFound, Run, RunEvent
from toolcrib.contracts.runs.forks import Fork
from toolcrib.contracts.runs.recordings import Recorded
from toolcrib.core.runs import holds
from toolcrib.core.runs.forks.fork import read_recorded

pytestmark = pytest.mark.requirement("forks.known")

ANSWER = ModelFinished(position="t1.llm", purpose="answer", model="scripted:m", response={"parts": []})


class Journals:
    """Runs by id, with the events after their first."""

    def __init__(self, **runs: Sequence[Event]) -> None:
        self._runs: Mapping[str, Sequence[Event]] = runs

    async def run(self, run_id: str) -> Run:
        return new_run(run_id)

    async def events(self, run_id: str) -> Sequence[RunEvent]:
        if run_id not in self._runs:
            return ()
        return [
            RunEvent(run_id=run_id, number=number, at=NOON, realm="default", made_by="owner", event=event)
            for number, event in enumerate((FIRST, *self._runs[run_id]), start=1)
        ]

    async def get_revision(self, realm: str, content_hash: str) -> Any:
        raise NotFound(f"{content_hash} of {realm}")


async def read(journals: Journals, at: int, **request: Any) -> Recorded:
    """What a fork of `r1` takes from it."""
    asked = REQUEST.model_copy(update=request)
    return await read_recorded(asked, Fork(run_id="r1", at=at), "r2", past=cast("Any", journals), tools=journals)


def ended(position: str, metadata: JsonObject | None = None, **fields: Any) -> CallFinished:
    """The end of a call."""
    values = {"position": position, "metadata": metadata or {}, **fields}
    return CallFinished(position=position, envelope=ENVELOPE.model_copy(update=values))


async def test_an_answer_of_which_nobody_knows_what_was_asked_is_known_before_the_cut_and_not_taken_after_it():
    assert [event.type for event in (await read(Journals(r1=[ANSWER]), at=2)).known] == ["model_finished"]
    assert (await read(Journals(r1=[ANSWER]), at=1)).answers == ()


async def test_what_a_dry_run_has_skipped_is_no_outcome_of_a_call():
    found = await read(Journals(r1=[ended("a", status="skipped"), ended("b")]), at=1)

    assert [call.envelope.position for call in found.calls] == ["b"]


async def test_a_nested_run_that_was_announced_and_never_made_is_none():
    child = ChildStarted(position="a", child_run_id="gone", tool="inner@1.0.0")

    assert (await read(Journals(r1=[child]), at=2)).nested == {}


@pytest.mark.requirement("forks.taken")
async def test_a_call_is_not_taken_in_whose_nested_runs_something_was_called_that_is_another_now():
    deep = Journals(
        r1=[ended("a", {"run_id": "n1"}), ended("b", {"run_id": "n3"})],
        n1=[ChildStarted(position="x", child_run_id="n2", tool="inner@1.0.0")],
        n2=[ended("y")],
        n3=[],
    )

    found = await read(deep, at=1, replaced={"sha256:1": "sha256:2"})

    assert [call.envelope.position for call in found.calls] == ["b"]


def test_recorded_arguments_hold_those_that_are_asked_also_in_lists():
    assert holds([{"a": 1, "b": 2}, 3], [{"a": 1}, 3])
    assert not holds([{"a": 1}], [{"a": 1}, 2])
    assert not holds([{"a": 1}], [{"a": 2}])
