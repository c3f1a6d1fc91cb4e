"""What code may use in a sandbox: languages, isolation and quotas."""

from typing import Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.base import Contract

CodeLanguage: TypeAlias = Literal["python", "javascript"]
CodeInterpreter: TypeAlias = Literal["any", "monty", "cpython", "restricted"]
"""What runs Python: `monty` has a part of the language and starts at once, `cpython` is all of it, `restricted` is
CPython behind RestrictedPython's filter; `any` is the cheapest of the first two that the isolation allows."""
Isolation: TypeAlias = Literal["language", "namespace", "kernel", "vm"]
"""What stands between the code and the machine, weakest first: an interpreter of its own in a jail, a jail of the
kernel's namespaces, a kernel of its own in user space, a virtual machine."""


class SandboxLimits(Contract):
    """Quotas of one execution."""

    wall_s: float = Field(default=10.0, gt=0, le=600)
    """Seconds on the clock; the time that its tools take does not count."""
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
