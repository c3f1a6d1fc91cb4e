"""What a task means, and the same with one mistake: the mistakes of the corpus, for any system.

Where a task cannot be done as said, a careless planner guesses; that guess is its only mistake.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, cast

from tests.corpus.corpus import Change, Condition, Part, Task

Mistake: TypeAlias = Literal[
    "other_value",
    "lost",
    "lost_as_none",
    "added",
    "added_with_words",
    "other_company",
    "invented_id",
]

MISTAKES: Final[tuple[Mistake, ...]] = (
    "other_value",
    "lost",
    "lost_as_none",
    "added",
    "added_with_words",
    "other_company",
    "invented_id",
)
"""other_value: right words, wrong value. lost: a condition and its words are gone. lost_as_none: its words are said to
mean nothing. added: a condition without words. added_with_words: with the words of something else. other_company: the
condition on the main party, with another one. invented_id: the writing step names a record that is not meant."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What somebody has read from a task, right or wrong."""

    task: Task
    where: tuple[Condition, ...]
    changes: tuple[Change, ...]
    rest: tuple[str, ...]
    """Pieces of the task that are said to mean nothing."""
    invents: bool = False
    """The writing step names a record instead of those that were found."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """The conditions and the changes."""
        return (*self.where, *self.changes)

    def with_part(self, part: Part) -> "Meaning":
        """The same with one more condition or change."""
        if isinstance(part, Condition):
            return replace(self, where=(*self.where, part))
        return replace(self, changes=(*self.changes, part))

    def without(self, parts: tuple[Part, ...]) -> "Meaning":
        """The same without some conditions or changes."""
        where = tuple(part for part in self.where if part not in parts)
        return replace(self, where=where, changes=tuple(part for part in self.changes if part not in parts))

    def with_value(self, old: Part, value: Any) -> "Meaning":
        """The same with another value in place of one's own."""
        new = replace(old, value=value)
        where = tuple(cast("Condition", new) if part is old else part for part in self.where)
        return replace(self, where=where, changes=tuple(cast("Change", new) if p is old else p for p in self.changes))


def right_meaning(task: Task) -> Meaning:
    """What the task means."""
    return Meaning(task, task.where, task.changes, task.rest)


def wrong_meanings(task: Task) -> dict[Mistake, Meaning]:
    """The task with each mistake that fits it."""
    return dict(_wrong(task, right_meaning(task)))


def _wrong(task: Task, right: Meaning) -> Iterator[tuple[Mistake, Meaning]]:
    wrong = task.wrong
    if task.action == "unclear":
        yield "other_value", right.with_part(_guess(task, wrong["other_value"]))
        return
    told: Mapping[str, Any] = wrong["other_value"]
    yield "other_value", right.with_value(_meant(right, told), told["value"])
    if "lost" in wrong:
        lost: tuple[Part, ...] = tuple(part for part in right.where if part.field == wrong["lost"]["field"])
        without = right.without(lost)
        yield "lost", without
        words = tuple(dict.fromkeys(part.words for part in lost))
        yield "lost_as_none", replace(without, rest=(*right.rest, *words))
    if "added" in wrong:
        added = _added(task, wrong["added"])
        yield "added", right.with_part(added)
        yield "added_with_words", right.with_part(replace(added, words=_words_of_something_else(task)))
    if "other_company" in wrong:
        told = wrong["other_company"]
        party = next(part for part in right.parts if part.field == told["field"])
        yield "other_company", right.with_value(party, told["value"])
    if task.writes:
        yield "invented_id", replace(right, invents=True)


def _meant(right: Meaning, told: Mapping[str, Any]) -> Part:
    """The part whose value is mistaken."""
    parts = right.where if told["in"] == "where" else right.changes
    named = [part for part in parts if part.field == told["field"]]
    op = told.get("op")
    return next((part for part in named if isinstance(part, Condition) and part.op == op), named[0])


def _added(task: Task, told: Mapping[str, Any]) -> Part:
    if task.action == "create":
        return Change(told["field"], told["value"])
    return Condition(told["field"], told["op"], told["value"])


def _guess(task: Task, told: Mapping[str, Any]) -> Part:
    if told["in"] == "set":
        return Change(told["field"], told["value"], task.unclear)
    return Condition(told["field"], told.get("op", "is"), told["value"], task.unclear)


def _words_of_something_else(task: Task) -> str:
    """A piece of the task that says something else, or nothing."""
    pieces = list(dict.fromkeys((*task.rest, *(part.words for part in (*task.where, *task.changes)))))
    return pieces[task.picked(len(pieces), "words")]
