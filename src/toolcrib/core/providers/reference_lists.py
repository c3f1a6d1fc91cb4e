"""Reference lists: valid values of an argument, read from the output of a tool.

Pure: `read_reference` converts an output to a list; `resolve` and `closest` find the item that a person meant.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from difflib import SequenceMatcher
from typing import Final, cast

from toolcrib.contracts import InvalidDefinition, Json, JsonObject, ReferenceSource
from toolcrib.core.expressions.jsonpath import select

MAX_ITEMS: Final = 10_000
"""A longer list helps neither a model nor a schema."""

_LIKENESS: Final = 0.5
_SHORTEST_CONTAINED: Final = 3
"""Characters of a label that says something when it stands inside a longer text."""


@dataclass(frozen=True, slots=True)
class ReferenceItem:
    """One valid value."""

    value: Json
    """What is sent: a string, a number or a boolean."""
    label: str
    """What people say; the value itself where the list has no labels."""
    extra: JsonObject = field(default_factory=dict[str, Json])
    """Everything else that the list says about it."""


@dataclass(frozen=True, slots=True)
class ReferenceList:
    """All valid values of one kind, as they were at one moment."""

    name: str
    items: tuple[ReferenceItem, ...]
    fetched_at: datetime
    source: str | None
    """The tool that listed them; null if they are written in the definition."""
    applies_to: tuple[str, ...] = ()
    """Property names whose values they are."""
    id: str | None = None
    """Content hash of the snapshot that they come from; null if they are written in the definition."""


def read_reference(source: ReferenceSource, output: Json, *, fetched_at: datetime) -> ReferenceList:
    """Read a list from the output of its tool, or from the values of its definition.

    Args:
        source: What to look for and where.
        output: The tool's output; not looked at if the source has no tool.
        fetched_at: When the output was fetched, in UTC.

    Raises:
        InvalidDefinition: The source does not fit the output: an item has no value, or there are too many.
        InvalidExpression: The path of the items cannot be applied.
    """
    found = list(source.values) if source.tool is None else select(source.items, output)
    if len(found) > MAX_ITEMS:
        raise InvalidDefinition(
            f"reference data {source.name!r} has {len(found)} items, the limit is {MAX_ITEMS}; narrow the tool's input"
        )
    items = {repr(item.value): item for item in (_item(source, entry) for entry in found)}
    return ReferenceList(source.name, tuple(items.values()), fetched_at, source.tool, source.applies_to)


def resolve(reference: ReferenceList, text: Json) -> ReferenceItem | None:
    """The item whose value is exactly this, or the only one with this label, upper or lower case alike."""
    exact = next((item for item in reference.items if item.value == text and type(item.value) is type(text)), None)
    if exact is not None:
        return exact
    wanted = _fold(text)
    named = [item for item in reference.items if wanted in {_fold(item.label), _fold(item.value)}]
    return named[0] if len(named) == 1 else None


def closest(reference: ReferenceList, text: Json, n: int = 3) -> list[ReferenceItem]:
    """The items that were most probably meant, best first; labels and values count, case does not.

    An item that contains the text, or is contained in it, comes before one that is only similar. Where nothing is
    similar the list is empty.
    """
    wanted = _fold(text)
    matcher = SequenceMatcher(None, b=wanted)
    scored = [(max(_scores(item, wanted, matcher)), index, item) for index, item in enumerate(reference.items)]
    likely = sorted((-score, index, item) for score, index, item in scored if score >= _LIKENESS)
    return [item for _, _, item in likely[:n]]


def _scores(item: ReferenceItem, wanted: str, matcher: SequenceMatcher[str]) -> Iterator[float]:
    """Likeness of each spelling, from 0 to 1; one more if it contains the text or is contained in it."""
    for spelling in {_fold(item.label), _fold(item.value)}:
        matcher.set_seq1(spelling)
        near = matcher.real_quick_ratio() >= _LIKENESS and matcher.quick_ratio() >= _LIKENESS
        contained = (bool(wanted) and wanted in spelling) or (
            len(spelling) >= _SHORTEST_CONTAINED and spelling in wanted
        )
        yield (matcher.ratio() if near else 0.0) + contained


def _item(source: ReferenceSource, entry: Json) -> ReferenceItem:
    if not isinstance(entry, Mapping):
        return ReferenceItem(_require_scalar(source, entry), str(entry))
    fields = cast("Mapping[str, Json]", entry)
    value = _require_scalar(source, fields.get(source.value))
    label = fields.get(source.label)
    extra = {name: member for name, member in fields.items() if name not in {source.value, source.label}}
    return ReferenceItem(value, str(value if label is None else label), extra)


def _require_scalar(source: ReferenceSource, value: Json) -> Json:
    if isinstance(value, str | int | float):
        return value
    raise InvalidDefinition(
        f"reference data {source.name!r}: an item has no {source.value!r} that is text, number or boolean; "
        "correct `value`, or `items`, which finds the items themselves: `$[*]` where the whole answer is their list"
    )


def _fold(value: Json) -> str:
    return " ".join(str(value).casefold().split())
