"""Outlines: what a small model writes instead of a plan, and the plan compiled from it.

    {"wants": "change",
     "conditions": [{"words": "Globex", "field": "company_name", "comparison": "is", "value": "Globex"}],
     "changes": [{"words": "as won", "field": "stage", "value": "Closed won"}]}

The steps' inputs follow from the outline and the schemas. A model that fills in two short lists, with the words of the
task for each entry, forgets fewer conditions. Not every sequence of operations has an outline: see `outline_of`.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, Literal, cast

from toolcrib.agents.evidence import Path, as_number, words_of
from toolcrib.agents.evidence.field_values import Kinds, kinds_of, property_schemas, types_of
from toolcrib.agents.evidence.plan_schema import READING, Shapes, composing, frame_of
from toolcrib.agents.evidence.word_matching import matches, meaning_of
from toolcrib.contracts import Json, JsonObject, JsonSchema
from toolcrib.core.providers import ReferenceList
from toolcrib.core.registry import LABELS

NONE_OF_THESE: Final = "none of these"
"""Written for a value that is not among the valid ones."""

_COMPARISONS: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(("eq", "equals", "equal", "is", "=", "=="), ("is", "is")),
    **dict.fromkeys(("ne", "neq", "not", "notequals", "isnot", "!=", "<>"), ("is not", "is not")),
    **dict.fromkeys(("gt", "greaterthan", ">"), ("more than", "after")),
    **dict.fromkeys(("ge", "gte", "greaterthanorequal", ">="), ("at least", "on or after")),
    **dict.fromkeys(("lt", "lessthan", "<"), ("less than", "before")),
    **dict.fromkeys(("le", "lte", "lessthanorequal", "<="), ("at most", "on or before")),
    **dict.fromkeys(("contains", "like"), ("contains", "contains")),
}
"""What the codes of comparisons mean that are usual in APIs: of numbers, and of days."""
_LABELLED: Final = frozenset({"is", "is not"})
_LONGEST: Final = 80
"""Characters of a quotation or a text."""
_MOST: Final = 6
"""Conditions, and changes."""
_MOST_VALUES: Final = 100
"""A longer list of valid values is checked, but not shown."""
TEXT: Final[JsonSchema] = {"type": "string", "maxLength": _LONGEST}
NUMBER: Final[JsonSchema] = {"type": "number"}
_PLAIN: Final = frozenset({"string", "number", "integer", "boolean"})
_ANY: Final[JsonSchema] = {"type": ["string", "number"], "maxLength": _LONGEST}
DAY: Final[JsonSchema] = {"type": "string", "pattern": r"^20\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$"}


@dataclass(frozen=True, slots=True)
class InputPath:
    """A value in a step's input."""

    step: str
    name: str
    """Of the field."""
    value: JsonSchema
    """What a model may write there."""
    values: Mapping[str, Json]
    """What stands for it, by what people call it; empty if there is no list."""
    path: Path = ()
    """Of the value; of the list of conditions if `pair` is given."""
    pair: tuple[str, str, str] | None = None
    """Names of the members of a condition that hold its field, its comparison (may be empty) and its value."""
    shared: Mapping[str, Sequence[Json]] = field(default_factory=dict[str, Sequence[Json]])
    """The values of labels that more than one has."""
    several: tuple[str, str] | None = None
    """The tool's word for being one of several values, and the name of the member that holds these."""
    required: bool = False
    """The step cannot do without it."""
    comparisons: Mapping[str, str] = field(default_factory=dict[str, str])
    """The tool's own words by the ones that are shown; empty if nothing is compared."""


@dataclass(frozen=True, slots=True)
class Outline:
    """How an outline of a plan is written for some steps, and what follows from it."""

    steps: Sequence[str]
    conditions: Sequence[InputPath]
    changes: Sequence[InputPath]
    frames: Mapping[str, JsonObject]
    """By step: the plan of it before any condition or change."""
    schema: JsonSchema
    makes: bool
    """Whether the changes make something new."""

    def plan(self, outline: JsonObject, known: Collection[str] = ()) -> JsonObject:
        """The plan that an outline means, with its reading.

        Args:
            outline: An answer that met the schema.
            known: Folded words by which tools and fields are called; a condition of these alone, without a value,
                says nothing.
        """
        inputs = {step: cast("JsonObject", frame["input"]) for step, frame in self.frames.items()}
        reading: list[JsonObject] = []
        used: set[str] = set()
        one_of: dict[str, list[Json]] = {}
        question = outline.get("question")
        changes = list(self._read("change", outline))
        for entry in (*self._selecting(list(self._read("condition", outline)), changes), *changes):
            if entry.label is None:
                if entry.use == "condition" and (changes or _says_nothing(entry.words, known)):
                    continue  # before anything is changed, words that nothing was read from are looked at
                question = question or _no_such(entry.place, entry.words)
                continue
            value = _meant(entry.place, entry.label)
            used.add(entry.place.step)
            reading.append({"words": entry.words, "use": entry.use, "value": value})
            if entry.use == "condition" and entry.place.several and entry.comparison == "is":
                one_of.setdefault(entry.place.name, []).extend(entry.place.shared.get(str(entry.label), [value]))
            else:
                inputs[entry.place.step] = _with_value(inputs[entry.place.step], entry.place, value, entry.comparison)
        for place in self.conditions:
            if place.name in one_of:
                inputs[place.step] = _one_of(inputs[place.step], place, list(dict.fromkeys(one_of[place.name])))
        if outline["wants"] == "change" and not changes:
            question = "What are the items to get?"
        plan: JsonObject = {READING: reading, "reasoning": "", "question": question}
        writing = {place.step for place in self.changes}
        for step in self.steps:
            skip = bool(question) or (step in writing and step not in used)
            plan[step] = {"skip": True} if skip else {**self.frames[step], "input": inputs[step]}
        return plan

    def lacking(self, outline: JsonObject) -> list[str]:
        """What an outline that wants a change does not say of it: fields that are needed, or that anything is set."""
        if outline["wants"] != "change":
            return []
        fields_set = {one.place.name for one in self._read("change", outline)}
        needed = [place.name for place in self.changes if place.required and place.name not in fields_set]
        return needed if fields_set else needed or ["what they get"]

    def _selecting(self, conditions: Sequence["_Entry"], changes: Sequence["_Entry"]) -> Iterator["_Entry"]:
        """The conditions without those that small models add: what all items get selects none of them."""
        given = {(one.place.name, one.label) for one in changes}
        values = {one.label for one in changes}
        order = [place.name for place in self.conditions]
        for one in conditions:
            same = [other.place.name for other in conditions if (other.words, other.label) == (one.words, one.label)]
            if self.makes and (one.label in values or min(same, key=order.index) != one.place.name):
                continue
            if (one.place.name, one.label) not in given or one.comparison == "is not":
                yield one

    def _read(self, use: Literal["condition", "change"], outline: JsonObject) -> Iterator["_Entry"]:
        """What an outline says, with valid values for labels; of what is set twice, the first that is valid."""
        places = {place.name: place for place in (self.conditions if use == "condition" else self.changes)}
        entries = cast("list[JsonObject]", outline.get(f"{use}s") or [])
        usable_entries = [one for one in entries if one["words"] != NONE_OF_THESE]
        if use == "change":  # what is said counts before what is none of the valid values
            usable_entries.sort(key=lambda one: one["value"] == NONE_OF_THESE)
        found = [self._entry(use, one, places) for one in usable_entries]
        valid = {one.place.name for one in found if one.label is not None}
        known: set[str] = set()
        for one in found:
            if one.label is None and (not one.place.values or one.place.name in valid):
                continue  # a free text that is left open says nothing
            if use == "condition" or one.place.name not in known:
                known.add(one.place.name)
                yield one

    def _entry(
        self, use: Literal["condition", "change"], entry: JsonObject, places: Mapping[str, InputPath]
    ) -> "_Entry":
        """One entry; with the valid value that its words name, where they do not name its own."""
        place, label, words = places[entry["field"]], entry["value"], entry["words"]
        comparison = entry.get("comparison", "")
        if place.values and not _fits(place, label, words_of(words)):
            named = [
                (one, name) for one in (place, *places.values()) if (name := _unique_match(one, words)) is not None
            ]
            if named and (named[0][0] is place or len({one.name for one, _ in named}) == 1):
                place, label = named[0]
                comparison = comparison if comparison in place.comparisons else ""
        return _Entry(use, place, words, comparison, None if label == NONE_OF_THESE else label)

    def fields(self) -> str:
        """The fields with what they hold, for a model."""
        return "\n".join(
            f"Fields of {name}: {'; '.join(dict.fromkeys(map(_describe_field, places)))}."
            for name, places in (("conditions", self.conditions), ("changes", self.changes))
            if places
        )


@dataclass(frozen=True, slots=True)
class _Entry:
    """A condition or a change of an outline."""

    use: Literal["condition", "change"]
    place: InputPath
    words: str
    comparison: str
    label: Json
    """Its value as it is called; null if it is none of the valid ones."""


def outline_of(steps: Shapes, writes: Sequence[bool], lists: Mapping[str, ReferenceList]) -> Outline | None:
    """How plans for some steps can be outlined; null if they cannot.

    They can if one step reads by conditions on fields, and each step that writes is done for what it has found and
    sets fields.

    Args:
        steps: What goes into them and what comes out.
        writes: Whether each of them does.
        lists: Reference lists by the name of the property whose values they are.
    """
    reading = [place for place, writing in enumerate(writes) if not writing]
    if reading != [0]:
        return None
    known = _Known.of(steps, lists)
    first, schema, _ = steps[0]
    conditions = _without_ids(_conditions(first, schema, known))
    frames: dict[str, JsonObject] = {first: {"input": {}}}
    changes: list[InputPath] = []
    for number, (step, item, _) in enumerate(steps[1:], start=1):
        frame = frame_of(item, steps[:number]) or {"input": {}}
        settable = [place for place in _settable(step, item, (), known, frame["input"]) if not _identifies(place)]
        filled = {*frame["input"], *(place.path[0] for place in settable)}
        if not settable or not filled.issuperset(item.get("required", ())):
            return None
        frames[step] = frame
        changes += [place for place in settable if place.name not in {one.name for one in changes}]
    if not conditions:
        return None
    makes = any(place.required and place.value == TEXT for place in changes)
    if makes:  # what is made has labels of its own; conditions say for what it is made
        settable = {place.name for place in changes if place.values}
        conditions = [place for place in conditions if place.name not in settable]
    names = [step for step, _, _ in steps]
    return Outline(names, conditions, changes, frames, _schema(conditions, changes), makes)


# What can be said -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of fields by their names."""

    kinds: Kinds
    schemas: Mapping[str, Sequence[JsonSchema]]
    lists: Mapping[str, ReferenceList]

    @classmethod
    def of(cls, steps: Shapes, lists: Mapping[str, ReferenceList]) -> "_Known":
        known: dict[str, list[JsonSchema]] = {}
        every = [schema for _, *both in steps for schema in both if schema is not None]
        for schema in every:
            for name, node in property_schemas(schema):
                known.setdefault(name, []).extend(composing(node, schema))
        return cls(kinds_of(every), known, lists)

    def value(self, name: str, own: Sequence[JsonSchema]) -> tuple[JsonSchema, Mapping[str, Json]] | None:
        """What can be written as a value of a field, and what stands for it; null if it is no single plain value."""
        parts = [*own, *self.schemas.get(name, ())]
        if name in self.lists:
            return _among([(item.label, item.value) for item in self.lists[name].items])
        closed = next((part for part in parts if "enum" in part), None)
        if closed is not None:
            labels: Mapping[str, str] = closed.get(LABELS, {})
            values = [value for value in closed["enum"] if value is not None]
            return _among([(labels.get(str(value), str(value)), value) for value in values])
        theirs = [part for part in self.schemas.get(name, ()) if set(types_of(part)) & _PLAIN]
        types = set(chain.from_iterable(types_of(part) for part in theirs or own)) & _PLAIN
        kind = self.kinds.get(name)
        if kind == "number" or (types and types <= {"integer", "number"}):
            return NUMBER, {}
        if kind == "day":
            return DAY, {}
        if types == {"boolean"}:
            return {"type": "boolean"}, {}
        if "string" not in types:
            return None
        return (_ANY if types > {"string"} else TEXT), {}

    def ambiguous_labels(self, name: str) -> Mapping[str, Sequence[Json]]:
        """The values of labels that more than one value of a field has."""
        found: dict[str, list[Json]] = {}
        for item in self.lists[name].items if name in self.lists else ():
            found.setdefault(item.label, []).append(item.value)
        return {label: values for label, values in found.items() if len(values) > 1}

    def comparisons(self, words: Sequence[str], value: JsonSchema) -> Mapping[str, str]:
        """The tool's words for comparisons that go with such a value, by the ones that are shown."""
        known = {word: _COMPARISONS.get(word.lower().replace("_", "").replace(" ", "")) for word in words}
        if not any(known.values()):
            return {word: word for word in words}
        is_day, is_closed = value == DAY, "enum" in value
        shown = {pair[is_day]: word for word, pair in known.items() if pair is not None}
        unfit = set(shown) - _LABELLED if is_closed else {"contains"} if is_day or value == NUMBER else set[str]()
        return {name: word for name, word in shown.items() if name not in unfit}


def _among(values: Sequence[tuple[str, Json]]) -> tuple[JsonSchema, Mapping[str, Json]]:
    """What can be written where a list says what is valid; a label that values share stays as it is."""
    counts = Counter(label for label, _ in values)
    known = {label: value if counts[label] == 1 else label for label, value in values}
    if len(known) > _MOST_VALUES:
        return TEXT, known
    return {"type": "string", "enum": [*known, NONE_OF_THESE]}, known


def _conditions(step: str, schema: JsonSchema, known: _Known) -> Iterator[InputPath]:
    """The conditions that a step selects by: of a list of them, of fields with comparisons, or plain parameters."""
    listed = next(_condition_lists(schema, schema, ()), None)
    if listed is not None:
        yield from _pair_fields(step, schema, *listed, known)
        return
    nested = list(_comparison_fields(step, schema, known))
    if nested:
        yield from nested
        return
    plain = list(_settable(step, schema, (), known, {}))
    named = {name for name, _ in property_schemas(schema)}
    if any(name in known.lists or len(known.schemas[name]) > 1 for name in named):
        yield from plain


def _identifies(place: InputPath) -> bool:
    """Whether a place names one record: no entry says that, but a result does."""
    return not place.values and (place.name == "id" or place.name.endswith("_id"))


def _without_ids(places: Iterable[InputPath]) -> list[InputPath]:
    """The places without ids of things that have a name beside them: a task says the name."""
    every = list(places)
    named = {place.name for place in every}
    return [place for place in every if not _identifies(place) or f"{place.name.removesuffix('_id')}_name" not in named]


def _condition_lists(node: Json, root: JsonSchema, path: Path) -> Iterator[tuple[Path, tuple[str, str, str]]]:
    """Lists whose elements name a field, a comparison and a value."""
    for part in composing(node, root):
        if "items" in part:
            pair = _pair(composing(part["items"], root), root)
            if pair is not None:
                yield path, pair
            elif len(path) < _MOST:
                yield from _condition_lists(part["items"], root, (*path, 0))
        for name, inner in part.get("properties", {}).items() if len(path) < _MOST else ():
            yield from _condition_lists(inner, root, (*path, name))


def _pair(parts: Sequence[JsonSchema], root: JsonSchema) -> tuple[str, str, str] | None:
    properties: JsonObject = {name: item for part in parts for name, item in part.get("properties", {}).items()}
    closed = [name for name, item in properties.items() if any("enum" in part for part in composing(item, root))]
    others = [name for name in properties if name not in closed]
    if not closed or not others:
        return None
    return closed[0], closed[1] if len(closed) > 1 else "", others[0]


def _pair_fields(
    step: str, schema: JsonSchema, path: Path, pair: tuple[str, str, str], known: _Known
) -> Iterator[InputPath]:
    parts = [part for node in _nodes(schema, (*path, 0)) for part in composing(node, schema)]
    members: JsonObject = {name: item for part in parts for name, item in part.get("properties", {}).items()}
    vocabulary = {
        name: [str(word) for part in composing(members[name], schema) for word in part.get("enum", ())]
        for name in pair[:2]
        if name
    }
    own = composing(members[pair[2]], schema)
    for name in vocabulary[pair[0]]:
        value_pair = known.value(name, own)
        if value_pair is None:
            continue
        value, values = value_pair
        codes = vocabulary.get(pair[1], [])
        yield InputPath(
            step,
            name,
            value,
            values,
            path,
            pair,
            shared=known.ambiguous_labels(name),
            several=_several(members, codes, schema),
            comparisons=known.comparisons(codes, value),
        )


def _several(members: JsonObject, codes: Sequence[str], root: JsonSchema) -> tuple[str, str] | None:
    """The word for being one of several values, and the member of a condition that holds a list of them."""
    word = next((code for code in codes if code.lower() == "in"), None)
    lists = [name for name, item in members.items() if any("items" in part for part in composing(item, root))]
    return (word, lists[0]) if word is not None and lists else None


def _comparison_fields(step: str, schema: JsonSchema, known: _Known) -> Iterator[InputPath]:
    """Fields that are compared in objects of their own name, as in `{"amount": {"gt": 5}}`."""
    for path, node in _objects(schema, schema, ()):
        parts = composing(node, schema)
        words = [name for part in parts for name in part.get("properties", {})]
        usual = [word for word in words if word.lower().replace("_", "") in _COMPARISONS]
        if not usual or len(path) == 0:
            continue
        own = [part for one in _nodes(schema, (*path, usual[0])) for part in composing(one, schema)]
        value_pair = known.value(str(path[-1]), own)
        if value_pair is not None:
            yield InputPath(step, str(path[-1]), *value_pair, path, comparisons=known.comparisons(words, value_pair[0]))


def _objects(node: Json, root: JsonSchema, path: Path) -> Iterator[tuple[Path, Json]]:
    for part in composing(node, root):
        if "properties" in part:
            yield path, part
        for name, inner in part.get("properties", {}).items() if len(path) < _MOST else ():
            yield from _objects(inner, root, (*path, name))


def _settable(step: str, schema: JsonSchema, path: Path, known: _Known, frame: Json) -> Iterator[InputPath]:
    """Plain values in a step's input that its frame does not fill."""
    for node in _nodes(schema, path):
        for part in composing(node, schema):
            for name in part.get("properties", {}):
                yield from _settable_in(step, schema, (*path, name), known, _in(frame, name))


def _settable_in(step: str, schema: JsonSchema, path: Path, known: _Known, frame: Json) -> Iterator[InputPath]:
    if isinstance(frame, str):
        return
    own = [part for node in _nodes(schema, path) for part in composing(node, schema)]
    if any("properties" in part for part in own):
        yield from _settable(step, schema, path, known, frame)
    elif any("items" in part for part in own):
        if isinstance(frame, list) and len(path) < _MOST:
            element = cast("list[Json]", frame)[0]
            if isinstance(element, dict):
                yield from _settable(step, schema, (*path, 0), known, element)
    elif not any("default" in part and part["default"] is not None for part in own):
        value_pair = known.value(str(path[-1]), own)
        if value_pair is not None:
            around = [part for node in _nodes(schema, path[:-1]) for part in composing(node, schema)]
            required = any(path[-1] in part.get("required", ()) for part in around)
            yield InputPath(step, str(path[-1]), *value_pair, path, required=required)


def _nodes(schema: JsonSchema, path: Path) -> list[Json]:
    """The schemas of a place in an input."""
    nodes: list[Json] = [schema]
    for step in path:
        parts = [part for node in nodes for part in composing(node, schema)]
        if isinstance(step, int):
            nodes = [part["items"] for part in parts if "items" in part]
        else:
            nodes = [part["properties"][step] for part in parts if step in part.get("properties", {})]
    return nodes


def _in(value: Json, name: str) -> Json:
    return cast("JsonObject", value).get(name) if isinstance(value, dict) else None


# What is shown --------------------------------------------------------------------------------------------------------


def _schema(conditions: Sequence[InputPath], changes: Sequence[InputPath]) -> JsonSchema:
    items: JsonSchema = {"type": "array", "items": {"anyOf": list(map(_entry, conditions))}, "maxItems": _MOST}
    other = _object(wants={"const": "other"}, question={"type": "string", "maxLength": 200})
    kinds = [_object(wants={"const": "answer"}, conditions=items)]
    if changes:
        gets: JsonSchema = {"type": "array", "items": {"anyOf": list(map(_entry, changes))}, "minItems": 1}
        kinds.insert(0, _object(wants={"const": "change"}, conditions=items, changes={**gets, "maxItems": _MOST}))
    return {"type": "object", "anyOf": [*kinds, other]}


def _entry(place: InputPath) -> JsonSchema:
    members: JsonObject = {
        "words": TEXT,
        "field": {"const": place.name},
    }
    if place.comparisons:
        members["comparison"] = {"enum": list(place.comparisons)}
    return _object(**members, value=place.value)


def _object(**properties: Any) -> JsonSchema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _describe_field(place: InputPath) -> str:
    if "enum" in place.value:
        return f"{place.name} (one of: {', '.join(place.values)})"
    kind = place.value["type"]
    shown = "day, YYYY-MM-DD" if place.value == DAY else {"string": "text"}.get(str(kind), str(kind))
    return f"{place.name} ({shown})" if isinstance(kind, str) else place.name


# What follows from it -------------------------------------------------------------------------------------------------


def _says_nothing(words: str, known: Collection[str]) -> bool:
    """Whether words are those by which tools and fields are called."""
    return all(any(matches(one, word) or matches(word, one) for one in known) for word in words_of(words))


def _meant(place: InputPath, value: Json) -> Json:
    if isinstance(value, str) and place.values:
        return place.values.get(value, value)
    number = as_number(value) if not isinstance(value, bool | str) else None
    return int(number) if number is not None and number == number.to_integral_value() else value


def _with_value(given: JsonObject, place: InputPath, value: Json, comparison: str) -> JsonObject:
    """A step's input with one more value."""
    word = place.comparisons.get(comparison, "")
    if place.pair is None:
        return cast("JsonObject", _put(given, (*place.path, word) if word else place.path, value))
    subject, operator, compared = place.pair
    element = {subject: place.name, **({operator: word} if operator else {}), compared: value}
    return cast("JsonObject", _put(given, place.path, element, adds=True))


def _one_of(given: JsonObject, place: InputPath, values: Sequence[Json]) -> JsonObject:
    """A step's input with the condition that a field is one of some values."""
    if len(values) == 1 or place.pair is None or place.several is None:
        return _with_value(given, place, values[0], "is")
    word, member = place.several
    element: JsonObject = {place.pair[0]: place.name, place.pair[1]: word, member: list(values)}
    return cast("JsonObject", _put(given, place.path, element, adds=True))


def _put(value: Json, path: Path, new: Json, *, adds: bool = False) -> Json:
    """The value with something at a place, or at the end of the list there; what is missing on the way is made."""
    if not path:
        return [*cast("list[Json]", value or []), new] if adds else new
    head, rest = path[0], path[1:]
    if isinstance(head, int):
        elements = list(cast("list[Json]", value or [None]))
        elements[head] = _put(elements[head], rest, new, adds=adds)
        return elements
    inner = cast("JsonObject", value or {})
    return {**inner, head: _put(inner.get(head), rest, new, adds=adds)}


def _unique_match(place: InputPath, words: str) -> str | None:
    """The only valid value that some words name, although nobody has seen it there."""
    folded_words = words_of(words)
    named = [name for name in place.values if meaning_of(name, place.values, folded_words).fit in {"whole", "part"}]
    return named[0] if len(named) == 1 else None


def _fits(place: InputPath, label: Json, words: Sequence[str]) -> bool:
    return isinstance(label, str) and meaning_of(label, place.values, words).fit in {"whole", "part"}


def _no_such(place: InputPath, words: str) -> JsonObject:
    """Asks which of the valid values is meant."""
    choices = [{"label": label, "outcome": f"{place.name}: {label}"} for label in list(place.values)[:12]]
    return {"text": f'Which {place.name} does "{words}" mean?', "choices": choices}
