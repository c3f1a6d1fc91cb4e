"""Sandboxes for untrusted code: jails with quotas, without files and network.

Code asks for a tool by name, and the driver of the session answers; the package knows no tools, runs or policies.
Importing it starts nothing. `docs/code-tools.md` describes each sandbox. Code tools, replays and the crib import it.
Decisions: docs/decisions/0013.
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
