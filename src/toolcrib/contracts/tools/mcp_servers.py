"""Virtual MCP servers: a named selection of tools, with its own address.

Example:
    from toolcrib.contracts import McpServerDefinition

    crm = McpServerDefinition(name="crm", tools=("crm.*", "tag:deals"), excluded_tools=("crm.delete_*",))
    print(crm.path)
"""

from typing import Literal

from pydantic import Field, field_validator

from toolcrib.contracts.base.base import Contract
from toolcrib.contracts.providers.providers import NAME_PATTERN


class McpServerDefinition(Contract):
    """A virtual MCP server: the tools that its clients are offered, out of those that their key may execute.

    It only narrows: a selection never grants access to a tool.
    """

    name: str = Field(pattern=NAME_PATTERN)
    """Unique per realm; the end of its address."""
    title: str | None = None
    """What people see in place of the name."""
    description: str = ""
    """What the server is for. Clients get it as instructions for their model."""
    tools: tuple[str, ...] = Field(min_length=1, max_length=1_000)
    """Names, patterns of names (`crm.*`), groups (`group:crm/deals`) and tags (`tag:deals`). Agents are selected by
    name only."""
    excluded_tools: tuple[str, ...] = Field(default=(), max_length=1_000)
    """The same, for tools that are taken out again."""
    offer: Literal["tools", "search"] = "tools"
    """`tools`: each tool is listed. `search`: the list has `search_tools` and `call_tool` in place of the tools."""
    enabled: bool = True
    """A disabled server has no address."""

    @field_validator("tools", "excluded_tools")
    @classmethod
    def _have_no_versions(cls, refs: tuple[str, ...]) -> tuple[str, ...]:
        for ref in refs:
            if not ref or "@" in ref:
                raise ValueError(f"{ref!r} must be a name, a pattern, a group or a tag, without a version")
        return refs

    @property
    def path(self) -> str:
        """The path of its address."""
        return f"/mcp/servers/{self.name}"
