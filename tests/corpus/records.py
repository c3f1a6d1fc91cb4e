"""Records for a system in memory, such that each task means some of them and each mistake would mean others.

They are drawn at random with a fixed seed: for each task one that is meant, one that only a forgotten condition keeps
out, one that an added condition would miss, and one of the other company. `shortcomings` says where that failed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random
from typing import Final, Literal, TypeAlias

from tests.corpus.corpus import Condition, Task, Value
from tests.corpus.mistakes import Meaning, right_meaning, wrong_meanings
from toolcrib.contracts import JsonObject

Kind: TypeAlias = Literal["id", "label", "number", "day", "time", "text"]
"""Of a field; an id is drawn only where a task names it."""

Where: TypeAlias = tuple[Condition, ...]

_TRIES: Final = 2_000
_FEWEST: Final = 80
_MORE_TEXTS: Final = ("Pilot", "Rahmenvertrag", "Mise à jour", "Phase 2", "更新")


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a system's records."""

    name: str
    kind: Kind
    labels: tuple[str, ...] = ()
    """Its values, if it has labels."""
    optional: bool = False
    """Half of the records have nothing there."""


def holds(condition: Condition, record: JsonObject) -> bool:
    """Whether a record meets a condition; what has no value meets only `is_not`."""
    have, wanted = record.get(condition.field), condition.value
    if have is None:
        return condition.op == "is_not"
    match condition.op:
        case "is" | "on":
            return have == wanted
        case "is_not":
            return have != wanted
        case "contains":
            return str(wanted).casefold() in str(have).casefold()
        case "more_than" | "after":
            return have > wanted
        case "at_least" | "on_or_after":
            return have >= wanted
        case "less_than" | "before":
            return have < wanted
        case "at_most" | "on_or_before":
            return have <= wanted


def _meets(where: Where, record: JsonObject) -> bool:
    return all(holds(condition, record) for condition in where)


def matching(where: Sequence[Condition], records: Sequence[JsonObject]) -> list[JsonObject]:
    """The records that meet all conditions."""
    return [record for record in records if _meets(tuple(where), record)]


@dataclass(frozen=True, slots=True)
class _Need:
    """A record that there must be, so that a task or a mistake has an effect."""

    name: str
    one: Where
    other: Where | None
    """If there is one, it must meet one of the two and not the other."""
    changes: Mapping[str, Value]
    """What it must not have already."""

    def is_met_by(self, record: JsonObject) -> bool:
        """Whether a record is such a one."""
        if self.other is not None and _meets(self.one, record) == _meets(self.other, record):
            return False
        if self.other is None and not _meets(self.one, record):
            return False
        return not self.changes or any(record.get(name) != value for name, value in self.changes.items())


def make_records(fields: Sequence[Field], tasks: Sequence[Task], *, seed: int, most: int) -> list[JsonObject]:
    """The records of a system, each with a value or nothing for every field.

    Args:
        fields: Of its records.
        tasks: All tasks for it.
        seed: Of the draw.
        most: Records that a task may mean.
    """
    draw = _Draw(fields, tasks, Random(seed))
    limited = [task.where for task in tasks if task.where]
    counts = [0] * len(limited)
    records: list[JsonObject] = []

    def take(record: JsonObject) -> bool:
        hit = [place for place, where in enumerate(limited) if _meets(where, record)]
        taken = record.get("id") is not None and any(record["id"] == other["id"] for other in records)
        if taken or any(counts[place] >= most for place in hit):
            return False
        for place in hit:
            counts[place] += 1
        records.append(record)
        return True

    for need in _needs(tasks):
        if any(need.is_met_by(record) for record in records):
            continue
        wanted = [need.one, need.other or need.one]
        drawn = (draw.record(wanted[number % 2]) for number in range(_TRIES))
        next((record for record in drawn if need.is_met_by(record) and take(record)), None)
    while len(records) < _FEWEST:
        take(draw.record(()))
    return records


def shortcomings(tasks: Sequence[Task], records: Sequence[JsonObject], *, most: int) -> list[str]:
    """Tasks that mean no record, too many or all, and mistakes that would have no other effect."""
    unmet = [need.name for need in _needs(tasks) if not any(need.is_met_by(record) for record in records)]
    sizes = {task.id: len(matching(task.where, records)) for task in tasks if task.where}
    return unmet + [
        f"{name} means {size}" for name, size in sizes.items() if not 0 < size <= min(most, len(records) - 1)
    ]


def _needs(tasks: Sequence[Task]) -> Iterator[_Need]:
    for task in tasks:
        if task.action == "create" or not task.where:
            continue
        right = right_meaning(task)
        changes = {change.field: change.value for change in task.changes}
        for kind, wrong in wrong_meanings(task).items():
            if wrong.where == right.where or task.action == "unclear":
                continue
            yield _Need(f"{task.id} {kind}", wrong.where, right.where, changes)
        yield _Need(f"{task.id} right", task.where, None, changes)


class _Draw:
    """Draws records.

    Args:
        fields: Of the records.
        tasks: Whose values are among those drawn.
        random: The source.
    """

    def __init__(self, fields: Sequence[Field], tasks: Sequence[Task], random: Random) -> None:
        self._random = random
        meanings = [meaning for task in tasks for meaning in (right_meaning(task), *wrong_meanings(task).values())]
        self._pools = {field.name: _pool(field, meanings) for field in fields}
        self._optional = {field.name for field in fields if field.optional}

    def record(self, where: Sequence[Condition]) -> JsonObject:
        """A record that meets conditions, if one can."""
        return {name: self._value(name, pool, where) for name, pool in self._pools.items()}

    def _value(self, name: str, pool: Sequence[Value], where: Sequence[Condition]) -> Value | None:
        own = [condition for condition in where if condition.field == name]
        if name == "id" and not own:
            return None
        fitting = [value for value in pool if all(holds(condition, {name: value}) for condition in own)]
        if not fitting or (not own and name in self._optional and self._random.random() < 0.5):
            return None
        return self._random.choice(fitting)


def _pool(field: Field, meanings: Sequence[Meaning]) -> list[Value]:
    """Values that tell apart what the tasks tell apart."""
    if field.labels:
        return list(field.labels)
    parts = [part for meaning in meanings for part in meaning.parts if part.field == field.name]
    said = {part.value for part in parts}
    match field.kind:
        case "id":
            return list(said)
        case "number":
            numbers = [value for value in said if isinstance(value, int)]
            return sorted({max(0, value + shift) for value in numbers for shift in (-1, 0, 1, value // 4)})
        case "text":
            found = {part.value for part in parts if isinstance(part, Condition)}
            return [*(f"{text} {value}" for value in sorted(map(str, found)) for text in _MORE_TEXTS[:2]), *_MORE_TEXTS]
        case "day":
            return sorted({shifted for value in said for shifted in _days_near(str(value))})
        case _:
            return sorted(said, key=str)


def _days_near(value: str) -> Iterator[str]:
    day = date.fromisoformat(value)
    return ((day + timedelta(days=shift)).isoformat() for shift in (-6, -1, 0, 1, 9))
