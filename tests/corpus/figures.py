"""Figures of the runs: which planners and readers there are, what becomes of their plans, and what was recorded last.

`figures.json` has counts by system, by half of its tasks, planner, reader, kind of plan and outcome. Who changes how
plans are checked records them anew with `python -m benchmarks.corpus --write`, so that each change of one is seen.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

import orjson

from tests.corpus.corpus import SystemName, Task, load
from tests.corpus.effects import effect_of, right_effect
from tests.corpus.mistakes import Mistake
from tests.corpus.more_mistakes import MoreMistake, more_wrong_plans
from tests.corpus.plans import right_plan, wrong_plans
from tests.corpus.players import Player
from tests.corpus.runs import Outcome, Ran, Stand
from tests.corpus.second_reader import second_reading
from toolcrib.contracts import JsonObject, Purpose
from toolcrib.llm import Request, assistant
from toolcrib.llm.base.prices import estimate_usage

Kind: TypeAlias = Literal["right"] | Mistake | MoreMistake
Planner: TypeAlias = Literal["perfect", "repeats", "corrects"]
"""perfect: the plan is right. repeats: it has a mistake, and has it again when it is to be corrected. corrects: it is
right then."""
Reader: TypeAlias = Literal["truthful", "one in ten wrong", "none"]
"""Who reads a task a second time."""

READERS: Final[tuple[Reader, ...]] = ("truthful", "one in ten wrong", "none")
HALVES: Final = (0, 1)
FILE: Final = Path(__file__).parent / "figures.json"

Counts: TypeAlias = dict[str, dict[str, int]]
"""By kind of plan and by outcome; kinds of tasks that only read, and of those that cannot be done, say so."""


@dataclass(frozen=True, slots=True)
class Line:
    """One run with what its planner does."""

    task: Task
    kind: Kind
    planner: Planner
    reader: Reader
    outcome: Outcome
    """What became of it."""
    further: tuple[Purpose, ...]
    """What the model was asked for beyond the plan, before anything was changed."""
    sent: int
    """Tokens of the prompt for a plan, estimated as those of usage are."""
    written: int
    """Tokens of the plan."""

    @property
    def label(self) -> str:
        """The kind of plan, and whether the task only reads or cannot be done."""
        only = "read" if self.task.action == "read" else "unclear" if self.task.unclear else ""
        return f"{self.kind} ({only})" if only else self.kind


def half_of(name: SystemName, half: int) -> list[Task]:
    """A fixed half of a system's tasks."""
    return [task for task in load(name) if task.picked(len(HALVES), "half") == half]


async def play_right(stand: Stand, tasks: Iterable[Task], reader: Reader = "truthful") -> AsyncGenerator[Line]:
    """Right plans; of a task that cannot be done, a question."""
    for task in tasks:
        plan = right_plan(task)
        player = Player(task, plan, plan, plan, _reader(task, reader))
        ran = await stand.play(player)
        yield _line(player, "right", "perfect", reader, ran)


async def play_wrong(stand: Stand, tasks: Iterable[Task], reader: Reader = "truthful") -> AsyncGenerator[Line]:
    """Plans with each mistake, of a planner that corrects them when told to, and of one that does not."""
    for task in tasks:
        right = right_plan(task)
        for kind, plan in await _plans(task):
            player = Player(task, plan, right, right, _reader(task, reader))
            line = _line(player, kind, "corrects", reader, await stand.play(player))
            yield line
            if len(player.plans) > 1:  # else nobody has told it anything, and both planners do the same
                player = Player(task, plan, plan, plan, _reader(task, reader))
                line = _line(player, kind, "repeats", reader, await stand.play(player))
            yield replace(line, planner="repeats")


def _line(player: Player, kind: Kind, planner: Planner, reader: Reader, ran: Ran) -> Line:
    usage = estimate_usage(player.plans[0], assistant(player.said[0]))
    return Line(player.task, kind, planner, reader, ran.outcome, ran.further, usage.input, usage.output)


async def _plans(task: Task) -> list[tuple[Kind, JsonObject]]:
    """The plans with a mistake that do something else than is meant."""
    plans: list[tuple[Kind, JsonObject]] = [(kind, plan) for kind, plan in wrong_plans(task).items()]
    if not task.unclear:
        right = await right_effect(task)
        for kind, plan in more_wrong_plans(task).items():
            if await effect_of(task, plan) != right:
                plans.append((kind, plan))
    return plans


def _reader(task: Task, reader: Reader) -> Callable[[Request], str]:
    return second_reading(task, wrong_share=0.1 if reader == "one in ten wrong" else 0.0, absent=reader == "none")


# Counting -------------------------------------------------------------------------------------------------------------


def counted(lines: Iterable[Line]) -> Counts:
    """How many plans of each kind came to what."""
    found: dict[str, Counter[str]] = {}
    for line in lines:
        found.setdefault(line.label, Counter())[line.outcome] += 1
    return {kind: dict(sorted(counts.items())) for kind, counts in sorted(found.items())}


def figures_of(lines: Sequence[Line]) -> dict[str, Counts]:
    """The counts of lines, by system, half, planner and reader."""
    groups: dict[str, list[Line]] = {}
    for line in lines:
        groups.setdefault(place_of(line), []).append(line)
    return {place: counted(group) for place, group in sorted(groups.items())}


def place_of(line: Line) -> str:
    """Where the file has a line."""
    half = line.task.picked(len(HALVES), "half")
    return f"{line.task.system} {half}, {line.planner}, {line.reader}"


def recorded() -> dict[str, Counts]:
    """What was recorded last."""
    return orjson.loads(FILE.read_bytes())


def write(figures: Mapping[str, Counts]) -> None:
    """Record figures."""
    FILE.write_bytes(orjson.dumps(figures, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")


def differences(found: Mapping[str, Counts], *, margin: int = 0) -> Iterator[str]:
    """Where figures differ by more than a margin from those that were recorded."""
    known = recorded()
    for place, counts in found.items():
        before = known.get(place, {})
        for kind in sorted({*counts, *before}):
            one, other = counts.get(kind, {}), before.get(kind, {})
            for outcome in sorted({*one, *other}):
                if abs(one.get(outcome, 0) - other.get(outcome, 0)) > margin:
                    yield f"{place}: {kind}: {outcome}: {one.get(outcome, 0)}, was {other.get(outcome, 0)}"


def total(planner: Planner, reader: Reader, kinds: Callable[[str], bool]) -> Counter[str]:
    """The recorded outcomes of all systems' plans of some kinds."""
    counts: Counter[str] = Counter()
    for place, by_kind in recorded().items():
        if place.endswith(f", {planner}, {reader}"):
            for kind in filter(kinds, by_kind):
                counts.update(by_kind[kind])
    return counts
