"""A plan held against the task's words before anything is done: values that nobody mentioned, mentions left unused.

Pure and general: it knows no system, only schemas, reference lists and the task. What it cannot know it does not
judge: texts that a model is meant to write itself, codes that no list explains, anything that comes by reference.
What it finds are doubts: the model is asked about them once; then `without` leaves out what may be left out, and a
doubt that remains stops a plan that would change data. A plan that says what the task says raises none.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, TypeAlias, cast

from toolcrib.agents.bounds import Bound, Side, written_bound
from toolcrib.agents.fields import Kind, Kinds
from toolcrib.agents.leaves import Leaf, Lists, Path, Step, leaves_of
from toolcrib.agents.mentions import Limit, Mentions, as_day, as_number, folded, read_mentions, stem, within
from toolcrib.agents.uses import Mention
from toolcrib.agents.words import COMMON, SPEAKING_OF
from toolcrib.contracts import Json, JsonObject
from toolcrib.providers import ReferenceItem, ReferenceList

Words: TypeAlias = tuple[str, ...]

_LONGEST_VALUE = 6
"""Words; a longer text is one that the model was meant to write."""
_ONE_OF_A_LIST: Final = re.compile(r"\$\{[^}]*\[-?\d+\]")
_EACH: Final = frozenset(("all", "each", "every", "everything"))


@dataclass(frozen=True, slots=True)
class Task:
    """What a plan is held against."""

    mentions: Mentions
    told: Mentions
    """What the task and the tool's own documentation mention together: a value may come from either."""
    lists: Lists
    vocabulary: frozenset[str]
    """Stems of the words by which the tools describe themselves."""
    kinds: Kinds = field(default_factory=dict[str, Kind])
    """What the fields hold that a plan may speak of."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Something in a plan that does not follow from the task."""

    step: str | None
    """Null: something that the task mentions and no step uses."""
    place: Path
    """What to leave out of the step's input; empty if it cannot be left out."""
    said: str
    unused: str = ""
    """The mention that no step uses."""

    def __str__(self) -> str:
        return self.said

    def advice(self, task: Task, selecting: str) -> str:
        """The doubt and where what is missing belongs.

        Args:
            task: What the plan is held against.
            selecting: The step that selects the items.
        """
        if not self.unused:
            return self.said
        fields = " or ".join(_fields(self.unused, task))
        said = f"{self.said}; add it to {selecting}{f' as {fields}' if fields else ''}"
        return f"{said} and keep the other conditions, unless it is what the items get"


def doubts(steps: Sequence[Step], task: Task) -> list[Doubt]:
    """What in the plan does not follow from the task, and what of the task is not in the plan."""
    leaves = [(step, leaf) for step in steps for leaf in leaves_of(step, task.lists)]
    found = [doubt for step, leaf in leaves if (doubt := _doubt(step, leaf, task)) is not None]
    found += [*_idle_changes(leaves), *_stray_changes(leaves, task), *_wrong_sides(leaves, task)]
    found += [doubt for step in steps if (doubt := _only_one(step, task)) is not None]
    for text in _unused([leaf for _, leaf in leaves], task):
        said = f"the task mentions {task.mentions.whole.get(text, text)!r}, but no step uses it"
        found.append(Doubt(None, (), said, text))
    return found


def mentioned(task: Task) -> list[Mention]:
    """What the task mentions and a plan is expected to use, in the order of the task; numbers stand last."""
    whole = task.mentions.whole
    found = [Mention(whole.get(text, text), _fields(text, task), _side(text, task)) for text in _unused([], task)]
    return sorted(found, key=lambda mention: _position(folded(mention.text), task.mentions.words))


def _side(text: str, task: Task) -> Side | None:
    """On which side of a number or date the task means others to be."""
    spelled = {period for other, period in task.mentions.dates if other == text}
    found: Iterator[Side] = (
        limit.bound.side for limit in task.mentions.limits if limit.is_at(text) or limit.period in spelled
    )
    return next(found, None)


def _position(words: Words, task: Words) -> int:
    places = (place for place in range(len(task)) if task[place : place + len(words)] == words)
    return next(places, len(task))


def is_idle(step: Step, task: Task) -> bool:
    """Whether a step would change nothing: it leaves open what to set, and has only references and defaults."""
    return (
        step.writes
        and _has_empty_object(step.input)
        and all(leaf.value is None or _is_structural(leaf) for leaf in leaves_of(step, task.lists))
    )


def _has_empty_object(value: Json) -> bool:
    if isinstance(value, list):
        return any(_has_empty_object(item) for item in cast("list[Json]", value))
    return isinstance(value, dict) and (not value or any(map(_has_empty_object, cast("JsonObject", value).values())))


def without(value: JsonObject, places: Sequence[Path]) -> JsonObject:
    """A step's input without what stands at these places; lists that become empty go too."""
    return cast("JsonObject", _pruned(value, (), frozenset(places)))


def leftover(steps: Sequence[Step], task: Task) -> list[str]:
    """English words of the task that neither the plan nor the tools know: what may have been overlooked."""
    leaves = [leaf for step in steps for leaf in leaves_of(step, task.lists)]
    if _has_codes(leaves, task):
        return []
    known = {stem(word) for leaf in leaves for text in _texts(leaf) for word in folded(text)}
    known |= {stem(word) for leaf in leaves for word in folded(leaf.name.replace("_", " "))}
    known |= {stem(word) for name in (*task.mentions.names, *task.mentions.quoted) for word in folded(name)}
    return [
        word
        for word in task.mentions.words
        if word not in COMMON and not any(letter.isdigit() for letter in word) and not _known(word, known, task)
    ]


def _known(word: str, known: set[str], task: Task) -> bool:
    return stem(word) in known or stem(word) in task.vocabulary


def _doubt(step: Step, leaf: Leaf, task: Task) -> Doubt | None:
    value = leaf.value
    if value is None or isinstance(value, bool) or _is_structural(leaf) or _is_mentioned(step, leaf, task):
        return None
    where = f"{step.id}: {leaf.name} {_shown(leaf)}"
    advice = "leave it out" if leaf.removable else "use what the task says, or ask"
    return Doubt(step.id, leaf.removable, f"{where} is not mentioned in the task; {advice}")


def _is_structural(leaf: Leaf) -> bool:
    """A reference, a default, or a word of the tool's own closed vocabulary that nothing explains to people."""
    if isinstance(leaf.value, str) and "${" in leaf.value:
        return True
    if any("default" in part and part["default"] == leaf.value for part in leaf.parts):
        return True
    return leaf.listed is None and any(
        leaf.value in part.get("enum", ()) or part.get("const") == leaf.value for part in leaf.parts
    )


def _is_mentioned(step: Step, leaf: Leaf, task: Task) -> bool:
    mentions, value = task.told, leaf.value
    if not isinstance(value, str):
        return not isinstance(value, int | float) or Decimal(str(abs(value))) in mentions.numbers
    item = _item(leaf)
    if item is not None:
        return mentions.has(str(item.value)) or _label_is_meant(item, leaf.listed, mentions)
    if leaf.listed is not None:
        return False
    day = as_day(value)
    if day is not None:
        return mentions.has_day(day)
    words = folded(value)
    if mentions.has(value) or _is_opaque(leaf) or len(words) > _LONGEST_VALUE or not words:
        return True
    return step.writes or not leaf.removable or not set(map(stem, words)).isdisjoint(map(stem, mentions.words))


def _has_codes(leaves: Sequence[Leaf], task: Task) -> bool:
    """Whether the plan has codes that neither the task nor a list explains: they may stand for anything it mentions."""
    return any(_is_foreign(leaf.value) or (_is_opaque(leaf) and not task.told.has(str(leaf.value))) for leaf in leaves)


def _is_foreign(value: Json) -> bool:
    """A reference to something else than the item that a step is done for."""
    return isinstance(value, str) and "${" in value and "${item" not in value


def _is_opaque(leaf: Leaf) -> bool:
    """A code that no list explains: what it stands for cannot be told from here."""
    if leaf.listed is not None or not isinstance(leaf.value, str) or "${" in leaf.value:
        return False
    return as_day(leaf.value) is None and any(letter.isdigit() for letter in leaf.value)


def _label_is_meant(item: ReferenceItem, listed: ReferenceList | None, mentions: Mentions) -> bool:
    """Whether the task has the label, or more words of it than of any other label."""
    if mentions.has(item.label):
        return True
    said = {stem(word) for word in mentions.words} - {stem(word) for word in COMMON}
    overlap = _overlap(item.label, said)
    others = (_overlap(other.label, said) for other in (listed.items if listed else ()) if other.label != item.label)
    return overlap > max(others, default=0)


def _overlap(label: str, said: set[str]) -> int:
    return len(said & {stem(word) for word in folded(label)})


def _wrong_sides(leaves: Sequence[tuple[Step, Leaf]], task: Task) -> Iterator[Doubt]:
    """Conditions that compare with a number or day otherwise than the task says: more or less, before or after."""
    for step, leaf in leaves:
        limits = [limit for limit in task.mentions.limits if limit.is_at(str(leaf.value))]
        name = str(leaf.path[-1]) if leaf.path else ""
        if not limits:
            continue
        meant = f"{'at or ' if limits[0].bound.inclusive else ''}{limits[0].bound.side} {leaf.value}"
        written = written_bound(leaf.around, leaf.value, name)
        if step.writes and written is None:
            yield Doubt(step.id, (), f"{step.id} sets {leaf.name} to {leaf.value}, but the task means what is {meant}")
        elif written is not None and not any(_agrees(limit, written) for limit in limits):
            yield Doubt(step.id, (), f"{step.id}: the task means {leaf.name} {meant}, not {written.side} it")


def _agrees(limit: Limit, written: Bound) -> bool:
    """Days may be compared with the neighbouring day instead, so only their side counts."""
    same = limit.bound.inclusive == written.inclusive
    return limit.bound.side == written.side and (same or limit.period is not None)


def _only_one(step: Step, task: Task) -> Doubt | None:
    """A change of one item of a list where the task says that all are meant."""
    texts = [step.for_each or "", *(leaf.value for leaf in leaves_of(step, {}) if isinstance(leaf.value, str))]
    one = next((text for text in texts if _ONE_OF_A_LIST.search(text)), None)
    if one is None or not step.writes or _EACH.isdisjoint(task.mentions.words):
        return None
    return Doubt(step.id, (), f"{step.id} is done for {one} alone, but the task says all; set for_each to the list")


def _idle_changes(leaves: Sequence[tuple[Step, Leaf]]) -> list[Doubt]:
    """Changes of a property to the very value by which the items were selected."""
    selected = {(leaf.name, str(leaf.value)) for step, leaf in leaves if not step.writes and not _is_structural(leaf)}
    return [
        Doubt(
            step.id,
            (),
            f"{step.id} sets {leaf.name} to {_shown(leaf)}, by which the items are selected: that changes nothing. "
            "Select by something else, or skip the step if the task only asks",
        )
        for step, leaf in leaves
        if step.writes and (leaf.name, str(leaf.value)) in selected
    ]


def _stray_changes(leaves: Sequence[tuple[Step, Leaf]], task: Task) -> list[Doubt]:
    """Names that end in a field of existing items that the task does not speak of, and texts that select them too."""
    selected = {folded(leaf.value) for step, leaf in leaves if not step.writes and isinstance(leaf.value, str)}
    names = {folded(name) for name in task.mentions.names}
    return [
        Doubt(step.id, leaf.removable, f"{step.id} sets {leaf.name}, of which the task does not speak; leave it out")
        for step, leaf in leaves
        if step.writes
        and leaf.removable
        and leaf.listed is None
        and isinstance(leaf.value, str)
        and (folded(leaf.value) in selected or (step.for_each and folded(leaf.value) in names))
        and not _speaks_of(leaf.name, task)
    ]


def _speaks_of(name: str, task: Task) -> bool:
    """Whether the task has a word of a field's name, or one by which people speak of such a field."""
    said = {stem(word) for word in task.mentions.words}
    words = folded(name.replace("_", " "))
    meant = {stem(other) for word in words for other in (word, *SPEAKING_OF.get(word, ()))}
    return not said.isdisjoint(meant)


def _unused(leaves: Sequence[Leaf], task: Task) -> list[str]:
    """What the task mentions by name, quote, number or label and no step uses."""
    texts = [folded(text) for leaf in leaves for text in _texts(leaf)]
    numbers = {number for text in (str(leaf.value) for leaf in leaves) if (number := as_number(text)) is not None}
    plain = [folded(text) for leaf in leaves if leaf.name in leaf.path for text in _texts(leaf)]
    mentioned = (*task.mentions.quoted, *task.mentions.names)
    missing = [name for name in mentioned if _is_missing(folded(name), texts, plain, task)]
    labels = [label for label in _labels(task) if not any(within(folded(label), text) for text in texts)]
    words = [word for leaf in leaves for text in _texts(leaf) if as_day(text) is None for word in folded(text)]
    written = {number for word in words if (number := as_number(word)) is not None}
    whole = dict.fromkeys([*missing, *labels])
    inside = {name for name in whole for other in whole if name != other and within(folded(name), folded(other))}
    parts = [] if _has_codes(leaves, task) else [name for name in whole if name not in inside]
    if any(_is_foreign(leaf.value) for leaf in leaves):
        return parts
    counts = [str(max(readings)) for readings in task.mentions.counted if readings.isdisjoint(numbers | written)]
    return [*parts, *_unused_dates(leaves, task), *counts]


def _unused_dates(leaves: Sequence[Leaf], task: Task) -> list[str]:
    """Dates of the task that no value is or contains. What may be read in two ways is used if one of them is."""
    values = [leaf.value for leaf in leaves if isinstance(leaf.value, str)]
    days = [day for value in values if (day := as_day(value)) is not None]
    spelled = {period for value in values for period in read_mentions(value).periods}
    used = {
        text for text, period in task.mentions.dates if period in spelled or any(period.touches(day) for day in days)
    }
    return [text for text in dict.fromkeys(text for text, _ in task.mentions.dates) if text not in used]


def _fields(text: str, task: Task) -> tuple[str, ...]:
    """The fields that a mention may be."""
    listed = [name for name, values in task.lists.items() if any(text == item.label for item in values.items)]
    dated = any(text == spelled for spelled, _ in task.mentions.dates)
    kind = "day" if dated else "text" if as_number(text) is None else "number"
    others = [name for name, known in task.kinds.items() if known == kind and name not in task.lists]
    return tuple(listed or [name for name in others if name != "id" and not name.endswith("_id")])


def _is_missing(words: Words, texts: Sequence[Words], plain: Sequence[Words], task: Task) -> bool:
    """Whether nothing uses a name. A plain argument may say a part of it; a condition compares with the whole."""
    if any(within(words, text) for text in texts) or any(within(text, words) for text in plain):
        return False
    return not all(stem(word) in task.vocabulary or word in COMMON for word in words)


def _labels(task: Task) -> Iterator[str]:
    """Labels that the task has word by word, without those that only stand inside a longer one."""
    lists = {id(values): values for values in task.lists.values()}.values()
    found = dict.fromkeys(item.label for values in lists for item in values.items if task.mentions.has(item.label))
    for label in found:
        inside = any(label != other and within(folded(label), folded(other)) for other in found)
        if not inside and not all(stem(word) in task.vocabulary for word in folded(label)):
            yield label


def _item(leaf: Leaf) -> ReferenceItem | None:
    if leaf.listed is None:
        return None
    return next((item for item in leaf.listed.items if item.value == leaf.value), None)


def _texts(leaf: Leaf) -> Iterator[str]:
    """The value as people may have said it."""
    if isinstance(leaf.value, str) and "${" not in leaf.value:
        yield leaf.value
    item = _item(leaf)
    if item is not None:
        yield item.label


def _shown(leaf: Leaf) -> str:
    item = _item(leaf)
    return repr(item.label) if item is not None else repr(leaf.value)


def _pruned(value: Json, path: Path, places: frozenset[Path]) -> Json:
    if isinstance(value, dict):
        kept = {
            name: _pruned(item, (*path, name), places)
            for name, item in cast("JsonObject", value).items()
            if (*path, name) not in places
        }
        return {name: item for name, item in kept.items() if not _became_empty(value[name], item)}
    if isinstance(value, list):
        elements = cast("list[Json]", value)
        kept_items = [
            (element, _pruned(element, (*path, place), places))
            for place, element in enumerate(elements)
            if (*path, place) not in places
        ]
        return [after for before, after in kept_items if not _became_empty(before, after)]
    return value


def _became_empty(before: Json, after: Json) -> bool:
    return isinstance(after, list | dict) and not after and bool(before)
