"""Where code that nobody vouches for is run: in jails, turn by turn, under quotas, without files or a network.

It knows no tools, runs or policies: code asks for something by name, and whoever drives the session answers. Nothing is
started on import. `docs/code-tools.md` tells what each way keeps out and what a machine needs for it.
"""

from toolcrib.contracts import Isolation
from toolcrib.infrastructure.sandbox.bwrap import BwrapBackend
from toolcrib.infrastructure.sandbox.gvisor import GvisorBackend
from toolcrib.infrastructure.sandbox.jobs import (
    Backend,
    CodeJob,
    Dialect,
    Exceeded,
    Failed,
    Quota,
    Returned,
    SandboxSession,
    ToolReply,
    ToolRequest,
    Turn,
    Used,
)
from toolcrib.infrastructure.sandbox.monty import MontyBackend
from toolcrib.infrastructure.sandbox.sandbox import Sandbox, Sandboxes, SandboxProbe

__all__ = [
    "Backend",
    "BwrapBackend",
    "CodeJob",
    "Dialect",
    "Exceeded",
    "Failed",
    "GvisorBackend",
    "MontyBackend",
    "Quota",
    "Returned",
    "Sandbox",
    "SandboxProbe",
    "SandboxSession",
    "Sandboxes",
    "ToolReply",
    "ToolRequest",
    "Turn",
    "Used",
    "machine_sandbox",
]


def machine_sandbox(
    *, minimum: Isolation = "language", allow_unjailed: bool = False, warm: int = 0, places: int | None = None
) -> Sandbox:
    """The sandbox of this machine.

    Args:
        minimum: The least isolation that the operator wants.
        allow_unjailed: Whether Monty may run without a jail where none can be made.
        warm: Jails of each kind that are kept ready.
        places: Executions that compute at the same time; twice as many as processors if null.
    """
    monty = MontyBackend(allow_unjailed=allow_unjailed, warm=warm)
    backends: tuple[Backend, ...] = (monty, BwrapBackend(warm), GvisorBackend())
    return Sandbox(backends, minimum=minimum, places=places)
