"""How REST shows where an execution stands: as the contract says, with what follows from each envelope and an address.

Contracts are frozen, so a narrower type of a field is safe, which the type checker cannot know.
"""

from typing import Annotated

from fastapi import Depends, Request, Response
from pydantic import Field

from toolcrib.contracts import ENDED, AgentResponse
from toolcrib.interfaces.server.views.common import EnvelopeView


class AgentAnswer(AgentResponse):
    """How an execution stands."""

    tools_by_id: dict[str, EnvelopeView] = Field(default_factory=dict)  # pyright: ignore[reportIncompatibleVariableOverride] - frozen
    """Envelopes by `call_id`, of all calls that have ended, denied ones included."""
    last_tool: EnvelopeView | None = None  # pyright: ignore[reportIncompatibleVariableOverride] - frozen
    """The last of them that succeeded."""
    tool_calls: tuple[EnvelopeView, ...] = ()  # pyright: ignore[reportIncompatibleVariableOverride] - frozen
    """Prepared calls that wait for the client, those of nested runs among them."""


class Answering:
    """Answers a request with how an execution stands.

    Args:
        request: Tells where the client has reached this server.
        response: Gets its status and where the execution can be looked at again.
    """

    def __init__(self, request: Request, response: Response) -> None:
        self._server = str(request.base_url).rstrip("/")
        self._response = response

    def standing(self, found: AgentResponse) -> AgentAnswer:
        """200 if it has ended, else 202."""
        return self.shown(found) if found.status in ENDED else self.accepted(found)

    def accepted(self, found: AgentResponse) -> AgentAnswer:
        """202, however it stands."""
        agent = found.agent.partition("@")[0]
        self._response.status_code = 202
        self._response.headers["Location"] = f"/api/v1/ai/agents/{agent}/executions/{found.run_id}"
        return self.shown(found)

    def shown(self, found: AgentResponse) -> AgentAnswer:
        """The answer, with the address of the run's trace."""
        shown = {
            "tools_by_id": {call_id: EnvelopeView.of(call) for call_id, call in found.tools_by_id.items()},
            "last_tool": None if found.last_tool is None else EnvelopeView.of(found.last_tool),
            "tool_calls": tuple(map(EnvelopeView.of, found.tool_calls)),
            "traces_url": f"{self._server}/api/v1/executions/{found.run_id}",
        }
        return AgentAnswer.model_validate({**dict(found), **shown})


Answers = Annotated[Answering, Depends()]
