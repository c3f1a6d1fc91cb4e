"""A run that waits for a person or a client goes on in another process, whatever runs it and however deep it is."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.desk import MODES, Mode, Name, decide, hand_back, resume, start
from tests.chaos.journals import check_log, journals
from tests.chaos.ledger import Ledger
from tests.chaos.processes import Child
from toolcrib.contracts import (
    ApprovalRequested,
    CallFinished,
    ClientHandoff,
    Reason,
    RunEvent,
    RunResumed,
    ToolEnvelope,
)

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.requirement("chaos.restart")]
every_mode = pytest.mark.parametrize("mode", MODES)


class Office:
    """A folder, in which every step is done by a process of its own."""

    def __init__(self, folder: Path, mode: Mode, name: Name) -> None:
        self.folder = folder
        self.mode: Mode = mode
        self.name: Name = name

    async def begin(self) -> ApprovalRequested | ClientHandoff:
        """Start, and what the innermost run waits for."""
        summary = await Child(self.folder / "start", start, self.folder, self.mode, self.name).result()
        assert summary["status"] == ("awaiting_approval" if self.name == "sign" else "awaiting_client")
        logs = await journals(self.folder)
        assert len(logs) == (2 if self.mode == "nested" else 1)
        (wait,) = [entry.event for entry in logs[-1] if isinstance(entry.event, ApprovalRequested | ClientHandoff)]
        assert not self.effects
        return wait

    async def decide(self, *, approve: bool, edited: dict[str, Any] | None = None, refused: str | None = None) -> None:
        runs = await self.runs()
        told = await Child(self.folder / "decision", decide, self.folder, runs[0], approve, edited).result()
        assert told is True if refused is None else refused in told

    async def hand_back(self, position: str, *, works: bool) -> None:
        runs = await self.runs()
        child = Child(self.folder / "result", hand_back, self.folder, runs[0], position, works)
        assert await child.result() is True

    async def go_on(self) -> tuple[dict[str, Any], ToolEnvelope]:
        """How the outermost run ended, and the envelope of the call that had waited."""
        child = Child(self.folder / "end", resume, self.folder, self.name, await self.runs())
        *_, summary = await child.result()
        logs = await journals(self.folder)
        for events in logs:
            check_log(events)
        assert causes(logs[-1]) == ["approval" if self.name == "sign" else "client"]
        (envelope,) = [entry.event.envelope for entry in logs[-1] if isinstance(entry.event, CallFinished)]
        return summary, envelope

    async def runs(self) -> list[str]:
        """Ids, the innermost run first."""
        return [events[0].run_id for events in reversed(await journals(self.folder))]

    @property
    def effects(self) -> Counter[str]:
        return Counter(effect for effect, _ in Ledger(self.folder).counts().elements())


def causes(events: Sequence[RunEvent]) -> list[str]:
    return [entry.event.cause for entry in events if isinstance(entry.event, RunResumed)]


@every_mode
async def test_an_approved_call_runs_once_in_the_process_that_goes_on(tmp_path: Path, mode: Mode):
    office = Office(tmp_path, mode, "sign")
    await office.begin()
    await office.decide(approve=True)

    summary, envelope = await office.go_on()

    assert summary["status"] == "completed"
    assert envelope.output == {"signed": "offer"}
    assert office.effects == {"sign-offer": 1}


@pytest.mark.requirement("chaos.nested")
async def test_resuming_the_outermost_run_resumes_the_nested_one_that_was_decided(tmp_path: Path):
    office = Office(tmp_path, "nested", "sign")
    await office.begin()
    await office.decide(approve=True)
    inner, outer = await office.runs()

    (summary,) = await Child(tmp_path / "end", resume, tmp_path, "sign", [outer]).result()

    assert summary["status"] == "completed"
    assert {events[0].run_id for events in await journals(tmp_path)} == {inner, outer}
    assert office.effects == {"sign-offer": 1}


@every_mode
async def test_a_rejected_call_does_not_run(tmp_path: Path, mode: Mode):
    office = Office(tmp_path, mode, "sign")
    await office.begin()
    await office.decide(approve=False)

    summary, envelope = await office.go_on()

    ends = {"agentic": "completed", "nested": "completed", "deterministic": "incomplete"}
    assert summary["status"] == ends.get(mode, "failed")
    assert envelope.status == "denied"
    assert envelope.error is not None
    assert envelope.error.reason is Reason.APPROVAL_REJECTED
    assert "because" in envelope.error.message
    assert not office.effects


@every_mode
async def test_a_call_runs_with_the_arguments_as_the_person_edited_them(tmp_path: Path, mode: Mode):
    office = Office(tmp_path, mode, "sign")
    asked = await office.begin()
    await office.decide(approve=True, edited={"text": "better-offer"})

    _, envelope = await office.go_on()

    assert isinstance(asked, ApprovalRequested)
    assert envelope.call_id == asked.call_id
    assert envelope.approved_input == {"text": "better-offer"}
    assert office.effects == {"sign-better-offer": 1}


async def test_edited_arguments_that_are_not_valid_are_refused_and_the_call_waits_on(tmp_path: Path):
    office = Office(tmp_path, "agentic", "sign")
    await office.begin()
    await office.decide(approve=True, edited={"txt": "offer"}, refused="the call still waits")
    assert not office.effects
    await office.decide(approve=True)

    _, envelope = await office.go_on()

    assert envelope.ok
    assert office.effects == {"sign-offer": 1}


@every_mode
async def test_an_approval_is_good_for_the_revision_that_was_shown_only(tmp_path: Path, mode: Mode):
    office = Office(tmp_path, mode, "sign")
    await office.begin()
    await office.decide(approve=True)

    other = Child(tmp_path / "other", resume, tmp_path, "sign", await office.runs(), True)
    assert "lacks the Python function of sign@1.0.0" in str(await other.result())
    assert not office.effects

    _, envelope = await office.go_on()
    assert envelope.ok
    assert office.effects == {"sign-offer": 1}


@every_mode
async def test_a_client_s_result_is_the_call_s_output(tmp_path: Path, mode: Mode):
    office = Office(tmp_path, mode, "print_label")
    handed = await office.begin()
    assert isinstance(handed, ClientHandoff)
    assert handed.envelope.output == {"label": "OFFER"}
    assert handed.envelope.requires_client_execution
    await office.hand_back(handed.position, works=True)

    summary, envelope = await office.go_on()

    assert summary["status"] == "completed"
    assert (envelope.status, envelope.output) == ("success", {"printed": 1})


@every_mode
async def test_a_client_s_failure_is_the_call_s_error(tmp_path: Path, mode: Mode):
    office = Office(tmp_path, mode, "print_label")
    handed = await office.begin()
    await office.hand_back(handed.position, works=False)

    _, envelope = await office.go_on()

    assert envelope.status == "error"
    assert envelope.error is not None
    assert envelope.error.message.startswith("no paper; whether it took effect is unknown")


@every_mode
async def test_a_run_that_nobody_has_decided_goes_on_waiting(tmp_path: Path, mode: Mode):
    office = Office(tmp_path, mode, "sign")
    await office.begin()
    before = await journals(tmp_path)

    results = await Child(tmp_path / "early", resume, tmp_path, "sign", await office.runs()).result()

    assert {found["status"] for found in results} == {"awaiting_approval"}
    assert await journals(tmp_path) == before
