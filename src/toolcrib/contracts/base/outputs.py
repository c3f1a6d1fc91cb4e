"""What every agent node puts out, and how a user pins one tool's result to a stable handle.

The shapes are those of 001, sections 3.1 and 4.2.
"""

from typing import Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.base import Contract
from toolcrib.contracts.base.envelope import ToolEnvelope

PinStrategy: TypeAlias = Literal["latest", "first_success", "by_call_id"]
OnMissing: TypeAlias = Literal["null", "error", "stale_last_success"]


class AgentOutputs(Contract):
    """Always all present, whatever the configuration."""

    response: str = ""
    """The final answer; empty as long as there is none."""
    tools_by_id: dict[str, ToolEnvelope] = Field(default_factory=dict)
    """Envelopes by `call_id`, of all calls that have ended, denied ones included."""
    tool_order: tuple[str, ...] = ()
    """`call_id`s in the order in which the calls began."""
    last_tool: ToolEnvelope | None = None
    """The last of them that succeeded."""
    traces_url: str | None = None
    """Null without a server."""


class PinSelector(Contract):
    """Which call fills the handle."""

    tool: str = Field(min_length=1)
    """Name of the tool. It need not be enabled, nor exist."""
    strategy: PinStrategy = "latest"
    """`latest`: the last call that was executed, whether it succeeded or failed; one that failed has null as output."""
    call_id: str | None = None
    """For `by_call_id`."""


class PinnedHandle(Contract):
    """A named output that stays when its tool is disabled or removed."""

    name: str = Field(min_length=1, max_length=100)
    selector: PinSelector
    on_missing: OnMissing = "null"
    """What if there is no such call: null; the execution fails; or the value of the last successful one before."""
