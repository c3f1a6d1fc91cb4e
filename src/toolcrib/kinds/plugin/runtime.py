"""Calls runtimes of other packages, found by the name in a tool's definition.

The operator chooses plugins, and they run with the rights of this process: nothing here confines them. This module
checks that their tools are well formed, and explains the error if a plugin is missing.
"""

from collections.abc import Mapping

from toolcrib.contracts import ErrorCode, InvalidDefinition, Reason, ToolDefinition, ToolRevision
from toolcrib.core.executor import CallFailed, Dispatch, Outcome, error
from toolcrib.core.kinds import PluginRuntime
from toolcrib.core.registry import compile_schema
from toolcrib.kinds.plugin.shape import PluginImplementation


class PluginRuntimes:
    """Dispatches tools of kind `plugin` by the runtime that they name.

    Args:
        runtimes: By name.
    """

    def __init__(self, runtimes: Mapping[str, PluginRuntime]) -> None:
        self._runtimes = runtimes
        self._schemas = {name: compile_schema(runtime.config_schema) for name, runtime in runtimes.items()}

    def missing(self, tool: ToolRevision) -> str | None:
        """The runtime that a tool names, if it is not installed or not allowed in this process."""
        implementation = tool.definition.implementation
        if not isinstance(implementation, PluginImplementation) or implementation.runtime in self._runtimes:
            return None
        return f"the plugin runtime {implementation.runtime} of {tool.ref}"

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
            raise InvalidDefinition(f"tool {definition.name!r}: {self._absence(implementation.runtime)}")
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
            message = f"tool {tool.name!r}: {self._absence(name)}"
            raise CallFailed(error(ErrorCode.UNKNOWN, Reason.RUNTIME_MISSING, message))
        return await runtime.run(dispatch)

    def _absence(self, name: str) -> str:
        here = ", ".join(sorted(self._runtimes)) or "none"
        return (
            f"this process has no plugin runtime {name!r}; it has: {here}. Install the package and name it in "
            "TOOLCRIB_PLUGINS"
        )
