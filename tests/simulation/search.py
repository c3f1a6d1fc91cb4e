"""Runs a scenario on one schedule after the other, and shortens a schedule that fails."""

import secrets
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final, TypeAlias
from unittest.mock import patch

from tests.simulation.processes import START, SimulatedThreads
from tests.simulation.schedules import Decisions, Schedule
from tests.simulation.simulated_loop import OWNER, SimulatedLoop, Stuck
from tests.simulation.world import World
from toolcrib.infrastructure.store.database.database import Database
from toolcrib.infrastructure.store.database.dialect import Dialect
from toolcrib.infrastructure.store.database.session import Prepared

Scenario: TypeAlias = Callable[[World], Awaitable[Any]]
"""Does something in a world, and raises if what must be true is not."""

DISTURBANCES: Final[Mapping[str, int]] = {"delay": 7, "crash": 1, "freeze": 4, "fault": 1}
"""The value of the decision that `sweep` takes, by kind: seven seconds late, dead, frozen for longer than a lease."""
_POOL: Final = "toolcrib.infrastructure.store.database.database.ThreadPoolExecutor"
_WRITER: Final = "toolcrib.infrastructure.store.database.database.WriterThread"
_CONNECT: Final = Database.__init__
_PREPARED: Final[Prepared] = {}
"""Statements are compiled once, and not once for each process of each simulation."""
_IN_MEMORY: Final = Path("/dev/shm")
_STORMY_S: Final = 60.0
_MOST_TRIES: Final = 400


@dataclass(frozen=True)
class Failure:
    """A schedule that fails."""

    schedule: Schedule
    error: BaseException = field(compare=False)

    @property
    def kind(self) -> str:
        """What fails: the class of the error, and its text up to the first colon."""
        return f"{type(self.error).__name__}: {str(self.error).partition(':')[0]}"


@dataclass(frozen=True)
class Outcome:
    """What came of a schedule."""

    value: Any
    """What the scenario has returned."""
    failure: Failure | None
    decisions: Mapping[str, int]
    """Those that were not 0."""
    asked: Mapping[str, int]
    """How often each decision came up, by place and kind."""
    steps: int
    simulated_s: float


class ScheduleFailed(AssertionError):
    """A schedule failed, and could not be made shorter.

    Args:
        first: As it was found.
        shortest: As short as it could be made.
        tried: Schedules until it was found.
    """

    def __init__(self, first: Failure, shortest: Failure, tried: int) -> None:
        self.first, self.shortest, self.tried = first, shortest, tried
        decisions = shortest.schedule.decisions or {}
        found = "".join(f"\n    {name!r}: {value}," for name, value in decisions.items())
        super().__init__(
            f"{shortest.error}\nfound by seed {first.schedule.seed} after {tried} schedules; "
            f"the shortest schedule is Schedule({shortest.schedule.seed}, {{{found}\n}})"
        )


def run_schedule(scenario: Scenario, schedule: Schedule, *, files: Path | None = None) -> Outcome:
    """Run a scenario once.

    Args:
        scenario: The scenario.
        schedule: What happens.
        files: A folder that the world's folder begins as a copy of.
    """
    loop, decisions = SimulatedLoop(), Decisions(schedule)
    with _folder(files) as folder, _simulated(loop, schedule.seed):
        world = World(loop, decisions, folder, _STORMY_S)
        value: Any = None
        error: BaseException | None = None
        try:
            value = loop.run_until_complete(scenario(world))
        except Exception as raised:  # noqa: BLE001
            error = raised
        taken, steps, simulated_s = dict(decisions.taken), loop.steps, loop.time()
        loop.steps = 0
        with suppress(Stuck):
            loop.run_until_complete(world.end())
        loop.close()
    failure = None if error is None else Failure(Schedule(schedule.seed, taken), error)
    return Outcome(value, failure, taken, decisions.asked, steps, simulated_s)


def simulate(scenario: Scenario, seeds: Iterable[int], *, files: Path | None = None) -> int:
    """Run a scenario on the schedules of some seeds.

    Args:
        scenario: The scenario.
        seeds: The seeds.
        files: See `run_schedule`.

    Returns:
        How many schedules there were.

    Raises:
        ScheduleFailed: One failed; it says the seed and the shortest schedule that fails likewise.
    """
    tried = 0
    for seed in seeds:
        tried += 1
        failure = run_schedule(scenario, Schedule(seed), files=files).failure
        if failure is not None:
            shortest = shorten(scenario, failure, files=files)
            raise ScheduleFailed(failure, shortest, tried) from shortest.error
    return tried


def sweep(
    scenario: Scenario, schedule: Schedule, disturbances: Mapping[str, int] = DISTURBANCES, *, files: Path | None = None
) -> int:
    """Run a schedule, and then once more for each operation in it with that one disturbed.

    Where `simulate` meets what needs several things at once, this meets what needs one thing at the right place.

    Args:
        scenario: The scenario.
        schedule: The schedule, with its decisions.
        disturbances: What happens to each operation in turn: the decision's value, by its kind.
        files: See `run_schedule`.

    Returns:
        How many operations were disturbed.

    Raises:
        ScheduleFailed: One failed.
    """
    given = schedule.decisions or {}
    undisturbed = run_schedule(scenario, Schedule(schedule.seed, given), files=files)
    operations = (
        {f"{where} {number}": value}
        for where, times in undisturbed.asked.items()
        if (value := disturbances.get(where.rpartition(" ")[2]))
        for number in range(1, times + 1)
    )
    tried = 0
    for tried, disturbed in enumerate(({}, *operations)):
        failure = run_schedule(scenario, Schedule(schedule.seed, {**given, **disturbed}), files=files).failure
        if failure is not None:
            raise ScheduleFailed(failure, failure, tried) from failure.error
    return tried


def shorten(scenario: Scenario, failure: Failure, *, files: Path | None = None) -> Failure:
    """Leave out decisions as long as the scenario fails likewise, then make what is left smaller.

    Args:
        scenario: The scenario.
        failure: The schedule that fails.
        files: See `run_schedule`.
    """
    tries = 0
    best = failure

    def fails(decisions: Mapping[str, int]) -> bool:
        nonlocal best, tries
        tries += 1
        found = run_schedule(scenario, Schedule(failure.schedule.seed, decisions), files=files).failure
        if found is None or found.kind != failure.kind:
            return False
        best = found
        return True

    size = len(best.schedule.decisions or {})
    while size >= 1 and tries < _MOST_TRIES:
        shorter = any(tries < _MOST_TRIES and fails(left) for left in _without(best.schedule.decisions or {}, size))
        size = min(size, len(best.schedule.decisions or {})) if shorter else size // 2
    for name, value in (best.schedule.decisions or {}).items():
        for smaller in range(1, value):
            if tries >= _MOST_TRIES or fails({**(best.schedule.decisions or {}), name: smaller}):
                break
    return best


def _without(decisions: Mapping[str, int], size: int) -> Generator[Mapping[str, int]]:
    """The decisions without so many that follow each other, the last ones first."""
    names: Sequence[str] = list(decisions)
    for start in range(len(names) - size, -size, -size):
        left_out = set(names[max(start, 0) : start + size])
        yield {name: value for name, value in decisions.items() if name not in left_out}


@contextmanager
def _folder(files: Path | None) -> Generator[Path]:
    place = tempfile.mkdtemp(prefix="simulation-", dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None)
    try:
        if files is not None:
            shutil.copytree(files, place, dirs_exist_ok=True)
        yield Path(place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def _simulated(loop: SimulatedLoop, seed: int) -> Generator[None]:
    """Threads, ids and time come from the simulation."""
    chance = Random(f"ids {seed}")

    def pool(workers: int, name: str) -> SimulatedThreads:
        del workers
        process: Any = OWNER.get()
        return SimulatedThreads(process, name.rpartition("-")[2])

    def connected(database: Database, dialect: Dialect) -> None:
        _CONNECT(database, dialect)
        database._prepared = _PREPARED  # pyright: ignore[reportPrivateUsage]

    def nanoseconds() -> int:
        return int((START.timestamp() + loop.time()) * 1e9)

    with ExitStack() as stack:
        stack.enter_context(patch(_POOL, pool))
        stack.enter_context(patch(_WRITER, partial(pool, 1)))
        stack.enter_context(patch.object(Database, "__init__", connected))
        stack.enter_context(patch.object(secrets, "token_bytes", lambda size=32: chance.randbytes(size)))
        stack.enter_context(patch.object(secrets, "token_hex", lambda size=32: chance.randbytes(size).hex()))
        stack.enter_context(patch.object(time, "time_ns", nanoseconds))
        yield
