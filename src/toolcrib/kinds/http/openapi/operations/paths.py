"""Paths as URL templates: `/deals/{id}` with one plain name in each pair of braces."""

import re
from dataclasses import dataclass
from typing import Final

from toolcrib.core.providers.losses import Losses
from toolcrib.kinds.http.openapi.read.nodes import Node

_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
_OPERATORS: Final = "+#./;?&"
"""Of RFC 6570, which OpenAPI does not have."""


@dataclass(frozen=True, slots=True)
class Path:
    """One path and what it says for all of its operations."""

    written: str
    """As the document has it, for people."""
    template: str
    """As a URL takes it."""
    item: Node

    @property
    def place(self) -> str:
        """Where it stands."""
        return self.item.place


def read_path(written: str, item: Node, losses: Losses) -> Path:
    """A path with everything set right that documents add to it."""
    template = written.strip()
    if not template.startswith("/"):
        template = f"/{template}"
        losses.changed(item.place, "invalid", f"path {written[:200]}", "taken with a slash before it")
    bare, mark, fragment = template.partition("#")
    if mark:
        losses.dropped(
            item.place, "invalid", f"fragment {fragment[:200]}", "a request has none; it only names the operation"
        )
    plain = _PLACEHOLDER.sub(_simple, bare)
    if plain != bare:
        losses.changed(item.place, "invalid", f"path {written[:200]}", f"taken as {plain[:200]}")
    return Path(written, plain, item)


def placeholders(template: str) -> tuple[str, ...]:
    """Names in braces, each once, in order."""
    return tuple(dict.fromkeys(_PLACEHOLDER.findall(template.partition("?")[0])))


def _simple(match: re.Match[str]) -> str:
    name = match[1].strip().lstrip(_OPERATORS).rstrip("*").partition(":")[0]
    return f"{{{name or match[1]}}}"
