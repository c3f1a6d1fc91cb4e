"""The shape of a Python tool: a function of the application."""

from typing import Literal

from toolcrib.contracts.base.implementations import Implementation


class PythonImplementation(Implementation):
    """A Python function of the application. It is bound by content hash at start, never imported by this name."""

    kind: Literal["python"] = "python"
    function: str
    """`module:qualname`, for people to read."""
