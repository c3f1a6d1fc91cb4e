"""An executor with twins at every port, and one run to make calls in."""

from collections.abc import Mapping

from tests.twins.builders import call, make_context
from tests.twins.clock import ManualClock
from tests.twins.ports import Behaviour, DictSecrets, DictTools, FunctionDispatcher, RecordingJournal, echo
from toolcrib.contracts import Json, Limits, ToolEnvelope, ToolRevision
from toolcrib.core.executor import BlobSink, CallContext, Executor, Results, SecretResolver, SlidingWindow, Tools
from toolcrib.core.policy import Budget
from toolcrib.infrastructure.store import MemoryStore


class Rig:
    """Everything that a call touches, in memory.

    Args:
        *tools: What can be called.
        behaviour: How tools run; by default the input is the output.
        secrets: Values by reference.
        limits: Of the run.
        catalogue: Finds tools, instead of a dictionary of `tools`.
        vault: Resolves secrets, instead of a dictionary.
        results: The cache, instead of one in memory.
        attic: Keeps large outputs, instead of blobs in memory.
    """

    def __init__(
        self,
        *tools: ToolRevision,
        behaviour: Behaviour = echo,
        secrets: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        catalogue: Tools | None = None,
        vault: SecretResolver | None = None,
        results: Results | None = None,
        attic: BlobSink | None = None,
    ) -> None:
        self.clock = ManualClock()
        self.dispatcher = FunctionDispatcher(behaviour)
        self.secrets = DictSecrets(secrets)
        self.store = MemoryStore()
        self.journal = RecordingJournal()
        self.budget = Budget(limits or Limits())
        self.context = make_context(journal=self.journal, budget=self.budget)
        self.executor = Executor(
            tools=catalogue or DictTools(*tools),
            dispatcher=self.dispatcher,
            secrets=vault or self.secrets,
            results=results or self.store.cache,
            blob_sink=attic or self.store.blobs,
            rates=SlidingWindow(),
            clock=self.clock,
        )

    async def run(
        self,
        name: str = "look_up",
        arguments: Json = None,
        *,
        position: str = "t1.c1",
        version: str | None = None,
        context: CallContext | None = None,
    ) -> ToolEnvelope:
        """Execute one call."""
        asked = call(name, arguments, position=position, version=version)
        return await self.executor.execute(asked, context or self.context)

    @property
    def untouched(self) -> bool:
        """Whether nothing was dispatched, no intent recorded and no budget used."""
        return not (self.dispatcher.dispatched or self.journal.intents or self.budget.tool_calls)
