"""Prompts for outlines: write an outline, use remaining words, check single values.

Each prompt begins with the same few examples, from another domain than the task, because small models follow examples
better than rules, and so that providers can cache the beginning.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Final

import orjson

from toolcrib.agents.evidence import Finding, describe_finding
from toolcrib.agents.planner.outline import DAY, NUMBER, TEXT, InputPath, Outline
from toolcrib.agents.prepare.agentic_tool import Setup
from toolcrib.contracts import Json, JsonObject, JsonSchema
from toolcrib.llm import Message, Text, user

_NAME: Final = "Alder Works"
_TITLE: Final = "Spring offer"
_LESS: Final = "less than"
_FROM: Final = "on or after"
_TO: Final = "on or before"
_BEFORE: Final = "before"


def examples_of(outline: Outline) -> list[tuple[str, JsonObject]]:
    """The examples for some steps: two changes and a question, or two tasks that make something new."""
    tasks = _ExampleTasks(outline)
    return list(tasks.makings() if outline.makes else tasks.changes())


class _ExampleTasks:
    """Example tasks and their outlines, with the fields that there are."""

    def __init__(self, outline: Outline) -> None:
        fields = outline.conditions
        settable = {one.name: one for one in outline.changes}
        closed = [one for one in fields if len(one.values) > 1]
        texts = [one for one in fields if one.value == TEXT and not one.name.endswith("id")]
        self._text = next((one for one in texts if one.name.endswith("_name")), texts[0] if texts else None)
        self._label = next((one for one in closed if one.name in settable), closed[0] if closed else None)
        self._number = next((one for one in fields if one.value == NUMBER and _LESS in one.comparisons), None)
        self._day = next((one for one in fields if one.value == DAY and {_FROM, _TO} <= one.comparisons.keys()), None)
        self._change = settable.get(self._label.name) if self._label is not None else None
        others = [one for one in outline.changes if one.values and one is not self._change]
        self._other = max(others, key=lambda one: len(one.values), default=None)
        self._settable = outline.changes

    def changes(self) -> Iterator[tuple[str, JsonObject]]:
        """Items that get something, and items that are counted."""
        if self._change is not None:
            target = next(iter(self._change.values))
            under, limit = self._under()
            task = f"Everything{self._of()}{self._with()}{under}: set {_spoken(self._change)} to {target}"
            yield (
                task,
                _make_outline([*self._name_conditions(), *self._label_conditions(), *limit], [(self._change, target)]),
            )
        if self._other is not None:
            target = next(iter(self._other.values))
            before, days = self._before()
            task = f"Everything{self._of()}{self._with()}{before} goes to {target}"
            yield (
                task,
                _make_outline([*self._name_conditions(), *self._label_conditions(), *days], [(self._other, target)]),
            )
        month, days = self._in_may() if self._day is not None else self._under()
        task = f"How many are there, of everything{self._of()}{self._with()}{month}?"
        yield task, _make_outline([*self._name_conditions(), *self._label_conditions(), *days], [])

    def makings(self) -> Iterator[tuple[str, JsonObject]]:
        """New things with their values."""
        number = next((one for one in self._settable if one.value == NUMBER), None)
        needed = [one for one in self._settable if one.required or one is number]
        for form, last in (("Please add one{0}: {1}", False), ("New, with {1}{0}", True)):
            given = [(one, list(one.values)[-last] if one.values else _example_value(one)) for one in needed]
            listed = ", ".join(f"{_spoken(one)} {value}" for one, value in given)
            yield (
                form.format(self._of().replace(" of ", " for "), listed),
                _make_outline(self._name_conditions(), given),
            )

    def _of(self) -> str:
        return f" of {_NAME}" if self._text is not None else ""

    def _name_conditions(self) -> list[JsonObject]:
        return [] if self._text is None else [_condition(self._text, _NAME, _NAME)]

    def _with(self) -> str:
        return "" if self._label is None else f" with {_spoken(self._label)} {list(self._label.values)[-1]}"

    def _label_conditions(self) -> list[JsonObject]:
        if self._label is None:
            return []
        return [_condition(self._label, self._with().strip(), list(self._label.values)[-1])]

    def _under(self) -> tuple[str, list[JsonObject]]:
        return ("", []) if self._number is None else (" under 2k", [_condition(self._number, "under 2k", 2000, _LESS)])

    def _before(self) -> tuple[str, list[JsonObject]]:
        if self._day is None or _BEFORE not in self._day.comparisons:
            return "", []
        words = f"{_spoken(self._day)} before 2026-05-01"
        return f", {words},", [_condition(self._day, words, "2026-05-01", _BEFORE)]

    def _in_may(self) -> tuple[str, list[JsonObject]]:
        if self._day is None:
            return "", []
        words = f"{_spoken(self._day)} in May 2026"
        ends = ((_FROM, "2026-05-01"), (_TO, "2026-05-31"))
        return f", {words}", [_condition(self._day, words, day, comparison) for comparison, day in ends]


def _example_value(place: InputPath) -> Json:
    return 2000 if place.value == NUMBER else "2026-05-01" if place.value == DAY else _TITLE


def _condition(place: InputPath, words: str, value: Json, comparison: str = "is") -> JsonObject:
    compared = {"comparison": comparison} if place.comparisons else {}
    return {"words": words, "field": place.name, **compared, "value": value}


def _make_outline(conditions: Sequence[JsonObject], changes: Sequence[tuple[InputPath, Json]]) -> JsonObject:
    entries = [{"words": str(value), "field": place.name, "value": value} for place, value in changes]
    outline: JsonObject = {"wants": "change" if entries else "answer", "conditions": list(conditions)}
    return {**outline, "changes": entries} if entries else outline


def _spoken(place: InputPath) -> str:
    return place.name.removesuffix("_id").replace("_", " ")


_OUTLINE: Final = """{purpose}

You read a task. "wants" is change if items shall be changed or made, answer if the task only asks for something, and \
other if neither can be said with these fields. Then list each condition by which the task says which items are meant: \
one for every name, number, date and label. Then list each change: what these items get. What they get is no \
condition. Copy the exact words of the task into "words". If the task names something that is not among the valid \
values, the value is "none of these".

{fields}"""

WORDS_SYSTEM: Final = """Somebody has read a task. You get the words of it that were not used. Say of each word what \
it does: it restricts which items are meant further than what was read (restricts), it belongs to what was read \
(read), it asks for the change (asks), or it only joins other words (joins)."""

VALUE_SYSTEM: Final = """You check one thing that somebody has read from a task. A condition says which items are \
meant before the change; what the items are changed to is no condition. First copy the words of the task that say it, \
or none; then answer yes or no."""

_WORD_EXAMPLES: Final = (
    (
        "Please put every overdue invoice of Alder Works worth under 2k on hold",
        "company Alder Works, amount less than 2000, set status on hold",
        "Please=asks put=asks every=joins overdue=restricts invoice=joins of=joins worth=read on=joins",
    ),
    (
        "Ann takes over big tickets without a reply, but only those in Open",
        "status Open, set assignee Ann",
        "takes=asks over=asks big=restricts without=restricts reply=restricts but=joins only=joins those=joins",
    ),
    (
        "Could you give all of Bo's tickets assigned in May to Ann?",
        "assignee Bo, set assignee Ann",
        "Could=asks you=asks give=asks all=joins of=joins assigned=read in=joins May=restricts to=joins",
    ),
    (
        "The open invoices of Alder Works should now become Paid",
        "customer Alder Works, status Open, set status Paid",
        "The=joins invoices=joins of=joins should=asks now=joins become=asks",
    ),
    (
        "Alder Works: complaints go to Ann",
        "customer Alder Works, set assignee Ann",
        "complaints=restricts go=asks to=joins",
    ),
)
_VALUE_EXAMPLES: Final[Sequence[tuple[str, str, str, str, str]]] = (
    ("Ann takes over Bo's tickets in Open", "assignee becomes Ann", "condition: assignee is Ann", "none", "no"),
    (
        "Alder Works: every ticket of Bo due before May goes to Ann",
        "assignee becomes Ann",
        "condition: assignee is Bo",
        "every ticket of Bo",
        "yes",
    ),
    ("Please mark Ann's order as paid", "status becomes Paid", "change: status becomes Paid", "mark as paid", "yes"),
    ("Please hand the tickets to Ann", "assignee becomes Ann", "condition: queue is Support", "none", "no"),
)


def outline_system(setup: Setup, outline: Outline) -> str:
    """The system prompt of an outline: what the tool is for, and what can be said of which fields."""
    known = (setup.tool.definition.description, setup.implementation.context.documentation)
    return _OUTLINE.format(purpose="\n\n".join(filter(None, known)), fields=outline.fields())


def outline_question(task: str, today: date, missed: Sequence[str] = (), *, lacking: Sequence[str] = ()) -> str:
    """Asks for an outline of a task; `missed` are words that it must have, `lacking` what its changes must say."""
    words = ", ".join(f'"{one}"' for one in missed)
    hints = [f"Do not forget {words}."] if missed else []
    hints += [f'Say in "changes": {", ".join(lacking)}.'] if lacking else []
    return "\n".join((f"Today is {today:%A, %Y-%m-%d}.", f"Task: {task}", *hints))


def outline_examples(outline: Outline, today: date) -> tuple[Message, ...]:
    """Tasks with their outlines, in the words of the fields."""
    return _turns((outline_question(task, today), written) for task, written in examples_of(outline))


def words_question(task: str, read: str, words: Sequence[str]) -> str:
    """Asks what words do that nothing was read from."""
    return f"Task: {task}\nRead: {read}\nWords: {', '.join(words)}"


def words_examples() -> tuple[Message, ...]:
    """Answered questions of this kind."""
    answers = [
        (task, read, dict(part.split("=") for part in readings.split())) for task, read, readings in _WORD_EXAMPLES
    ]
    return _turns((words_question(task, read, list(readings)), {**readings}) for task, read, readings in answers)


def words_schema(words: Sequence[str]) -> JsonSchema:
    """The JSON Schema of the answer."""
    says: JsonSchema = {"type": "string", "enum": ["restricts", "read", "asks", "joins"]}
    return {
        "type": "object",
        "properties": dict.fromkeys(words, says),
        "required": list(words),
        "additionalProperties": False,
    }


def value_question(task: str, changes: str, subject: str) -> str:
    """Asks whether a task says one thing."""
    return f"Task: {task}\nThe change: {changes}.\nRead as {subject}"


def value_examples() -> tuple[Message, ...]:
    """Answered questions of this kind."""
    return _turns(
        (value_question(task, changes, subject), {"words": words, "stated": stated})
        for task, changes, subject, words, stated in _VALUE_EXAMPLES
    )


VALUE_SCHEMA: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "words": {"type": "string", "maxLength": 80},
        "stated": {"type": "string", "enum": ["yes", "no"]},
    },
    "required": ["words", "stated"],
    "additionalProperties": False,
}


def read_of(findings: Sequence[Finding]) -> str:
    """What was read from a task."""
    return ", ".join(("set " if found.role == "change" else "") + describe_finding(found) for found in findings)


def subject_of(found: Finding) -> str:
    """One thing that was read from a task."""
    if found.role == "change":
        return f"change: {found.field} becomes {found.shown}"
    return f"condition: {found.field} {found.leaf.comparison or 'is'} {found.shown}"


def _turns(pairs: Iterable[tuple[str, JsonObject]]) -> tuple[Message, ...]:
    return tuple(
        message
        for question, answer in pairs
        for message in (user(question), Message("assistant", (Text(orjson.dumps(answer).decode()),)))
    )
