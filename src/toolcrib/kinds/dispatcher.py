"""Finds the runtime for a tool's kind of implementation: where the executor's one way in meets the many ways out."""

from collections.abc import Mapping
from typing import Protocol

from toolcrib.contracts import ErrorCode, Reason
from toolcrib.core.executor import CallFailed, Dispatch, Outcome, error
from toolcrib.core.providers.reaching import Providers, provider_of
from toolcrib.kinds.preparing import prepared


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
        for_client = prepared(dispatch)
        if for_client is not None:
            return for_client
        try:
            return await runtime.run(dispatch)
        except CallFailed as failure:
            provider = provider_of(dispatch.tool, self._providers)
            failure.retry = None if provider is None else provider.retry
            raise
