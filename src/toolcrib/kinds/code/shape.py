"""The shape of a code tool. Its code never runs in this process, only in a sandbox with quotas and without network."""

import re
from typing import Final, Literal

from pydantic import Field

from toolcrib.contracts.base.implementations import Implementation
from toolcrib.contracts.specs.sandbox import CodeInterpreter, CodeLanguage, Isolation, SandboxLimits

_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_]")


class CodeImplementation(Implementation):
    """A program in a language, whose function `main` gets the arguments by name and returns the output."""

    kind: Literal["code"] = "code"
    language: CodeLanguage = "python"
    interpreter: CodeInterpreter = "any"
    """For Python only."""
    source: str = Field(max_length=200_000)
    """Defines `main`, which is called with the arguments by name (JavaScript: with one object), and returns JSON."""
    tools: tuple[str, ...] = ()
    """Tools that the code may call, as functions: `name` or `name@range`."""
    isolation: Isolation = "language"
    """The weakest isolation that is accepted; the operator may require more. Without it, calls are refused."""
    limits: SandboxLimits = SandboxLimits.model_construct()

    @property
    def functions(self) -> dict[str, str]:
        """The references of its tools by the names of their functions: `crm.find-deals` is `crm_find_deals`."""
        return {_NO_NAME.sub("_", reference.partition("@")[0]): reference for reference in self.tools}

    @property
    def callees(self) -> tuple[str, ...]:
        """The tools that the code may call."""
        return self.tools

    @property
    def call_quota(self) -> int:
        """Calls of other tools, of its limits."""
        return self.limits.tool_calls
