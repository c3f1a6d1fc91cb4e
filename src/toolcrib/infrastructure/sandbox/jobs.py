"""Jobs and results of a sandbox, turn by turn, as data.

Code runs until it ends or asks for a tool, then stops until it is answered. A sandbox passes on a name and arguments
that the code chose; do not trust them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

from toolcrib.contracts import CodeInterpreter, CodeLanguage, Isolation, Json, JsonObject, SandboxLimits

Dialect: TypeAlias = Literal["cpython", "monty", "quickjs", "restricted"]
"""What can run code: three for Python, one for JavaScript."""
Quota: TypeAlias = Literal["wall_s", "cpu_s", "memory_mb", "processes", "output_kb", "tool_calls"]
"""Fields of `SandboxLimits` that end an execution. The others are felt by the code: a file that cannot be opened."""


@dataclass(frozen=True, slots=True)
class CodeJob:
    """One execution of one program."""

    source: str
    arguments: JsonObject
    started_at: datetime
    """What the time is for an interpreter whose clock can be set."""
    seed: str
    """Of its random numbers."""
    language: CodeLanguage = "python"
    interpreter: CodeInterpreter = "any"
    functions: Sequence[str] = ()
    """Names that it may call and that are answered from outside."""
    limits: SandboxLimits = field(default_factory=SandboxLimits)

    @property
    def dialects(self) -> Sequence[Dialect]:
        """What may run it, the cheapest first."""
        if self.language == "javascript":
            return ("quickjs",)
        return ("monty", "cpython") if self.interpreter == "any" else (self.interpreter,)


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """The code wants a tool."""

    function: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class Returned:
    """The code has ended."""

    output: Json


@dataclass(frozen=True, slots=True)
class Failed:
    """The code has failed by itself."""

    type: str
    """Name of the exception."""
    message: str
    line: int | None = None
    """Of the source, from 1."""


@dataclass(frozen=True, slots=True)
class Exceeded:
    """The code was stopped at a quota."""

    quota: Quota


Turn: TypeAlias = ToolRequest | Returned | Failed | Exceeded
"""How a turn of computing ends."""


@dataclass(frozen=True, slots=True)
class ToolReply:
    """What a tool brought: its output, or why it failed."""

    output: Json = None
    failure: str | None = None
    """Raised in the code, which may catch it."""


@dataclass(slots=True)
class Used:
    """What an execution has used so far."""

    wall_s: float = 0.0
    cpu_s: float | None = None
    """Null where nobody counts."""
    memory_peak_mb: float | None = None
    """MiB; null where nobody counts."""
    printed: str = ""


class SandboxSession(Protocol):
    """One execution under way."""

    @property
    def used(self) -> Used:
        """What it has used so far."""
        ...

    async def start(self) -> Turn:
        """Let the code begin."""
        ...

    async def answer(self, answer: ToolReply) -> Turn:
        """Let the code go on after it has asked."""
        ...

    async def close(self) -> None:
        """End it, wherever it is, and leave nothing behind."""
        ...


class Backend(Protocol):
    """One way to run code apart from this process."""

    name: str
    isolation: Isolation
    dialects: frozenset[Dialect]

    async def open(self, job: CodeJob, dialect: Dialect) -> SandboxSession:
        """Prepare an execution; `close` it whatever happens.

        Raises:
            Unavailable: It cannot be had here.
        """
        ...

    async def close(self) -> None:
        """Let go of what is kept ready."""
        ...
