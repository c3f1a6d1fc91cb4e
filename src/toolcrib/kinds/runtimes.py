"""What this process can execute: a run whose Python functions or model live in another process is left to that one.

What a client is to do where the tool is another system's operation: operation and arguments, and no credentials.

Functions, code, composite and agentic tools prepare by running, and are not handled here. An HTTP operation is prepared
by its runtime, as the very request.

Finds the runtime for a tool's kind of implementation: where the executor's one way in meets the many ways out.

Runs a tool that calls others: a nested run with a journal of its own and a budget inside its parent's.

One module per kind of implementation that the executor dispatches to.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from toolcrib.contracts import (
    AgenticImplementation,
    AgentImplementation,
    EntityImplementation,
    ErrorCode,
    GrpcImplementation,
    InvalidSettings,
    JsonObject,
    McpImplementation,
    Reason,
    Run,
    ToolRevision,
    Unavailable,
)
from toolcrib.core.executor import CallFailed, Dispatch, Outcome, check_nesting, cost_of, error, facts_of
from toolcrib.core.providers.reach import Providers, provider_of
from toolcrib.core.registry import Registry
from toolcrib.kinds.code.runtime import Code, Sandboxes
from toolcrib.kinds.composite.runtime import Composite
from toolcrib.kinds.entity.runtime import EntityRuntime
from toolcrib.kinds.grpc.runtime import GrpcRuntime
from toolcrib.kinds.http.runtime import HttpRuntime, preview_request
from toolcrib.kinds.mcp.runtime import McpRuntime, McpServers
from toolcrib.kinds.plugin.runtime import PluginHost, PluginRuntime, PluginRuntimes
from toolcrib.kinds.python.runtime import OwnTool, PythonRuntime
from toolcrib.llm import ModelPool

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


def client_payload(dispatch: Dispatch) -> Outcome | None:
    """The payload for the client, or null if the tool's runtime makes it."""
    definition = dispatch.tool.definition
    if definition.runs_on == "server":
        return None
    payload: JsonObject
    match definition.implementation:
        case McpImplementation() as mcp:
            payload = {"provider": mcp.provider, "capability": mcp.capability, "name": mcp.name}
        case GrpcImplementation() as grpc:
            payload = {"provider": grpc.provider, "method": grpc.method, "request": grpc.request}
        case EntityImplementation() as entity:
            payload = {"provider": entity.provider, "operation": entity.operation, "table": entity.table}
        case _:
            return None
    return Outcome({**payload, "kind": definition.implementation.kind, "arguments": dispatch.input})


class Runtime(Protocol):
    """Executes one kind of implementation."""

    async def run(self, dispatch: Dispatch) -> Outcome:
        """Execute once.

        Raises:
            CallFailed: The tool failed in a way it can describe.
        """
        ...


class RuntimeDispatcher:
    """Dispatches by `implementation.kind`.

    A failed attempt carries the retry policy of the tool's provider, for tools that have none of their own.

    Args:
        runtimes: Runtime by kind.
        providers: Finds providers.
    """

    def __init__(self, runtimes: Mapping[str, Runtime], providers: Providers = lambda _realm, _name: None) -> None:
        self._runtimes = runtimes
        self._providers = providers

    async def dispatch(self, dispatch: Dispatch) -> Outcome:
        """Execute once with the runtime of the tool's kind."""
        kind = dispatch.tool.definition.implementation.kind
        runtime = self._runtimes.get(kind)
        if runtime is None:
            message = f"this process has no runtime for tools of kind {kind!r}; it has: {', '.join(self._runtimes)}"
            raise CallFailed(error(ErrorCode.UNKNOWN, Reason.RUNTIME_MISSING, message))
        for_client = client_payload(dispatch)
        if for_client is not None:
            return for_client
        try:
            return await runtime.run(dispatch)
        except CallFailed as failure:
            provider = provider_of(dispatch.tool, self._providers)
            failure.retry = None if provider is None else provider.retry
            raise


class DelegateRuntime:
    """Starts the nested run through the run that calls."""

    async def run(self, dispatch: Dispatch) -> Outcome:
        """Run the tool as a run of its own, and bring back its output."""
        check_nesting(dispatch.tool, dispatch.context)
        result = await dispatch.context.journal.spawn(
            dispatch.position,
            dispatch.tool,
            dispatch.input,
            attempt=dispatch.attempt,
            timeout_s=dispatch.timeout_s,
        )
        metadata, cost = facts_of(result), cost_of(result)
        if result.error is not None:
            raise CallFailed(result.error, metadata=metadata, cost_usd=cost, tainted=result.tainted)
        return Outcome(
            result.output, metadata=metadata, attachments=result.attachments, cost_usd=cost, tainted=result.tainted
        )


class Abilities:
    """Holds runs against what this process has.

    Args:
        registry: Finds the revisions that a run has pinned.
        functions: The Python functions that were added here.
        models: The models that can be opened here.
        plugins: The runtimes of other packages that were loaded here.
    """

    def __init__(
        self, registry: Registry, functions: PythonRuntime, models: ModelPool, plugins: PluginRuntimes
    ) -> None:
        self._registry = registry
        self._functions = functions
        self._models = models
        self._plugins = plugins

    async def check(self, run: Run) -> None:
        """Refuse a run that could only fail here.

        Raises:
            Unavailable: Names what is missing.
        """
        missing = [what async for tool in self._tools(run) if (what := self._missing(tool, run)) is not None]
        if missing:
            msg = (
                f"run {run.run_id} cannot go on in this process, which lacks {', '.join(missing)}; add it, unchanged, "
                "or leave the run to a process that has it, such as toolcrib worker APP"
            )
            raise Unavailable(msg)

    async def _tools(self, run: Run) -> AsyncIterator[ToolRevision]:
        for content_hash in dict.fromkeys((run.request.content_hash, *run.request.pins.values())):
            yield await self._registry.get_revision(run.realm, content_hash)

    def _missing(self, tool: ToolRevision, run: Run) -> str | None:
        implementation = tool.definition.implementation
        if not tool.definition.enabled:
            return None  # no call of it is dispatched anywhere
        if not self._functions.serves(tool):
            return f"the Python function of {tool.ref}"
        if implementation.kind == "plugin" and not self._plugins.has(implementation.runtime):
            return f"the plugin runtime {implementation.runtime} of {tool.ref}"
        if isinstance(implementation, AgentImplementation | AgenticImplementation):
            llm = implementation.llm
            if run.request.model is not None and tool.content_hash == run.request.content_hash:
                llm = llm.asking(run.request.model)  # which is asked in place of the definition's
            try:
                self._models.check(llm)
            except InvalidSettings:
                return f"the model {llm.model} of {tool.ref}"
        return None
