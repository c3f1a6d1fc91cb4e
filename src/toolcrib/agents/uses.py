"""What each thing is for that a task names, asked before the plan of a model that cannot read a task part by part.

    {"Globex": "select by company_name", "Demo_held": "select by stage", "Proposal_sent": "set stage"}

A small model that has said so seldom forgets a condition. It only makes good plans easier to write: nothing is derived
from it, and a plan without it is as good.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, cast

from toolcrib.agents.evidence import as_day, as_number, words_of
from toolcrib.agents.evidence.numbers import numbers_in
from toolcrib.agents.fields import Kinds
from toolcrib.contracts import Json, JsonObject, JsonSchema
from toolcrib.providers import ReferenceList

USES: Final = "uses"
"""Its place in a plan as it is shown."""

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.-]+")
"""Some providers take only these in names of properties."""
_LONGEST_NAME: Final = 40


def names_of(named: Sequence[str]) -> dict[str, str]:
    """What the task names, by the names that it has in the answer."""
    return {
        _NOT_IN_NAMES.sub("_", text).strip("_")[:_LONGEST_NAME] or f"part_{number}": text
        for number, text in enumerate(named, start=1)
    }


def unnamed(value: Json, named: Sequence[str]) -> Json:
    """A plan in which a model took such a name for the thing itself."""
    names = names_of(named)
    if isinstance(value, list):
        return [unnamed(item, named) for item in cast("list[Json]", value)]
    if isinstance(value, dict):
        return {name: unnamed(item, named) for name, item in cast("JsonObject", value).items()}
    return names.get(value, value) if isinstance(value, str) else value


def uses_schema(
    named: Sequence[str],
    kinds: Kinds,
    lists: Mapping[str, ReferenceList],
    *,
    selectable: Collection[str],
    writable: Collection[str],
) -> JsonSchema:
    """The schema of the answer.

    Args:
        named: What the task names.
        kinds: What fields hold.
        lists: Valid values of fields.
        selectable: Fields by which steps that read can select.
        writable: Fields that steps which write can set.
    """
    properties: JsonObject = {}
    for name, text in names_of(named).items():
        fields = list(_fields(text, kinds, lists))
        selected = [f"select by {field}" for field in fields if field in selectable]
        written = [f"set {field}" for field in fields if field in writable]
        properties[name] = {"type": "string", "enum": [*selected, *written, "other"]}
    return {
        "type": "object",
        "description": "What each thing that the task names is for.",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def use_of(text: str, step: str, kinds: Kinds, lists: Mapping[str, ReferenceList]) -> str:
    """What a model is told of a thing that its plan does not use.

    Args:
        text: The thing.
        step: The step that selects the items.
        kinds: What fields hold.
        lists: Valid values of fields.
    """
    fields = " or ".join(_fields(text, kinds, lists))
    place = f"{step} as {fields}" if fields else step
    return f'no step uses "{text}"; add it to {place} and keep the other conditions, unless it is what the items get'


def _fields(text: str, kinds: Kinds, lists: Mapping[str, ReferenceList]) -> Iterator[str]:
    """The fields that a thing may be a value of: those with a valid value of its name, else those of its kind."""
    listed = [
        name for name, values in lists.items() if any(words_of(item.label) == words_of(text) for item in values.items)
    ]
    if listed:
        yield from listed
        return
    is_number = as_number(text) is not None or bool(numbers_in(text))
    kind = "day" if as_day(text) is not None else "number" if is_number else "text"
    for name, known in kinds.items():
        if known == kind and name not in lists and name != "id" and not name.endswith("_id"):
            yield name
