"""Rendered tool sets, each kept as JSON so that a request splices it in instead of rendering ten schemas again."""

from typing import Any, Protocol

import orjson

from toolcrib.llm.base.messages import Tool, ToolSet

_CAPACITY = 64


class RenderTool(Protocol):
    """Renders one tool for one wire."""

    def __call__(self, tool: Tool, /, *, strict: bool) -> dict[str, Any]:
        """The tool as the wire has it; `strict` says whether the endpoint knows strict mode."""
        ...


class RenderedToolSets:
    """A bounded cache from a tool set and a variant to its JSON; the least recently rendered goes first."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[tuple[ToolSet, bool], orjson.Fragment] = {}

    def get(self, tools: ToolSet, *, strict: bool, render: RenderTool) -> orjson.Fragment:
        """The set's JSON, rendered when it is new."""
        key = (tools, strict)
        fragment = self._kept.get(key)
        if fragment is None:
            if len(self._kept) >= _CAPACITY:
                del self._kept[next(iter(self._kept))]
            fragment = orjson.Fragment(orjson.dumps([render(tool, strict=strict) for tool in tools.tools]))
            self._kept[key] = fragment
        return fragment
