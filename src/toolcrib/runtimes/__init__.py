"""One module per kind of implementation that the executor dispatches to."""

from toolcrib.runtimes.abilities import Abilities
from toolcrib.runtimes.agentic import MAX_DEPTH, AgenticRuntime
from toolcrib.runtimes.dispatcher import Runtime, RuntimeDispatcher
from toolcrib.runtimes.http import HttpRuntime
from toolcrib.runtimes.python import PythonRuntime

__all__ = ["MAX_DEPTH", "Abilities", "AgenticRuntime", "HttpRuntime", "PythonRuntime", "Runtime", "RuntimeDispatcher"]
