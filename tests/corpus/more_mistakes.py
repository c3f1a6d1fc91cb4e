"""Two more mistakes, which those who wrote the tasks knew nothing of: derived from what a task means.

other_comparison: a condition compares the other way round. lost_as_request: a condition is gone, and its words are said
to be what is asked for.
"""

from dataclasses import replace
from typing import Final, Literal, TypeAlias

from tests.corpus.corpus import Condition, Op, Task
from tests.corpus.mistakes import Meaning, right_meaning, wrong_meanings
from tests.corpus.plans import plan_of
from tests.corpus.systems import system_of
from toolcrib.contracts import JsonObject

MoreMistake: TypeAlias = Literal["other_comparison", "lost_as_request"]

MORE_MISTAKES: Final[tuple[MoreMistake, ...]] = ("other_comparison", "lost_as_request")
_PAIRS: Final[tuple[tuple[Op, Op], ...]] = (
    ("more_than", "less_than"),
    ("at_least", "at_most"),
    ("after", "before"),
    ("on_or_after", "on_or_before"),
    ("is_not", "is"),
)
_OTHER: Final[dict[Op, Op]] = {**dict(_PAIRS), **{second: first for first, second in _PAIRS}}


def more_wrong_plans(task: Task) -> dict[MoreMistake, JsonObject]:
    """The plan with each of the two mistakes that fits the task."""
    plans: dict[MoreMistake, JsonObject] = {}
    if (turned := _turned(task)) is not None:
        plans["other_comparison"] = plan_of(turned)
    if (lost := wrong_meanings(task).get("lost_as_none")) is not None:
        words = set(lost.rest[len(task.rest) :])
        plan = plan_of(lost)
        reading: list[JsonObject] = [
            {**entry, "use": "request"} if entry["words"] in words and entry["use"] == "none" else entry
            for entry in plan["reading"]
        ]
        plans["lost_as_request"] = {**plan, "reading": reading}
    return plans


def _turned(task: Task) -> Meaning | None:
    """What the task means with one comparison the other way round; those that compare sizes first."""
    if task.unclear:
        return None
    labelled = {field.name for field in system_of(task.system).fields if field.kind == "label"}
    for one in sorted(task.where, key=_rank):
        other = _OTHER.get(one.op)
        if other is None or (one.op in {"is", "is_not"} and one.field not in labelled) or _is_said(task, one, other):
            continue
        right = right_meaning(task)
        return replace(right, where=tuple(replace(part, op=other) if part is one else part for part in right.where))
    return None


def _rank(condition: Condition) -> int:
    return list(_OTHER).index(condition.op) if condition.op in _OTHER else len(_OTHER)


def _is_said(task: Task, condition: Condition, op: Op) -> bool:
    """Whether a system could not tell both conditions on the field apart."""
    return any(part.field == condition.field and part.op == op for part in task.where)
