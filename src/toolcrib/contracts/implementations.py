"""What a tool is made of: a union tagged by `kind`. The executor knows none of them; a runtime each does.

Kinds are added as their runtimes are built: `python`, `http` and `agentic` today.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts._base import Contract
from toolcrib.contracts.agentic import AgenticImplementation
from toolcrib.contracts.http import HttpImplementation


class PythonImplementation(Contract):
    """A Python function of the application. It is bound by content hash at start, never imported by this name."""

    kind: Literal["python"] = "python"
    function: str
    """`module:qualname`, for people to read."""


Implementation: TypeAlias = Annotated[
    PythonImplementation | HttpImplementation | AgenticImplementation, Field(discriminator="kind")
]
