"""One module per kind of implementation that the executor dispatches to."""

from toolcrib.runtimes.abilities import Abilities
from toolcrib.runtimes.composite import Composite
from toolcrib.runtimes.delegates import DelegateRuntime
from toolcrib.runtimes.dispatcher import Runtime, RuntimeDispatcher
from toolcrib.runtimes.entity import EntityRuntime
from toolcrib.runtimes.grpc import GrpcRuntime
from toolcrib.runtimes.http import HttpRuntime
from toolcrib.runtimes.python import PythonRuntime

__all__ = [
    "Abilities",
    "Composite",
    "DelegateRuntime",
    "EntityRuntime",
    "GrpcRuntime",
    "HttpRuntime",
    "PythonRuntime",
    "Runtime",
    "RuntimeDispatcher",
]
