"""The bench: runs for authors, of definitions that are not saved, in a journal that is thrown away.

They go through the crib's executor and its models like any run, with the same limits and receipts, and write nothing:
they are dry. Nobody finds them among the executions.
"""

from toolcrib.contracts import PLAN_FORMAT, JsonObject, Principal, Run, RunRequest, ToolDefinition
from toolcrib.core.engines import EngineSettings, LocalEngine, new_run_id
from toolcrib.core.executor import Clock, Executor
from toolcrib.core.registry import Registry, pins_of
from toolcrib.core.runs import Program, Result
from toolcrib.infrastructure.store import MemoryStore


class Bench:
    """Runs programs on definitions as they are written.

    Args:
        registry: Finds the tools that a definition is allotted.
        executor: Runs tool calls.
        clock: Time.
    """

    def __init__(self, registry: Registry, executor: Executor, clock: Clock) -> None:
        self._registry = registry
        self._executor = executor
        self._clock = clock

    async def run(self, definition: ToolDefinition, program: Program, arguments: JsonObject, who: Principal) -> Result:
        """Run a program once.

        Args:
            definition: The tool, checked; it need not be saved.
            program: What is done with it.
            arguments: Its input.
            who: Who acts.
        """
        store = MemoryStore()
        drawer = Registry(store.definitions)
        tool = await drawer.save(definition, realm=who.realm, made_by=who.id, at=self._clock.now())
        engine = LocalEngine(
            store=store,
            registry=drawer,
            executor=self._executor,
            programs={"agentic": program},
            clock=self._clock,
            new_run_id=new_run_id,
            settings=EngineSettings(owner="bench"),
            check_able=_anything,
        )
        request = RunRequest(
            kind="agentic",
            plan_format=PLAN_FORMAT,
            tool=tool.ref,
            content_hash=tool.content_hash,
            pins=pins_of(tool, self._registry),
            input=arguments,
            principal=who,
            dry_run=True,
        )
        try:
            driven = await engine.start(request)
        finally:
            await engine.close()
        return Result(driven.result, driven.log)


async def _anything(_run: Run) -> None:
    """Whatever is on the bench is here."""
