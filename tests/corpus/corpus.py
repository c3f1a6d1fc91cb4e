"""The corpus: tasks as people type them, each with what it means and with mistakes that a planner may make.

`tasks/SYSTEM.yaml` holds 60 tasks for each of four systems, in nine languages, written by people who knew nothing of
how plans are checked. All of them were typed on one day, `TODAY`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

import yaml

Action: TypeAlias = Literal["update", "delete", "cancel", "create", "read", "unclear"]
Op: TypeAlias = Literal[
    "is",
    "is_not",
    "more_than",
    "at_least",
    "less_than",
    "at_most",
    "before",
    "on_or_before",
    "on",
    "on_or_after",
    "after",
    "contains",
]
SystemName: TypeAlias = Literal["crm", "tickets", "calendar", "orders"]
Value: TypeAlias = str | int
"""A label, a name, a number, a day as `YYYY-MM-DD`, a time as `HH:MM`."""

SYSTEM_NAMES: Final[tuple[SystemName, ...]] = ("crm", "tickets", "calendar", "orders")
LANGUAGES: Final = ("en", "de", "fr", "es", "pt", "pl", "tr", "ja", "zh")
TODAY: Final = date(2026, 3, 11)


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition on which records are meant."""

    field: str
    op: Op
    value: Value
    words: str = ""
    """The piece of the task that says it; empty if none does."""


@dataclass(frozen=True, slots=True)
class Change:
    """One value that the records get."""

    field: str
    value: Value
    words: str = ""


Part: TypeAlias = Condition | Change


@dataclass(frozen=True, slots=True)
class Task:
    """One task, and what it means."""

    id: str
    system: SystemName
    language: str
    traits: frozenset[str]
    action: Action
    text: str
    where: tuple[Condition, ...]
    changes: tuple[Change, ...]
    rest: tuple[str, ...]
    """Pieces of the task that neither restrict nor set anything."""
    wrong: Mapping[str, Any]
    """Mistakes by kind, as they stand in the file."""
    unclear: str = ""
    """The piece of the task that cannot be done as said."""

    @property
    def verbatim(self) -> bool:
        """Whether every value stands in the task as the system has it."""
        return "verbatim" in self.traits

    @property
    def writes(self) -> bool:
        """Whether it changes records that there are."""
        return self.action in {"update", "delete", "cancel"}

    def picked(self, count: int, why: str = "") -> int:
        """A number below `count` that follows from the task's id: other tasks get others, and it never changes."""
        return int.from_bytes(sha256(f"{self.id}{why}".encode()).digest()[:4]) % count


@cache
def load(system: SystemName) -> tuple[Task, ...]:
    """The tasks of one system, in the order of its file."""
    path = Path(__file__).parent / "tasks" / f"{system}.yaml"
    entries = cast("Sequence[Mapping[str, Any]]", yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader))
    return tuple(_task(system, entry) for entry in entries)


def find(name: str) -> Task:
    """The task with an id."""
    system = cast("SystemName", name.partition("-")[0])
    return next(task for task in load(system) if task.id == name)


def _task(system: SystemName, entry: Mapping[str, Any]) -> Task:
    return Task(
        id=entry["id"],
        system=system,
        language=entry["language"],
        traits=frozenset(entry["traits"]),
        action=entry["action"],
        text=entry["task"],
        where=tuple(Condition(**condition) for condition in entry["where"]),
        changes=tuple(Change(**change) for change in entry["set"]),
        rest=tuple(entry["rest"]),
        wrong=entry["wrong"],
        unclear=entry.get("unclear", {}).get("words", ""),
    )
