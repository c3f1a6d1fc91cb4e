"""A plan held against the task's words before anything is done: values that nobody mentioned, mentions left unused.

Pure and general: it knows no system, only schemas, reference lists and the task. What it cannot know it does not
judge: texts that a model is meant to write itself, codes that no list explains, anything that comes by reference.
What it finds are doubts: the model is asked about them once; then `without` leaves out what may be left out, and a
doubt that remains stops a plan that would change data. A plan that says what the task says raises none.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias, cast

from toolcrib.agents.labels import paired
from toolcrib.agents.mentions import Mentions, as_day, as_number, folded, stem, within
from toolcrib.agents.plan import composing
from toolcrib.agents.words import COMMON
from toolcrib.contracts import Json, JsonObject, JsonSchema
from toolcrib.providers import ReferenceItem, ReferenceList

Path: TypeAlias = tuple[str | int, ...]
Words: TypeAlias = tuple[str, ...]
Lists: TypeAlias = Mapping[str, ReferenceList]
"""Reference lists by the name of the property whose values they are."""

_LONGEST_VALUE = 6
"""Words; a longer text is one that the model was meant to write."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a plan is held against."""

    mentions: Mentions
    told: Mentions
    """What the task and the tool's own documentation mention together: a value may come from either."""
    lists: Lists
    vocabulary: frozenset[str]
    """Stems of the words by which the tools describe themselves."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step that is not skipped."""

    id: str
    input: JsonObject
    schema: JsonSchema
    writes: bool


@dataclass(frozen=True, slots=True)
class Doubt:
    """Something in a plan that does not follow from the task."""

    step: str | None
    """Null: something that the task mentions and no step uses."""
    place: Path
    """What to leave out of the step's input; empty if it cannot be left out."""
    said: str

    def __str__(self) -> str:
        return self.said


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A value in a step's input."""

    path: Path
    value: Json
    name: str
    """The property that it is a value of, also where a pair names that property."""
    parts: Sequence[JsonSchema]
    listed: ReferenceList | None
    removable: Path
    """The smallest thing around it that may be left out; empty if there is none."""


def doubts(steps: Sequence[Step], task: Task) -> list[Doubt]:
    """What in the plan does not follow from the task, and what of the task is not in the plan."""
    leaves = [(step, leaf) for step in steps for leaf in _leaves(step, task)]
    found = [doubt for step, leaf in leaves if (doubt := _doubt(step, leaf, task)) is not None]
    found += [*_idle_changes(leaves), *_stray_changes(leaves, task)]
    return [*found, *_unused([leaf for _, leaf in leaves], task)]


def without(value: JsonObject, places: Sequence[Path]) -> JsonObject:
    """A step's input without what stands at these places; lists that become empty go too."""
    return cast("JsonObject", _pruned(value, (), frozenset(places)))


def leftover(steps: Sequence[Step], task: Task) -> list[str]:
    """English words of the task that neither the plan nor the tools know: what may have been overlooked."""
    leaves = [leaf for step in steps for leaf in _leaves(step, task)]
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


def _leaves(step: Step, task: Task) -> Iterator[_Leaf]:
    yield from _walk(step.input, step.schema, _Place(step, task.lists))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a walk through an input is."""

    step: Step
    lists: Lists
    path: Path = ()
    name: str = ""
    listed: ReferenceList | None = None
    removable: Path = ()


def _walk(value: Json, node: Json, at: _Place) -> Iterator[_Leaf]:
    parts = composing(node, at.step.schema)
    if isinstance(value, dict):
        yield from _walk_object(cast("JsonObject", value), parts, at)
    elif isinstance(value, list):
        items: Json = next((part["items"] for part in parts if "items" in part), None)
        elements = cast("list[Json]", value)
        for place, element in enumerate(elements):
            path = (*at.path, place)
            may_go = path if not at.step.writes or len(elements) > 1 else at.removable
            yield from _walk(element, items, _Place(at.step, at.lists, path, at.name, at.listed, may_go))
    else:
        yield _Leaf(at.path, value, at.name, parts, at.listed, at.removable)


def _walk_object(value: JsonObject, parts: Sequence[JsonSchema], at: _Place) -> Iterator[_Leaf]:
    required = {name for part in parts for name in part.get("required", ())}
    pair = paired(value, at.lists)
    in_condition = bool(at.path) and isinstance(at.path[-1], int) and not at.step.writes
    subject = _subject(value, parts, at.step.schema) if in_condition else None
    for name, item in value.items():
        schema = _property(parts, name)
        path = (*at.path, name)
        may_go = at.removable if in_condition or name in required else path
        closed = any(item in part.get("enum", ()) for part in composing(schema, at.step.schema))
        listed = at.lists.get(name, None if closed else pair)
        meant = subject if subject is not None and item != subject else name
        yield from _walk(item, schema, _Place(at.step, at.lists, path, meant, listed, may_go))


def _property(parts: Sequence[JsonSchema], name: str) -> Json:
    return next((part["properties"][name] for part in parts if name in part.get("properties", ())), None)


def _subject(value: JsonObject, parts: Sequence[JsonSchema], root: JsonSchema) -> str | None:
    """What a condition is about: its first member from a closed vocabulary, such as `{"property": "amount", …}`."""
    for name, item in value.items():
        schema = _property(parts, name)
        if isinstance(item, str) and any(item in part.get("enum", ()) for part in composing(schema, root)):
            return item
    return None


def _doubt(step: Step, leaf: _Leaf, task: Task) -> Doubt | None:
    value = leaf.value
    if value is None or isinstance(value, bool) or _is_structural(leaf) or _is_mentioned(step, leaf, task):
        return None
    where = f"{step.id}: {leaf.name} {_shown(leaf)}"
    advice = "leave it out" if leaf.removable else "use what the task says, or ask"
    return Doubt(step.id, leaf.removable, f"{where} is not mentioned in the task; {advice}")


def _is_structural(leaf: _Leaf) -> bool:
    """A reference, a default, or a word of the tool's own closed vocabulary that nothing explains to people."""
    if isinstance(leaf.value, str) and "${" in leaf.value:
        return True
    if any("default" in part and part["default"] == leaf.value for part in leaf.parts):
        return True
    return leaf.listed is None and any(
        leaf.value in part.get("enum", ()) or part.get("const") == leaf.value for part in leaf.parts
    )


def _is_mentioned(step: Step, leaf: _Leaf, task: Task) -> bool:
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


def _has_codes(leaves: Sequence[_Leaf], task: Task) -> bool:
    """Whether the plan has codes that neither the task nor a list explains: they may stand for anything it mentions."""
    return any(_is_foreign(leaf.value) or (_is_opaque(leaf) and not task.told.has(str(leaf.value))) for leaf in leaves)


def _is_foreign(value: Json) -> bool:
    """A reference to something else than the item that a step is done for."""
    return isinstance(value, str) and "${" in value and "${item" not in value


def _is_opaque(leaf: _Leaf) -> bool:
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


def _idle_changes(leaves: Sequence[tuple[Step, _Leaf]]) -> list[Doubt]:
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


def _stray_changes(leaves: Sequence[tuple[Step, _Leaf]], task: Task) -> list[Doubt]:
    """Texts that select the items and are also written into a field that the task does not speak of."""
    selected = {folded(leaf.value) for step, leaf in leaves if not step.writes and isinstance(leaf.value, str)}
    said = {stem(word) for word in task.mentions.words}
    return [
        Doubt(step.id, leaf.removable, f"{step.id} sets {leaf.name}, of which the task does not speak; leave it out")
        for step, leaf in leaves
        if step.writes
        and leaf.removable
        and leaf.listed is None
        and isinstance(leaf.value, str)
        and folded(leaf.value) in selected
        and said.isdisjoint(stem(word) for word in folded(leaf.name.replace("_", " ")))
    ]


def _unused(leaves: Sequence[_Leaf], task: Task) -> list[Doubt]:
    """What the task mentions by name, quote, number or label and no step uses."""
    texts = [folded(text) for leaf in leaves for text in _texts(leaf)]
    numbers = {number for text in (str(leaf.value) for leaf in leaves) if (number := as_number(text)) is not None}
    plain = [folded(text) for leaf in leaves if leaf.name in leaf.path for text in _texts(leaf)]
    mentioned = (*task.mentions.quoted, *task.mentions.names)
    missing = [name for name in mentioned if _is_missing(folded(name), texts, plain, task)]
    labels = [label for label in _labels(task) if not any(within(folded(label), text) for text in texts)]
    written = {number for text in texts for word in text if (number := as_number(word)) is not None}
    whole = dict.fromkeys([*missing, *labels])
    inside = {name for name in whole for other in whole if name != other and within(folded(name), folded(other))}
    parts = [] if _has_codes(leaves, task) else [name for name in whole if name not in inside]
    counts = [str(max(readings)) for readings in task.mentions.counted if readings.isdisjoint(numbers | written)]
    missed = [*parts, *([] if any(_is_foreign(leaf.value) for leaf in leaves) else counts)]
    return [Doubt(None, (), f"the task mentions {text!r}, but no step uses it") for text in missed]


def _is_missing(words: Words, texts: Sequence[Words], plain: Sequence[Words], task: Task) -> bool:
    """Whether nothing uses a name. A plain argument may say a part of it; a condition compares with the whole."""
    if any(within(words, text) for text in texts) or any(within(text, words) for text in plain):
        return False
    return not all(stem(word) in task.vocabulary or word in COMMON for word in words)


def _labels(task: Task) -> Iterator[str]:
    """Labels that the task has word by word, without those that only stand inside a longer one."""
    lists = {id(values): values for values in task.lists.values()}.values()
    found = {item.label for values in lists for item in values.items if task.mentions.has(item.label)}
    for label in found:
        inside = any(label != other and within(folded(label), folded(other)) for other in found)
        if not inside and not all(stem(word) in task.vocabulary for word in folded(label)):
            yield label


def _item(leaf: _Leaf) -> ReferenceItem | None:
    if leaf.listed is None:
        return None
    return next((item for item in leaf.listed.items if item.value == leaf.value), None)


def _texts(leaf: _Leaf) -> Iterator[str]:
    """The value as people may have said it."""
    if isinstance(leaf.value, str) and "${" not in leaf.value:
        yield leaf.value
    item = _item(leaf)
    if item is not None:
        yield item.label


def _shown(leaf: _Leaf) -> str:
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
