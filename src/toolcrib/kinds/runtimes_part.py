"""One module per kind of implementation that the executor dispatches to."""

from toolcrib.kinds.code.runtime import Code, Sandboxes
from toolcrib.kinds.composite.runtime import Composite
from toolcrib.kinds.delegates import DelegateRuntime
from toolcrib.kinds.dispatcher import Runtime, RuntimeDispatcher
from toolcrib.kinds.entity.runtime import EntityRuntime
from toolcrib.kinds.grpc.runtime import GrpcRuntime
from toolcrib.kinds.http.runtime import HttpRuntime, preview_request
from toolcrib.kinds.mcp.runtime import McpRuntime, McpServers
from toolcrib.kinds.plugin.runtime import PluginHost, PluginRuntime, PluginRuntimes
from toolcrib.kinds.python.runtime import OwnTool, PythonRuntime
from toolcrib.kinds.runtimes import Abilities

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
