"""A process is frozen in a call of which a person is asked: nobody is asked while it may still act when it thaws."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path

import pytest

from tests.chaos.freezing import LEASE_S, LIMIT_S, follow, lines, pay, settle
from tests.chaos.journals import journals
from tests.chaos.processes import Child
from toolcrib.contracts import ApprovalRequested, RunResumed

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.requirement("effects.ask_late", "chaos.frozen_ask")]

PATIENCE_S = 30.0
HELD_STILL_S = 2.0
"""Seconds after a thaw in which nothing may happen."""


async def until(found: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await found():  # noqa: ASYNC110 - what happens there is in another process
            await asyncio.sleep(0.05)


async def moments(folder: Path, kind: type) -> list[datetime]:
    logs = await journals(folder)
    return [entry.at for log in logs for entry in log if isinstance(entry.event, kind)]


class Case:
    """A call in a process that stands still, and another process that has its run."""

    def __init__(self, folder: Path, steps: int, step_s: float) -> None:
        self.folder = folder
        self.frozen = Child(folder / "frozen", pay, folder, steps, step_s)
        self.heir: Child | None = None

    async def freeze(self) -> None:
        """Freeze the process as soon as its call has begun, and wait until the other one has taken its run."""
        await until(self.has("begun"))
        self.frozen.signal(signal.SIGSTOP)
        self.heir = Child(self.folder / "heir", follow, self.folder)
        await until(self.happened(RunResumed))

    def has(self, what: str) -> Callable[[], Awaitable[bool]]:
        async def looked() -> bool:
            return what in dict(lines(self.folder))

        return looked

    def happened(self, kind: type) -> Callable[[], Awaitable[bool]]:
        async def looked() -> bool:
            return bool(await moments(self.folder, kind))

        return looked

    async def dismiss(self) -> None:
        for child in (self.frozen, *([self.heir] if self.heir else [])):
            child.signal(signal.SIGCONT)
            child.signal(signal.SIGKILL)
            await child.ended()


@pytest.mark.parametrize(("steps", "step_s"), [(1, 0.3), (1, 3.5), (60, 0.05)])
async def test_ask_0_a_process_that_thaws_after_the_question_acts_no_more(tmp_path: Path, steps: int, step_s: float):
    case = Case(tmp_path, steps, step_s)
    try:
        await case.freeze()
        await until(case.happened(ApprovalRequested))
        assert [what for what, _ in lines(tmp_path)] == ["begun"]
        case.frozen.signal(signal.SIGCONT)
        await asyncio.sleep(HELD_STILL_S)
    finally:
        await case.dismiss()

    [asked] = await moments(tmp_path, ApprovalRequested)
    assert [what for what, _ in lines(tmp_path)] == ["begun"], "it has acted after a person was asked"
    assert asked.timestamp() >= lines(tmp_path)[0][1] + LIMIT_S - 0.1  # the call was written down a moment before
    assert await Child(tmp_path / "settled", settle, tmp_path).result() == {"status": "completed", "same": True}
    assert [what for what, _ in lines(tmp_path)] == ["begun", "begun", "effect"]


async def test_ask_0_what_a_process_does_that_thaws_before_the_question_a_person_can_see(tmp_path: Path):
    case = Case(tmp_path, 1, 0.3)
    try:
        await case.freeze()
        await asyncio.sleep(LEASE_S)
        assert not await moments(tmp_path, ApprovalRequested)
        case.frozen.signal(signal.SIGCONT)
        await until(case.happened(ApprovalRequested))
        await asyncio.sleep(HELD_STILL_S)
    finally:
        await case.dismiss()

    [asked] = await moments(tmp_path, ApprovalRequested)
    assert all(at < asked.timestamp() for _, at in lines(tmp_path))
