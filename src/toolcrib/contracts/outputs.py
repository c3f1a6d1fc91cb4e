"""What every agent node puts out, and how a user pins one tool's result to a stable handle.

The shapes are those of 001, sections 3.1 and 4.2.
"""

from typing import Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts._base import Contract
from toolcrib.contracts.envelope import ToolEnvelope

PinStrategy: TypeAlias = Literal["latest", "first_success", "by_call_id"]
OnMissing: TypeAlias = Literal["null", "error", "stale_last_success"]


class AgentOutputs(Contract):
    """Always all present, whatever the configuration."""

    response: str
    tools_by_id: dict[str, ToolEnvelope] = Field(default_factory=dict)
    """Envelopes by `call_id`."""
    tool_order: tuple[str, ...] = ()
    """`call_id`s in the order of execution."""
    last_tool: ToolEnvelope | None = None
    """The last call that succeeded."""
    traces_url: str | None = None
    """Null without a server."""


class PinSelector(Contract):
    """Which call fills the handle."""

    tool: str
    strategy: PinStrategy = "latest"
    call_id: str | None = None


class PinnedHandle(Contract):
    """A named output that stays when its tool is disabled or removed."""

    name: str
    selector: PinSelector
    on_missing: OnMissing = "null"
