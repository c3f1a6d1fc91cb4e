"""Holds all plans of the corpus against their tasks, without any run: `python -m tests.corpus.offline [-v] [ID…]`.

For each system and language it prints how many right plans are settled at once, after one second reading by somebody
who knows the truth, or not; and of each mistake how many plans are settled, which would change the wrong records. With
ids it prints all that is known of these tasks' plans.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal, TypeAlias, cast

from tests.corpus.corpus import LANGUAGES, SYSTEM_NAMES, TODAY, SystemName, Task, find, load
from tests.corpus.mistakes import MISTAKES, Mistake
from tests.corpus.plans import right_plan, wrong_plans
from tests.corpus.second_reader import SecondReader
from tests.corpus.systems import system_of
from toolcrib.agents.evidence import (
    EvidenceSources,
    Judgement,
    Known,
    Passage,
    Step,
    advice,
    judge,
    learn,
    points_of,
    read_claims,
    second_question,
    words_of,
)
from toolcrib.agents.evidence.field_values import property_names, value_names
from toolcrib.agents.evidence.plan_schema import StepPlan
from toolcrib.agents.evidence.word_matching import replace_labels
from toolcrib.agents.toolset.schema_narrowing import enums_of, narrow
from toolcrib.contracts import JsonObject, JsonSchema, ToolDefinition
from toolcrib.core.providers import ReferenceList
from toolcrib.core.registry import compile_schema

Outcome: TypeAlias = Literal["at once", "after reading", "open"]
"""Of a plan: settled without a word, settled after a second reading, or not settled."""

_OUTCOMES: Final[tuple[Outcome, ...]] = ("at once", "after reading", "open")
_RIGHT: Final = "right"
_SHORTEST_KNOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of one plan."""

    task: Task
    kind: Mistake | Literal["right"]
    outcome: Outcome
    first: Judgement
    last: Judgement
    known: Known
    refused: tuple[str, ...]
    """What its steps' schemas say against it."""

    @property
    def is_wrong(self) -> bool:
        """Whether it is not what should become of it."""
        if self.kind != _RIGHT:
            return self.outcome != "open"
        return self.outcome == "open" or (self.outcome != "at once" and self.task.verbatim)


@dataclass(frozen=True, slots=True)
class _Tools:
    """What is known of a system's tools."""

    definitions: dict[str, ToolDefinition]
    schemas: dict[str, JsonSchema]
    """Of their inputs, closed by the lists."""
    lists: dict[str, ReferenceList]


@cache
def _tools(system: SystemName) -> _Tools:
    made = system_of(system)
    lists = enums_of(asyncio.run(made.lists()))
    definitions = {tool.definition.name: tool.definition for tool in made.tools}
    schemas = {name: narrow(definition.input_schema, lists) for name, definition in definitions.items()}
    return _Tools(definitions, schemas, lists)


def said_of(task: Task) -> EvidenceSources:
    """What a plan of a task is held against, as a run makes it."""
    tools = _tools(task.system)
    steps = system_of(task.system).steps(task.action)
    names = [f"{step} {' '.join(property_names(tools.schemas[step]))}" for step in steps]
    known = frozenset(
        word for name in names for word in words_of(name.replace("_", " ")) if len(word) >= _SHORTEST_KNOWN
    )
    values = frozenset(name for step in steps for name in value_names(tools.schemas[step]))
    fields = frozenset(name for step in steps for name in property_names(tools.schemas[step]))
    return EvidenceSources(Passage(task.text), Passage(""), TODAY, tools.lists, known, values, fields=fields)


def steps_of(task: Task, plan: JsonObject) -> list[Step]:
    """The steps of a plan that would run, with ids in place of labels."""
    tools = _tools(task.system)
    planned = {name: StepPlan.read(plan[name]) for name in system_of(task.system).steps(task.action)}
    return [
        Step(
            name,
            cast("JsonObject", replace_labels(wanted.input, tools.lists)),
            tools.schemas[name],
            writes=tools.definitions[name].side_effects == "writes",
            for_each=wanted.for_each,
        )
        for name, wanted in planned.items()
        if not wanted.skip
    ]


def judged(task: Task, kind: Mistake | Literal["right"], plan: JsonObject) -> Judged:
    """Hold one plan against its task, and have what is open read a second time."""
    steps, said, known = steps_of(task, plan), said_of(task), Known()
    first = last = judge(steps, read_claims(plan), said)
    if not first.settled and (points := points_of(first, known)):
        answer = SecondReader(task).answer(second_question(first, points, said))
        learn(known, points, answer, said)
        last = known.apply_to(first)
    outcome: Outcome = "at once" if first.settled else "after reading" if last.settled else "open"
    problems = [problem for step in steps if not step.for_each for problem in _problems(step)]
    return Judged(task, kind, outcome, first, last, known, tuple(problems))


def _problems(step: Step) -> Iterator[str]:
    return (f"{problem}" for problem in compile_schema(step.schema).problems(step.input))


def all_judged(tasks: Iterable[Task]) -> Iterator[Judged]:
    """Every plan of some tasks; what cannot be done as said has no right plan."""
    for task in tasks:
        if not task.unclear:
            yield judged(task, _RIGHT, right_plan(task))
        for kind, plan in wrong_plans(task).items():
            yield judged(task, kind, plan)


# Printing -------------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> None:
    """Print what becomes of all plans, or all that is known of some."""
    names = [argument for argument in arguments if not argument.startswith("-")]
    tasks = [find(name) for name in names] or [task for name in SYSTEM_NAMES for task in load(name)]
    found = list(all_judged(tasks))
    if names:
        for one in found:
            _print(_details(one))
        return
    _print(_right_table("system", SYSTEM_NAMES, found, lambda one: one.task.system))
    _print(_right_table("language", LANGUAGES, found, lambda one: one.task.language))
    _print(_wrong_table("system", SYSTEM_NAMES, found, lambda one: one.task.system))
    _print(_wrong_table("language", LANGUAGES, found, lambda one: one.task.language))
    unclear = Counter[Outcome](one.outcome for one in found if one.task.unclear)
    refused = Counter(one.task.system for one in found if one.refused and one.kind == _RIGHT)
    _print(
        [
            f"guesses at unclear tasks: {_shares(unclear)}",
            f"right plans refused by their tools' schemas: {dict(refused) or 'none'}",
            "",
        ]
    )
    for one in found:
        if one.is_wrong:
            _print(_details(one) if "-v" in arguments else _details(one)[:1])


def _right_table(title: str, names: Sequence[str], found: Sequence[Judged], of: Callable[[Judged], str]) -> list[str]:
    lines = [f"RIGHT PLANS by {title:<10} verbatim: {_heading()}   others: {_heading()}"]
    for name in (*names, "all"):
        mine = [one for one in found if one.kind == _RIGHT and name in {of(one), "all"}]
        counts = [
            Counter[Outcome](one.outcome for one in mine if one.task.verbatim is is_so) for is_so in (True, False)
        ]
        lines.append(f"  {name:<20}           {_numbers(counts[0])}           {_numbers(counts[1])}")
    return [*lines, ""]


def _wrong_table(title: str, names: Sequence[str], found: Sequence[Judged], of: Callable[[Judged], str]) -> list[str]:
    """For each mistake: settled at once / settled after reading / of how many. Those that only read are apart."""
    lines = [f"WRONG PLANS by {title}: settled at once / after reading / of; (+ of tasks that only read)"]
    lines.append(" " * 12 + "".join(f"{kind:>22}" for kind in MISTAKES))
    for name in (*names, "all"):
        cells: list[str] = []
        for kind in MISTAKES:
            mine = [one for one in found if one.kind == kind and name in {of(one), "all"} and not one.task.unclear]
            writing = [one for one in mine if one.task.action != "read"]
            reading = [one for one in mine if one.task.action == "read"]
            cells.append(f"{_cell(writing)} (+{_cell(reading)})")
        lines.append(f"  {name:<10}" + "".join(f"{cell:>22}" for cell in cells))
    return [*lines, ""]


def _cell(found: Sequence[Judged]) -> str:
    counts = Counter[Outcome](one.outcome for one in found)
    return f"{counts['at once']}/{counts['after reading']}/{len(found)}"


def _details(one: Judged) -> list[str]:
    lines = [f"{one.task.id} {one.kind} ({one.task.action}): {one.outcome}: {one.task.text}"]
    lines += [f"    refused: {problem}" for problem in one.refused]
    for found in one.first.findings:
        what = f"{found.role} {found.field} {found.shown!r} from {found.words!r}"
        others = f" {found.others}" if found.others else ""
        lines.append(f"    {found.state}: {what}: {found.why}{others}")
    lines += [f"    left: {words!r}" for words in one.first.left]
    lines += [f"    unused: {claim}" for claim in one.first.unused]
    if one.outcome == "open":
        lines += [f"    after reading: {text}" for text in advice(one.last, one.known)]
    return lines


def _heading() -> str:
    return " / ".join(_OUTCOMES)


def _numbers(counts: Counter[Outcome]) -> str:
    return " / ".join(f"{counts[outcome]:>{len(outcome)}}" for outcome in _OUTCOMES)


def _shares(counts: Counter[Outcome]) -> str:
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in _OUTCOMES)


def _print(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)


if __name__ == "__main__":
    main(sys.argv[1:])
