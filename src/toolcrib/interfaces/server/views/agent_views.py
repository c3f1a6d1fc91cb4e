"""Requests and answers about agents (004, REST API design). What an agent is asked and answers are contracts."""

from typing import Any, Final, Self

from pydantic import ConfigDict, Field

from toolcrib.contracts import AgentDefinition, AgenticStatus, AgentRequest, Contract, ResolvedTool, ToolRevision
from toolcrib.interfaces.server.http.requests import Stored, stored_fields

_BUILT: Final = ConfigDict(defer_build=False)


class AgentBody(AgentDefinition):
    """An agent, as an author sends it."""

    model_config = _BUILT


class AskBody(AgentRequest):
    """What an agent is asked, or what its client brings back."""

    model_config = _BUILT


class AgentView(AgentDefinition, Stored):
    """An agent, as it is stored."""

    @classmethod
    def shown(cls, tool: ToolRevision) -> Self:
        """The view of a revision."""
        agent = AgentDefinition.of(tool.definition)
        fields: dict[str, Any] = {name: getattr(agent, name) for name in AgentDefinition.model_fields}
        return cls(**fields, **stored_fields(tool))


class AgentFilter(Contract):
    """Which agents are meant; what is null counts for all."""

    model_config = _BUILT

    text: str | None = None
    """What must stand in name, title, description or tags."""
    category: str | None = None
    tag: str | None = None
    status: AgenticStatus | None = None
    enabled: bool | None = None
    model: str | None = None
    """`provider:model`, or its beginning."""

    def fits(self, tool: ToolRevision) -> bool:
        """Whether an agent is meant, as far as the catalogue has no index for it."""
        implementation = tool.definition.implementation
        return (
            implementation.kind == "agent"
            and self.status in {None, implementation.status}
            and self.enabled in {None, tool.definition.enabled}
            and (self.model is None or implementation.llm.model.startswith(self.model))
        )


class AgentQuery(AgentFilter):
    """A page of the agents that are meant, by name."""

    after: str = ""
    """Last name of the page before."""
    limit: int = Field(default=50, ge=1, le=200)


class AgentPage(Contract):
    """Agents by name."""

    items: tuple[AgentView, ...]
    next: str | None
    """`after` of the next page."""


class AgentCount(Contract):
    """How many agents are meant."""

    count: int


class AgentTools(Contract):
    """What has become of every tool that an agent's definition means."""

    items: tuple[ResolvedTool, ...]


class ContinueBody(Contract):
    """The next message of a conversation."""

    model_config = _BUILT

    message: str = Field(min_length=1)
