"""Classifies the change from one definition of a tool to another: `classify`.

The rules, part by part:

- input: a value that the old schema accepts and the new one may refuse is *narrowing*; *breaking* if every use is
  refused (a new required property, a removed one, a type without any old value). Values that only the new schema
  accepts are *additive*. A changed default is *effect_changing*, because calls without the property mean something
  else.
- output, the reverse: a value that only the new schema may give is *narrowing*; *breaking* if a property is removed,
  is no longer always present, or has another type. Less variety and new properties are *additive*.
- effect: any other field, and where and how the implementation acts, is *effect_changing*, in either direction: a tool
  that now claims to read only is as suspicious as one that now writes. Unknown fields count as effects. Timeouts and
  sizes are *additive* if they grow and *narrowing* if they shrink.
- text: titles, descriptions, examples, and every text in the schemas is *description_only*.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from toolcrib.contracts import (
    ChangeClass,
    ChangeKind,
    ChangePart,
    Difference,
    Json,
    JsonObject,
    JsonSchema,
    ToolChange,
    ToolDefinition,
    canonical,
)
from toolcrib.core.registry.schema.refusals import Refusal, words_of
from toolcrib.core.registry.schema.subsumption import Reading, refusals

_TEXTS: Final = frozenset(
    {
        "title",
        "description",
        "long_description",
        "usage",
        "examples",
        "tags",
        "metadata",
        "cost_hint",
        "estimated_latency_s",
    }
)
_AMOUNTS: Final = frozenset({"timeout_s", "max_output_bytes", "max_rows", "max_messages"})
_ELSEWHERE: Final = frozenset({"name", "version", "source", "input_schema", "output_schema", "implementation"})
"""Fields that are compared in another way, or not at all."""
_BY_KEY: Final = frozenset({"columns", "fields", "encodings", "fingerprint"})
"""Tables of which only what stands in both is compared: the schemas tell what came and went."""
_DERIVED: Final = frozenset({"made_from", "descriptors", "required", "document_operation"})
"""Parts of an implementation that follow from what is compared anyway."""
_TOLD_BY_SCHEMAS: Final = frozenset({"inputSchema", "outputSchema"})
_FOR_READERS: Final = frozenset({"title", "description", "icons"})
"""Parts of an MCP server's fingerprint that change no call."""
_PROSE: Final = ("title", "description", "$comment")
_ORDER: Final[tuple[ChangePart, ...]] = ("input", "output", "effect", "text")
_LONGEST: Final = 120


def classify(before: ToolDefinition, after: ToolDefinition) -> ToolChange:
    """Compare two definitions of one tool.

    Args:
        before: As it was.
        after: As it is, or may become; both have been checked.

    Returns:
        Every difference once, in the order input, output, effect, text.
    """
    found: list[Difference] = []
    if before.content_hash() != after.content_hash():
        found += compare_input(before.input_schema, after.input_schema)
        found += compare_output(before.output_schema, after.output_schema)
        found += _fields(before, after)
        found += _implementations(before, after)
        found += _prose(before, after)
        found.sort(key=lambda difference: _ORDER.index(difference.part))
        found = found or [_text("definition", "is written in another way")]
    return ToolChange(
        tool=after.name, before=before.content_hash(), after=after.content_hash(), differences=tuple(found)
    )


def compare_input(before: JsonSchema, after: JsonSchema) -> list[Difference]:
    """The differences of what two schemas of arguments take."""
    if canonical(before) == canonical(after):
        return []
    refused = refusals(before, after, "arguments")
    extensions = [found for found in refusals(after, before, "arguments") if found.keyword != "default"]
    return _to_differences("input", refused, [_swap_sides(found) for found in extensions])


def compare_output(before: JsonSchema | None, after: JsonSchema | None) -> list[Difference]:
    """The differences of what two schemas of outputs promise; null promises nothing."""
    if canonical(before) == canonical(after):
        return []
    if after is None:
        return [Difference(part="output", change_class="breaking", place="", message="is not described any more")]
    reading: Reading = "outputs"
    old: Json = True if before is None else before
    new_values = [_swap_sides(found) for found in refusals(after, old, reading) if found.keyword != "default"]
    fewer = [found for found in refusals(old, after, reading) if found.keyword != "default"]
    return _to_differences("output", new_values, fewer)


def _swap_sides(refusal: Refusal) -> Refusal:
    """A refusal of the comparison from after to before, told from before to after."""
    return refusal._replace(a=refusal.b, b=refusal.a)


def _to_differences(part: ChangePart, harmful: list[Refusal], harmless: list[Refusal]) -> list[Difference]:
    """Refusals in words, one for each place and keyword; the worse class counts."""
    found: dict[tuple[str, str], tuple[Refusal, ChangeClass]] = {}
    for refusal in harmful:
        found[refusal.place, refusal.keyword] = refusal, _class_of(refusal)
    for refusal in harmless:
        found.setdefault((refusal.place, refusal.keyword), (refusal, "additive"))
    return [
        _difference(part, refusal, change_class, found.get((place, "required")))
        for (place, keyword), (refusal, change_class) in found.items()
        if keyword != "required" or (place, "property") not in found
    ]


def _difference(
    part: ChangePart, refusal: Refusal, change_class: ChangeClass, required: tuple[Refusal, ChangeClass] | None
) -> Difference:
    kind: ChangeKind = "changed"
    message = words_of(refusal.keyword, refusal.a, refusal.b)
    if refusal.keyword == "required" and refusal.b:
        kind = "required"
    if refusal.keyword == "property":
        kind = "removed" if refusal.b is None else "added"
        if kind == "added" and part == "input" and required is not None:
            change_class = required[1]
            message += ", and it is required"
    return Difference(part=part, change_class=change_class, kind=kind, place=refusal.place, message=message)


def _class_of(refusal: Refusal) -> ChangeClass:
    if refusal.keyword == "default":
        return "effect_changing"
    return "breaking" if refusal.always else "narrowing"


def _fields(before: ToolDefinition, after: ToolDefinition) -> Iterator[Difference]:
    old, new = (each.model_dump(mode="json", exclude=set(_ELSEWHERE)) for each in (before, after))
    yield from _entries(old, new, "")


def _implementations(before: ToolDefinition, after: ToolDefinition) -> Iterator[Difference]:
    """How a tool acts. Of what came or went with an argument, the schemas have told already."""
    old, new = (each.implementation.model_dump(mode="json") for each in (before, after))
    if old["kind"] != new["kind"]:
        yield _effect("implementation", old["kind"], new["kind"])
        return
    for dump in (old, new):
        if dump["kind"] == "http":
            dump["parameters"] = {entry["argument"]: {**entry, "required": None} for entry in dump["parameters"]}
    yield from _steps(old.pop("steps", ()), new.pop("steps", ()), "implementation.steps.")
    yield from _entries(old, new, "implementation.")


def _entries(old: JsonObject, new: JsonObject, place: str) -> Iterator[Difference]:
    for name in dict.fromkeys((*old, *new)):
        was: Any = old.get(name)
        now: Any = new.get(name)
        if was == now or name in _DERIVED:
            continue
        if name in _TEXTS:
            yield _text(place + name, f"was {_short(was)} and is {_short(now)}")
        elif name in _AMOUNTS:
            yield _amount(place + name, was, now)
        elif name == "body":
            yield from _entries(was or now or {}, now or was or {}, f"{place}{name}.")
        elif name == "fingerprint":
            yield from _prints(was, now)
        elif name in _BY_KEY or name == "parameters":
            for key in was.keys() & now.keys():
                if was[key] != now[key]:
                    yield _effect(f"{place}{name}.{key}", was[key], now[key])
        else:
            yield _effect(place + name, was, now)


def _prints(was: dict[str, str], now: dict[str, str]) -> Iterator[Difference]:
    """What an MCP server says of its tool, by name."""
    for name in sorted(was.keys() | now.keys()):
        if was.get(name) == now.get(name) or name in _TOLD_BY_SCHEMAS:
            continue
        message = "is said in another way by the server"
        if name in _FOR_READERS:
            yield _text(name, message)
        else:
            yield Difference(part="effect", change_class="effect_changing", place=name, message=message)


def _prose(before: ToolDefinition, after: ToolDefinition) -> Iterator[Difference]:
    """Words in the schemas. A model reads them wherever they stand."""
    for field in ("input_schema", "output_schema"):
        old, new = (Counter(_texts(getattr(each, field))) for each in (before, after))
        came, went = list((new - old).elements()), list((old - new).elements())
        if came:
            yield _text(field, f"has {len(came)} other texts: {_short(came[0])}")
        elif went:
            yield _text(field, f"has {len(went)} texts less: {_short(went[0])}")


def _texts(node: Json) -> Iterator[str]:
    waiting = [node]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            schema = cast("JsonObject", found)
            yield from (schema[keyword] for keyword in _PROSE if isinstance(schema.get(keyword), str))
            waiting += schema.values()
        elif isinstance(found, list):
            waiting += cast("list[Json]", found)


def _steps(was: Sequence[JsonObject], now: Sequence[JsonObject], place: str) -> Iterator[Difference]:
    """The steps of a workflow or an agentic tool, by name: a list of a thousand shows nobody what is other in it."""
    old, new = ({str(step.get("name", step.get("id"))): step for step in steps} for steps in (was, now))
    for name in dict.fromkeys((*old, *new)):
        if name not in old or name not in new:
            kind: ChangeKind = "removed" if name in old else "added"
            yield Difference(
                part="effect", change_class="effect_changing", kind=kind, place=f"{place}{name}", message=f"was {kind}"
            )
            continue
        for field in (field for field in new[name] if old[name].get(field) != new[name][field]):
            yield _effect(f"{place}{name}.{field}", old[name].get(field), new[name][field])
    before, after = [name for name in old if name in new], [name for name in new if name in old]
    if before != after:
        yield _effect(f"{place}order", [*before], [*after])


def _text(place: str, message: str) -> Difference:
    return Difference(part="text", change_class="description_only", place=place, message=message)


def _effect(place: str, was: Json, now: Json) -> Difference:
    message = f"was {_short(was)} and is {_short(now)}"
    return Difference(part="effect", change_class="effect_changing", place=place, message=message)


def _amount(place: str, was: float, now: float) -> Difference:
    change_class: ChangeClass = "additive" if now > was else "narrowing"
    message = f"was {_short(was)} and is {_short(now)}"
    return Difference(part="effect", change_class=change_class, place=place, message=message)


def _short(value: Json) -> str:
    text = "nothing" if value is None else canonical(value).decode()
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
