"""How a tool is offered to clients of the Model Context Protocol, if not as a tool."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Final, Literal
from urllib.parse import quote, unquote

from toolcrib.contracts.base.base import Contract

_VARIABLE: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class McpOffer(Contract):
    """A tool that MCP clients see as a resource or as a prompt.

    A resource is read by its address, whose variables are the arguments (RFC 6570, level 1). A prompt has the tool's
    arguments; its output is a text, or a list of messages `{"role": "user", "content": "…"}`.

    Example:
        from toolcrib.contracts import McpOffer

        offer = McpOffer(show_as="resource", uri="deals://{deal_id}/notes", mime_type="text/plain")
        print(offer.variables, offer.arguments_of("deals://d1/notes"))
    """

    show_as: Literal["resource", "prompt"]
    uri: str | None = None
    """Of a resource: an absolute URI with variables in braces."""
    mime_type: str | None = None
    """Of a resource; `text/plain` of an output that is text, else `application/json`, if null."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The names in the address, in order."""
        return tuple(_VARIABLE.findall(self.uri or ""))

    def arguments_of(self, uri: str) -> Mapping[str, str] | None:
        """The arguments that an address stands for; null if it is not one of this resource."""
        found = self._pattern.fullmatch(uri)
        return None if found is None else {name: unquote(value) for name, value in found.groupdict().items()}

    def uri_of(self, arguments: Mapping[str, str]) -> str:
        """The address for arguments."""
        return _VARIABLE.sub(lambda found: quote(arguments[found[1]], safe=""), self.uri or "")

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts = _VARIABLE.split(self.uri or "")
        texts = [re.escape(part) if place % 2 == 0 else f"(?P<{part}>[^/?#]+)" for place, part in enumerate(parts)]
        return re.compile("".join(texts))
