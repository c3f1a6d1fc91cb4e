"""What this process can execute: a run whose Python functions or model live in another process is left to that one."""

from collections.abc import AsyncIterator

from toolcrib.contracts import (
    AgenticImplementation,
    AgentImplementation,
    InvalidSettings,
    Run,
    ToolRevision,
    Unavailable,
)
from toolcrib.core.registry import Registry
from toolcrib.kinds.plugin.runtime import PluginRuntimes
from toolcrib.kinds.python.runtime import PythonRuntime
from toolcrib.llm import ModelPool


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
            yield await self._registry.pinned(run.realm, content_hash)

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
