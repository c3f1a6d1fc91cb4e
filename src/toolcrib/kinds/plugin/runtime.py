"""Runtimes of other packages: found by the name that a tool says, given what they need and nothing more.

A plugin is the operator's choice and runs with this process's rights: nothing here confines it. What is held here is
that its tools are well formed, and that a tool whose plugin is missing says what to do.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from toolcrib.contracts import (
    ErrorCode,
    InvalidDefinition,
    JsonSchema,
    PluginImplementation,
    Principal,
    Reason,
    ToolDefinition,
)
from toolcrib.core.executor import CallFailed, Clock, Dispatch, Outcome, error
from toolcrib.core.registry import compile_schema
from toolcrib.infrastructure.net import HttpSession


@dataclass(frozen=True, slots=True)
class PluginHost:
    """What a plugin gets of the crib."""

    http: HttpSession
    """The way out, under the crib's egress policy."""
    secret: Callable[[str, Principal], Awaitable[str | None]]
    """The value behind `${env:NAME}` for whoever calls; what is used goes into `Outcome.secrets`."""
    clock: Clock


@runtime_checkable
class PluginRuntime(Protocol):
    """Executes the tools of one name."""

    @property
    def config_schema(self) -> JsonSchema:
        """JSON Schema 2020-12 of `PluginImplementation.config`."""
        ...

    async def run(self, dispatch: Dispatch) -> Outcome:
        """Execute once.

        Raises:
            CallFailed: The tool failed in a way it can describe. Anything else is told as `UNKNOWN`.
        """
        ...


class PluginRuntimes:
    """Dispatches tools of kind `plugin` by the runtime that they name.

    Args:
        runtimes: By name.
    """

    def __init__(self, runtimes: Mapping[str, PluginRuntime]) -> None:
        self._runtimes = runtimes
        self._schemas = {name: compile_schema(runtime.config_schema) for name, runtime in runtimes.items()}

    def has(self, name: str) -> bool:
        """Whether this process has a runtime."""
        return name in self._runtimes

    def check(self, definition: ToolDefinition) -> None:
        """Refuse a tool whose runtime is not here, or does not want its configuration.

        Raises:
            InvalidDefinition: Names the tool, the runtime and what is wrong.
        """
        implementation = definition.implementation
        if not isinstance(implementation, PluginImplementation):
            return
        schema = self._schemas.get(implementation.runtime)
        if schema is None:
            raise InvalidDefinition(f"tool {definition.name!r}: {self._missing(implementation.runtime)}")
        problems = schema.problems(implementation.config)
        if problems:
            msg = f"tool {definition.name!r}: its config is not what runtime {implementation.runtime!r} wants"
            raise InvalidDefinition(f"{msg}: {problems[0]}")

    async def run(self, dispatch: Dispatch) -> Outcome:
        """Execute once with the runtime that the tool names."""
        tool = dispatch.tool.definition
        implementation = tool.implementation
        name = implementation.runtime if isinstance(implementation, PluginImplementation) else ""
        runtime = self._runtimes.get(name)
        if runtime is None:
            message = f"tool {tool.name!r}: {self._missing(name)}"
            raise CallFailed(error(ErrorCode.UNKNOWN, Reason.RUNTIME_MISSING, message))
        return await runtime.run(dispatch)

    def _missing(self, name: str) -> str:
        here = ", ".join(sorted(self._runtimes)) or "none"
        return (
            f"this process has no plugin runtime {name!r}; it has: {here}. Install the package and name it in "
            "TOOLCRIB_PLUGINS"
        )
