"""What each mention of a task is for, asked before the plan itself: to select by it, or to write it somewhere.

    {"Globex": "select by company_name", "Demo_held": "select by stage", "Proposal_sent": "set stage"}

A model that has said so seldom forgets a condition. It only makes good plans easier to write: nothing is derived from
it, and a plan without it is as good.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from toolcrib.agents.bounds import Side
from toolcrib.contracts import Json, JsonObject, JsonSchema

USES = "uses"
"""Its place in a plan."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")
"""Some providers take only these in names of properties."""
_LONGEST_NAME = 40


@dataclass(frozen=True, slots=True)
class Mention:
    """Something that a task mentions and a plan is expected to use."""

    text: str
    fields: tuple[str, ...]
    """What it may be; empty if unknown."""
    side: Side | None = None
    """On which side of it others must be: such a bound selects, and is never set."""

    def __str__(self) -> str:
        said = [*(() if self.side is None else (f"{self.side} it",)), " or ".join(self.fields)]
        noted = ": ".join(filter(None, reversed(said)))
        return f"{self.text!r} ({noted})" if noted else repr(self.text)


def named(mentions: Sequence[Mention]) -> dict[str, Mention]:
    """The mentions by the names that they have in the answer."""
    found: dict[str, Mention] = {}
    for number, mention in enumerate(mentions, start=1):
        name = _NOT_IN_NAMES.sub("_", mention.text).strip("_")[:_LONGEST_NAME] or f"mention_{number}"
        found[name if name not in found else f"{name}_{number}"] = mention
    return found


def unnamed(value: Json, mentions: Sequence[Mention]) -> Json:
    """A plan in which a model took such a name for the mention itself."""
    return _unnamed(value, {name: mention.text for name, mention in named(mentions).items()})


def _unnamed(value: Json, texts: Mapping[str, str]) -> Json:
    if isinstance(value, list):
        return [_unnamed(item, texts) for item in cast("list[Json]", value)]
    if isinstance(value, dict):
        return {name: _unnamed(item, texts) for name, item in cast("JsonObject", value).items()}
    return texts.get(value, value) if isinstance(value, str) else value


def uses_schema(mentions: Sequence[Mention], selectable: Collection[str], writable: Collection[str]) -> JsonSchema:
    """The schema of the answer.

    Args:
        mentions: At least one.
        selectable: Fields by which steps that read can select.
        writable: Fields that steps which write can set.
    """
    properties: JsonObject = {}
    for name, mention in named(mentions).items():
        selected = [f"select by {field}" for field in mention.fields if field in selectable]
        written = [f"set {field}" for field in mention.fields if field in writable and not mention.side]
        properties[name] = {"type": "string", "enum": [*selected, *written, "other"]}
    return {
        "type": "object",
        "description": "What each thing that the task mentions is for.",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
