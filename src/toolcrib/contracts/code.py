"""Code as a tool, which never runs in this process: in a sandbox, under quotas, without a network."""

from typing import Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts._base import Contract

CodeLanguage: TypeAlias = Literal["python", "javascript"]
Isolation: TypeAlias = Literal["language", "namespace", "kernel", "vm"]
"""What stands between the code and the machine, weakest first: an interpreter of its own in a jail, a jail of the
kernel's namespaces, a kernel of its own in user space, a virtual machine."""


class SandboxLimits(Contract):
    """Quotas of one execution."""

    wall_s: float = Field(default=10.0, gt=0, le=600)
    """Seconds on the clock."""
    cpu_s: float = Field(default=5.0, gt=0, le=600)
    """Seconds of computing."""
    memory_mb: int = Field(default=256, ge=16, le=16_384)
    """MiB."""
    processes: int = Field(default=32, ge=1, le=512)
    """Processes and threads."""
    open_files: int = Field(default=64, ge=16, le=1024)
    """File descriptors."""
    output_kb: int = Field(default=256, ge=1, le=16_384)
    """KiB of what it prints and of what it returns, each."""
    disk_mb: int = Field(default=32, ge=1, le=4096)
    """MiB of files."""
    tool_calls: int = Field(default=50, ge=0, le=1000)
    """Calls of other tools."""


class CodeImplementation(Contract):
    """A function body in a language, which gets the arguments as variables and returns the output."""

    kind: Literal["code"] = "code"
    language: CodeLanguage = "python"
    source: str
    """Defines `main`, which is called with the arguments by name, and returns JSON."""
    tools: tuple[str, ...] = ()
    """Tools that the code may call, as functions of these names: `name` or `name@range`."""
    isolation: Isolation = "language"
    """The least that is wanted; the realm may want more. If nothing on the machine gives it, the call is refused."""
    limits: SandboxLimits = SandboxLimits()
