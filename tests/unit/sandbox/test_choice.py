"""Which sandbox a job gets: the cheapest that holds and is apart enough, or none."""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest

from toolcrib.contracts import Isolation, Unavailable
from toolcrib.infrastructure.sandbox import (
    CodeJob,
    Dialect,
    Exceeded,
    Failed,
    Returned,
    Sandbox,
    ToolReply,
    Turn,
    Used,
    machine_sandbox,
)

pytestmark = pytest.mark.requirement("sandbox.choice")

JOB = CodeJob("def main(): ...", {}, datetime(2026, 1, 1, tzinfo=UTC), seed="1")


class StillSession:
    """A session that ends at once."""

    def __init__(self, backend: "Twin") -> None:
        self.used = Used()
        self.backend = backend

    async def start(self) -> Turn:
        self.backend.computing += 1
        self.backend.most = max(self.backend.most, self.backend.computing)
        if self.backend.gate is not None:
            await self.backend.gate.wait()
        self.backend.computing -= 1
        return self.backend.end

    async def answer(self, answer: ToolReply) -> Turn:
        return Returned(self.backend.name)

    async def close(self) -> None:
        self.backend.closed += 1


@dataclass
class Twin:
    """A backend in memory."""

    name: str
    isolation: Isolation
    dialects: frozenset[Dialect]
    end: Turn = field(default_factory=lambda: Returned([]))
    missing: str | None = None
    opened: int = 0
    closed: int = 0
    gate: asyncio.Barrier | None = None
    """Computing ends when so many have met; at once if null."""
    computing: int = 0
    most: int = 0

    async def open(self, job: CodeJob, dialect: Dialect) -> StillSession:
        if self.missing is not None:
            raise Unavailable(self.missing)
        self.opened += 1
        return StillSession(self)

    async def close(self) -> None:
        self.closed = -1


def twins() -> tuple[Twin, Twin, Twin]:
    whole: frozenset[Dialect] = frozenset({"cpython"})
    return (
        Twin("small", "language", frozenset({"monty"})),
        Twin("jail", "namespace", whole),
        Twin("kernel", "kernel", whole),
    )


async def chosen(sandbox: Sandbox, job: CodeJob, isolation: Isolation) -> str:
    session = await sandbox.open(job, isolation)
    turn = await session.answer(ToolReply("whose"))
    await session.close()
    await session.close()
    assert isinstance(turn, Returned)
    return str(turn.output)


async def test_the_cheapest_that_is_apart_enough_is_taken():
    sandbox = Sandbox(twins())

    assert await chosen(sandbox, JOB, "language") == "small"
    assert await chosen(sandbox, JOB, "namespace") == "jail"
    assert await chosen(sandbox, JOB, "kernel") == "kernel"
    assert await chosen(sandbox, replace(JOB, interpreter="cpython"), "language") == "jail"


async def test_the_operator_may_want_more_than_the_tool():
    assert await chosen(Sandbox(twins(), minimum="kernel"), JOB, "language") == "kernel"
    assert await chosen(Sandbox(twins(), minimum="language"), JOB, "namespace") == "jail"


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (Returned(["reads a file of the machine"]), "the code in it reads a file of the machine"),
        (Failed("ProcessEnded", "no"), "a trial did not end as it should"),
        (Exceeded("wall_s"), "a trial did not end as it should"),
    ],
)
async def test_one_that_does_not_hold_in_its_trial_is_not_used(end: Turn, told: str):
    small, jail, kernel = twins()
    small.end = end

    sandbox = Sandbox((small, jail, kernel))
    assert await chosen(sandbox, JOB, "language") == "jail"
    problem = (await sandbox.probe())[0].problem
    assert problem is not None
    assert told in problem


async def test_a_trial_is_made_once():
    small, *_ = found = twins()
    sandbox = Sandbox(found)

    await sandbox.probe()
    await sandbox.probe()

    assert (small.opened, small.closed) == (1, 1)


async def test_without_any_that_will_do_the_refusal_names_what_is_wanted_and_what_there_is():
    small, jail, kernel = twins()
    kernel.missing = "gVisor is not installed"
    sandbox = Sandbox((small, jail, kernel))

    with pytest.raises(Unavailable) as refusal:
        await sandbox.open(JOB, "kernel")

    assert "isolation 'kernel'" in str(refusal.value)
    assert "monty with isolation 'language', cpython with isolation 'namespace'" in str(refusal.value)
    assert "kernel (cpython): gVisor is not installed" in str(refusal.value)


async def test_a_language_that_nobody_runs_is_refused():
    with pytest.raises(Unavailable, match="javascript code with isolation 'language'; available: nothing"):
        await Sandbox(twins()).open(replace(JOB, language="javascript"), "language")


@pytest.mark.requirement("sandbox.places")
async def test_one_that_waits_for_a_tool_leaves_its_place_to_another():
    sandbox = Sandbox(twins(), places=1)

    outer = await sandbox.open(JOB, "language")
    await outer.start()
    inner = await sandbox.open(JOB, "language")

    assert await inner.start() == Returned([])
    assert await outer.answer(ToolReply()) == Returned("small")
    assert inner.used == Used()


@pytest.mark.requirement("sandbox.places")
async def test_those_that_compute_at_the_same_time_are_no_more_than_the_places():
    small, *_ = twins()
    sandbox = Sandbox((small,), places=2)
    sessions = [await sandbox.open(JOB, "language") for _ in range(6)]
    small.gate = asyncio.Barrier(2)

    await asyncio.gather(*(session.start() for session in sessions))

    assert small.most == 2


@pytest.mark.requirement("sandbox.places")
async def test_too_many_that_are_open_are_refused_until_one_ends():
    small, *_ = twins()
    sandbox = Sandbox((small,), places=1)
    sessions = [await sandbox.open(JOB, "language") for _ in range(16)]

    with pytest.raises(Unavailable, match=r"16 executions of code are open.*TOOLCRIB_SANDBOX_PLACES"):
        await sandbox.open(JOB, "language")
    await sessions[0].close()
    small.missing = "gone"
    with pytest.raises(Unavailable, match="gone"):
        await sandbox.open(JOB, "language")
    small.missing = None
    await sandbox.open(JOB, "language")


async def test_closing_it_closes_all():
    found = twins()
    await Sandbox(found).close()

    assert [twin.closed for twin in found] == [-1, -1, -1]


async def test_virtual_machines_are_wanted_in_vain():
    sandbox = machine_sandbox(minimum="vm")

    with pytest.raises(Unavailable, match="isolation 'vm'"):
        await sandbox.open(replace(JOB, interpreter="restricted"), "language")
    await sandbox.close()
