"""What every importer returns: a provider, its tools in groups, and a loss report. Also names and shortened texts.

Names are valid for every model provider; a name that is too long or not unique ends in a hash. Texts are stripped of
markup and shortened for a model's context.
"""

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import orjson

from toolcrib.contracts import (
    ImportOutcome,
    JsonSchema,
    Loss,
    LossEffect,
    LossKind,
    LossReport,
    ProviderDefinition,
    ToolDefinition,
    digest,
)


class Losses:
    """The losses of one operation, one shared part or one document; equal ones become one with several places."""

    def __init__(self) -> None:
        self._found: dict[tuple[LossEffect, LossKind, str, str], dict[str, None]] = {}
        self.components: dict[str, Losses] = {}
        """Losses of shared parts that are used here, by place."""

    def uses(self, place: str, losses: "Losses") -> None:
        """Record that a shared part is used, if it lost something."""
        if losses:
            self.components[place] = losses

    def add_dropped(self, place: str, kind: LossKind, what: str, why: str) -> None:
        """Record that the tools do not say what stands at a place."""
        self._found.setdefault(("dropped", kind, what, why), {})[place] = None

    def add_changed(self, place: str, kind: LossKind, what: str, why: str) -> None:
        """Record that the tools say it in another way."""
        self._found.setdefault(("changed", kind, what, why), {})[place] = None

    def add_all(self, effect: LossEffect, places: Iterable[str], kind: LossKind, what: str, why: str) -> None:
        """Record one loss that stands at several places."""
        self._found.setdefault((effect, kind, what, why), {}).update(dict.fromkeys(places))

    def report(self) -> tuple[Loss, ...]:
        """Everything recorded, in order."""
        return tuple(self._all())

    def _all(self) -> Iterator[Loss]:
        for (effect, kind, what, why), places in self._found.items():
            yield Loss(effect=effect, kind=kind, what=what, why=why, places=tuple(places))

    def __bool__(self) -> bool:
        return bool(self._found)


MAX_DESCRIPTION: Final = 500
"""Characters of a description that a model sees."""

_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]*>")
_LINK: Final = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
"""Markdown, of which the text is kept."""


def plain(text: object) -> str:
    """Text without HTML tags and addresses of links, with single spaces; empty for anything that is no text."""
    return " ".join(html.unescape(_TAG.sub(" ", _LINK.sub(r"\1", text))).split()) if isinstance(text, str) else ""


def lean(text: object, place: str, losses: Losses) -> str:
    """Plain text of bounded length; what is cut off is a loss."""
    found = plain(text)
    if not found and text != "":
        losses.add_dropped(place, "text", "description", "holds no text")
    if len(found) > MAX_DESCRIPTION:
        losses.add_changed(place, "text", "description", f"cut to {MAX_DESCRIPTION} characters")
    return cut_text(found)


def cut_text(text: str, limit: int = MAX_DESCRIPTION) -> str:
    """At most `limit` characters, cut between words and marked with an ellipsis."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    return (cut.rpartition(" ")[0] or cut).rstrip(" ,;:.") + "…"


LARGE_INPUT: Final = 16 * 1024
"""Bytes of an input schema above which an import says so: a model reads all of it with every request."""


def tell_large_input(tool: str, schema: JsonSchema, place: str, losses: Losses) -> None:
    """Report an input schema that is large for a model; it is kept as it is."""
    size = len(orjson.dumps(schema))
    if size > LARGE_INPUT:
        why = (
            f"the input schema of tool {tool!r} has {size} bytes as JSON, more than {LARGE_INPUT}, which a model reads "
            "with every request; offer the tool by search, or wrap it in one with fewer arguments"
        )
        losses.add_changed(place, "bound", "input schema", why)


MAX_NAME: Final = 64
"""Characters of a tool's name that every model provider takes."""
_HASH: Final = 8


def with_hash(name: str, origin: str) -> str:
    """The name, shortened if need be, with a hash of what nothing else is named by."""
    stem = name[: MAX_NAME - _HASH - 1].rstrip("_-")
    return f"{stem}_{digest(origin.encode(errors='replace'))[:_HASH]}"


def fitting(name: str) -> str:
    """The name, or its beginning and its hash if it is too long."""
    return name if len(name) <= MAX_NAME else with_hash(name, name)


MAX_GROUP_DESCRIPTION: Final = 200
"""Characters of what is said about a group."""


@dataclass(frozen=True, slots=True)
class Group:
    """Tools that belong together, and that a model can search as one."""

    name: str
    """Lower case with hyphens; the first tag of each of its tools."""
    tools: int
    """How many tools it has."""
    description: str


@dataclass(frozen=True, slots=True)
class ImportedApi:
    """What a document, a server or a database became."""

    provider: ProviderDefinition
    tools: tuple[ToolDefinition, ...]
    """In the order in which they are described; names are unique."""
    groups: tuple[Group, ...]
    """What the tools are folded into; the first tag of a tool names its group."""
    report: LossReport
    outcome: ImportOutcome | None = None
    """What became of each tool in a realm; null as long as it is in none."""
    is_partial: bool = False
    """Whether not everything could be read, so that tools which are not there are not gone."""

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Every loss, once."""
        return tuple(self.report.all())


def slug(text: str) -> str:
    """A name in lower case with hyphens, at most 64 characters."""
    return re.sub(r"[\W_]+", "-", text.lower()).strip("-")[:64]
