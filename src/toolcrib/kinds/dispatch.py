"""Applies what a kind defines to a tool of that kind: check, complete, preview, and execute with the kind's runtime.

A call of a kind without a runtime becomes a nested run, with its own journal and a share of its parent's budget.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

from toolcrib.contracts import (
    AgenticImplementation,
    AgentImplementation,
    ErrorCode,
    InvalidSettings,
    JsonObject,
    ProviderDefinition,
    Reason,
    Run,
    RunRequest,
    ToolDefinition,
    ToolRevision,
    Unavailable,
)
from toolcrib.core.executor import CallFailed, Dispatch, Outcome, check_nesting, cost_of, error, facts_of
from toolcrib.core.kinds import AnyKind, Require, Runtime, RuntimeParts
from toolcrib.core.providers.request_errors import Providers, provider_of
from toolcrib.core.registry import Registry, check_definition, pins_of
from toolcrib.kinds.table import KINDS
from toolcrib.llm import ModelPool

RuntimeT = TypeVar("RuntimeT")


_MOST: Final = 4096
"""Tools whose runtimes are remembered; when there are more, all are found anew."""
_BY_SHAPE: Final = {kind.shape: kind for kind in KINDS}


def check_tool(definition: ToolDefinition) -> None:
    """Refuse a definition that could not run.

    Raises:
        InvalidDefinition: Names the tool, the field, what is wrong and what to do.
    """
    check_definition(definition)
    check = _kind_of(definition).check
    if check is not None:
        check(definition, definition.implementation)


def complete_tool(definition: ToolDefinition, require: Require) -> ToolDefinition:
    """The definition, with what follows from the tools that it names.

    Args:
        definition: As it was given, checked by `check_tool`.
        require: Finds the tools that it names.

    Raises:
        InvalidDefinition: It does not fit a tool that it names.
        NotFound: A tool that it names does not exist.
    """
    complete = _kind_of(definition).complete
    return definition if complete is None else complete(definition, definition.implementation, require)


def preview_call(
    tool: ToolDefinition, arguments: JsonObject, *, provider: ProviderDefinition | None, idempotency_key: str
) -> JsonObject:
    """What a call would do, as fields of `ApprovalPreview`; empty if its kind does not say.

    Args:
        tool: The tool.
        arguments: The validated arguments of the call.
        provider: The provider that the tool names, if there is one.
        idempotency_key: The idempotency key of the call.
    """
    preview = _kind_of(tool).preview
    if preview is None:
        return {}
    return preview(tool, tool.implementation, arguments, provider=provider, idempotency_key=idempotency_key)


def _kind_of(definition: ToolDefinition) -> AnyKind:
    return _BY_SHAPE[type(definition.implementation)]


@runtime_checkable
class ClosableRuntime(Protocol):
    """A runtime that has connections."""

    async def close(self) -> None:
        """Close them."""
        ...


@runtime_checkable
class PartialRuntime(Protocol):
    """A runtime that may lack what a tool needs, such as a function of the application."""

    def missing(self, tool: ToolRevision) -> str | None:
        """What a tool of its kind needs and this process lacks; null if nothing."""
        ...


class Runtimes:
    """One runtime of each kind that has one.

    Args:
        by_kind: Runtime by kind.
    """

    def __init__(self, by_kind: Mapping[str, Runtime]) -> None:
        self.by_kind = by_kind

    @classmethod
    def open(cls, parts: RuntimeParts) -> "Runtimes":
        """Make all of them; nothing is connected."""
        return cls({kind.name: kind.open_runtime(parts) for kind in KINDS if kind.open_runtime is not None})

    def find(self, runtime: type[RuntimeT]) -> RuntimeT:
        """The runtime of a class."""
        return next(found for found in self.by_kind.values() if isinstance(found, runtime))

    def missing(self, tool: ToolRevision) -> Iterator[str]:
        """What a tool needs and this process lacks."""
        found = self.by_kind.get(tool.definition.implementation.kind)
        lacks = found.missing(tool) if isinstance(found, PartialRuntime) else None
        if lacks is not None:
            yield lacks

    async def close(self) -> None:
        """Close all connections."""
        for runtime in self.by_kind.values():
            if isinstance(runtime, ClosableRuntime):
                await runtime.close()


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
        self._direct: dict[str, Callable[[Dispatch], Coroutine[Any, Any, Outcome]]] = {}
        """What runs a tool, by its content: of tools of which nothing else has to be known."""

    def dispatch(self, dispatch: Dispatch) -> Coroutine[Any, Any, Outcome]:
        """Execute once with the runtime of the tool's kind."""
        tool = dispatch.tool
        run = self._direct.get(tool.content_hash)
        if run is not None:
            return run(dispatch)
        definition = tool.definition
        if definition.runs_on == "server" and definition.implementation.provider_name is None:
            runtime = self._runtimes.get(definition.implementation.kind)
            if runtime is not None:
                if len(self._direct) >= _MOST:
                    self._direct.clear()
                self._direct[tool.content_hash] = runtime.run
                return runtime.run(dispatch)
        return self._dispatch(dispatch)

    async def _dispatch(self, dispatch: Dispatch) -> Outcome:
        definition = dispatch.tool.definition
        kind = definition.implementation.kind
        runtime = self._runtimes.get(kind)
        if runtime is None:
            message = f"this process has no runtime for tools of kind {kind!r}; it has: {', '.join(self._runtimes)}"
            raise CallFailed(error(ErrorCode.UNKNOWN, Reason.RUNTIME_MISSING, message))
        operation = None if definition.runs_on == "server" else definition.implementation.client_operation()
        if operation is not None:
            return Outcome({**operation, "kind": kind, "arguments": dispatch.input})
        try:
            return await runtime.run(dispatch)
        except CallFailed as failure:
            provider = provider_of(dispatch.tool, self._providers)
            failure.retry = None if provider is None else provider.retry
            raise


class DelegateRuntime:
    """Starts the nested run through the run that calls."""

    async def run(self, dispatch: Dispatch) -> Outcome:
        """Run the tool as a nested run, and return its output."""
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
            failure = CallFailed(result.error, metadata=metadata, cost_usd=cost, tainted=result.tainted, sent=True)
            failure.partial = result.partial
            raise failure
        return Outcome(
            result.output, metadata=metadata, attachments=result.attachments, cost_usd=cost, tainted=result.tainted
        )


class Abilities:
    """Checks what runs need against what this process has.

    Args:
        registry: Finds the revisions that a run has pinned.
        runtimes: The runtimes of this process.
        models: The models that can be opened here.
    """

    def __init__(self, registry: Registry, runtimes: Runtimes, models: ModelPool) -> None:
        self._registry = registry
        self._runtimes = runtimes
        self._models = models

    async def check(self, run: Run) -> None:
        """Refuse a run that could only fail here; one that has not begun also for what nested runs of it would need.

        Raises:
            Unavailable: Names what is missing.
        """
        models = [what async for tool in self._pinned(run.request) for what in self._missing_model(tool, run)]
        tools = self._reached(run.request) if run.events <= 1 else self._pinned(run.request)
        missing = [*[what async for tool in tools for what in self._missing_of(tool)], *models]
        if missing:
            msg = (
                f"run {run.run_id} cannot continue in this process, which lacks {', '.join(missing)}; add it, "
                "unchanged, or leave the run to a process that has it, such as toolcrib worker APP"
            )
            raise Unavailable(msg)

    async def missing_functions(self, request: RunRequest) -> list[str]:
        """What the tools of a run, and of its nested runs, need and this process lacks, apart from models."""
        return [what async for tool in self._reached(request) for what in self._missing_of(tool)]

    async def _pinned(self, request: RunRequest) -> AsyncIterator[ToolRevision]:
        for content_hash in dict.fromkeys((request.content_hash, *request.pins.values())):
            yield await self._registry.get_revision(request.principal.realm, content_hash)

    async def _reached(self, request: RunRequest) -> AsyncIterator[ToolRevision]:
        """What a run has pinned, and what nested runs of it would pin, at any depth.

        Of a run that continues another one only the former: most nested runs have ended in that one.
        """
        waiting = [request.content_hash, *request.pins.values()]
        seen: set[str] = set()
        for content_hash in waiting:
            if content_hash not in seen:
                seen.add(content_hash)
                tool = await self._registry.get_revision(request.principal.realm, content_hash)
                yield tool
                if content_hash != request.content_hash and request.rerun is None and request.fork is None:
                    waiting += pins_of(tool, self._registry, request.pins).values()

    def _missing_of(self, tool: ToolRevision) -> Iterator[str]:
        if tool.definition.enabled:  # otherwise no call of it is dispatched anywhere
            yield from self._runtimes.missing(tool)

    def _missing_model(self, tool: ToolRevision, run: Run) -> Iterator[str]:
        implementation = tool.definition.implementation
        if tool.definition.enabled and isinstance(implementation, AgentImplementation | AgenticImplementation):
            llm = implementation.llm
            if run.request.model is not None and tool.content_hash == run.request.content_hash:
                llm = llm.asking(run.request.model)  # which is asked in place of the definition's
            try:
                self._models.check(llm, run.realm)
            except InvalidSettings:
                yield f"the model {llm.model} of {tool.ref}"
