"""Finds the runtime for a tool's kind of implementation: where the executor's one way in meets the many ways out."""

from collections.abc import Mapping
from typing import Protocol

from toolcrib.contracts import ErrorCode, Reason
from toolcrib.executor import CallFailed, Dispatch, Outcome, error


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

    Args:
        runtimes: Runtime by kind.
    """

    def __init__(self, runtimes: Mapping[str, Runtime]) -> None:
        self._runtimes = runtimes

    async def dispatch(self, dispatch: Dispatch) -> Outcome:
        """Execute once with the runtime of the tool's kind."""
        kind = dispatch.tool.definition.implementation.kind
        runtime = self._runtimes.get(kind)
        if runtime is None:
            message = f"this process has no runtime for tools of kind {kind!r}; it has: {', '.join(self._runtimes)}"
            raise CallFailed(error(ErrorCode.UNKNOWN, Reason.RUNTIME_MISSING, message))
        return await runtime.run(dispatch)
