"""One module per kind of implementation that the executor dispatches to."""

from toolcrib.runtimes.abilities import Abilities
from toolcrib.runtimes.code import Code, Sandboxes
from toolcrib.runtimes.composite import Composite
from toolcrib.runtimes.delegates import DelegateRuntime
from toolcrib.runtimes.dispatcher import Runtime, RuntimeDispatcher
from toolcrib.runtimes.entity import EntityRuntime
from toolcrib.runtimes.grpc import GrpcRuntime
from toolcrib.runtimes.http import HttpRuntime, preview_request
from toolcrib.runtimes.mcp import McpRuntime, McpServers
from toolcrib.runtimes.plugin import PluginHost, PluginRuntime, PluginRuntimes
from toolcrib.runtimes.python import OwnTool, PythonRuntime

__all__ = [
    "Abilities",
    "Code",
    "Composite",
    "DelegateRuntime",
    "EntityRuntime",
    "GrpcRuntime",
    "HttpRuntime",
    "McpRuntime",
    "McpServers",
    "OwnTool",
    "PluginHost",
    "PluginRuntime",
    "PluginRuntimes",
    "PythonRuntime",
    "Runtime",
    "RuntimeDispatcher",
    "Sandboxes",
    "preview_request",
]
