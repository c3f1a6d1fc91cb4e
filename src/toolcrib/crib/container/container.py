"""Makes the parts of a crib once and connects them. It opens no connection and starts no run.

Programs of runs are loaded when the first run is driven.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Self

from msgspec import structs

from toolcrib import agents, workflows
from toolcrib.contracts import (
    DELEGATES,
    Json,
    McpServerDefinition,
    Principal,
    PromptFragment,
    RunKind,
    RunRequest,
    ServiceAccount,
    ToolRevision,
    TriggerDefinition,
)
from toolcrib.contracts.workflows import ConditionBinding, StepRegistration
from toolcrib.core.engines import DriveResult, Engine, EngineSettings, LeftRuns, LocalEngine, new_run_id, restate
from toolcrib.core.executor import ExecutionRules, Executor
from toolcrib.core.kinds import ImportContext, ProgramParts
from toolcrib.core.policy import Guardrails
from toolcrib.core.registry import Named, Providers, Registry
from toolcrib.core.runs import Program, ProgramStart, Result, RunContext, agent_pins, holding_pins, read_result
from toolcrib.crib.container.access import Visibility
from toolcrib.crib.container.adoption import Adoptions
from toolcrib.crib.container.catalogue import Catalogue, StoredDefinitions
from toolcrib.crib.container.environment import CredentialServices, Environment, Sharing, open_runtimes
from toolcrib.crib.container.model_services import service_providers, with_model
from toolcrib.infrastructure.net import HttpSession
from toolcrib.infrastructure.sandbox import Sandboxes
from toolcrib.infrastructure.store import MemoryStore
from toolcrib.infrastructure.store.memory.shadow import ShadowStore
from toolcrib.kinds.dispatch import Abilities, DelegateRuntime, RuntimeDispatcher, Runtimes
from toolcrib.kinds.mcp.runtime import McpRuntime
from toolcrib.kinds.plugin.runtime import PluginRuntimes
from toolcrib.kinds.python.runtime import PythonRuntime
from toolcrib.kinds.table import KINDS
from toolcrib.llm import ModelPool

if TYPE_CHECKING:
    from toolcrib.agents import Models, References, RunPreparer


@dataclass(frozen=True, slots=True)
class DefinitionServices:
    """The parts that store, check and import definitions."""

    stored: StoredDefinitions
    catalogue: Catalogue
    visibility: Visibility
    adoptions: Adoptions
    answer_checks: agents.AnswerChecks
    """Judge answers of the agents that were defined here with an output type."""


@dataclass(frozen=True, slots=True)
class EngineServices:
    """What runs are driven with."""

    executor: Executor
    engine: Engine
    start: Callable[[RunRequest], Coroutine[Any, Any, DriveResult]]
    """Has a run driven here, or by a worker if this process lacks a function that it needs."""
    resume: Callable[[str], Coroutine[Any, Any, DriveResult]]
    """The same for a run that is in the journal."""
    references: Callable[[], References]
    preparer: Callable[[], RunPreparer]
    """Prepares the scratch runs of authors."""
    programs: Callable[[Models, Sandboxes], Mapping[RunKind, ProgramStart]]
    """The code of each kind of run, with the models and the sandboxes that it opens."""


@dataclass(frozen=True, slots=True)
class CribServices:
    """What a crib is made of."""

    outside: Environment
    session: HttpSession
    """Reaches what the egress policy allows."""
    models: ModelPool
    reaching: Runtimes
    """Has the runtimes, and their connections."""
    keeping: CredentialServices
    """Has the credentials."""
    sharing: Sharing
    definitions: DefinitionServices
    engines: EngineServices

    @classmethod
    def wire(cls, outside: Environment) -> Self:
        """Make all parts."""
        session = HttpSession(outside.egress)
        kept = StoredDefinitions.of(outside.store.definitions)
        registry, providers = kept.registry, kept.providers
        keeping = CredentialServices.wire(
            outside.store,
            session,
            providers.find,
            environment=outside.environment,
            released=outside.definitions.released,
            clock=outside.clock,
        )
        models = _models(outside, session, keeping)
        reaching = open_runtimes(outside, session, keeping)
        registry.runs_here = reaching.find(PythonRuntime).serves
        catalogue = _catalogue(outside, kept, models, reaching)
        sharing = Sharing.wire(outside)
        executor = _executor(outside, kept, keeping, reaching, sharing)

        @cache
        def references() -> References:
            snapshots = agents.Snapshots(outside.store, outside.clock)
            return agents.References(snapshots, registry=registry, providers=providers, clock=outside.clock)

        answer_checks = agents.AnswerChecks()
        code_of = _code(outside, kept, references, answer_checks)
        abilities = Abilities(registry, reaching, models)
        local = LocalEngine(
            store=outside.store,
            registry=registry,
            executor=executor,
            programs=_LaterPrograms(lambda: at_home(code_of(models.model, outside.sandbox), catalogue)),
            clock=outside.clock,
            new_run_id=new_run_id,
            settings=EngineSettings(owner=_owner(), lease_s=outside.sharing.lease_s),
            check_able=abilities.check,
        )
        engine = _engine(local, outside)
        adoptions = Adoptions(
            outside.store.definitions, registry=registry, providers=providers, catalogue=catalogue, clock=outside.clock
        )
        return cls(
            outside,
            session,
            models,
            reaching,
            keeping,
            sharing,
            DefinitionServices(kept, catalogue, Visibility(registry), adoptions, answer_checks),
            EngineServices(
                executor,
                engine,
                *_starts(engine, outside, abilities),
                references,
                cache(lambda: agents.RunPreparer(models.model, registry, providers, references())),
                code_of,
            ),
        )

    @property
    def registry(self) -> Registry:
        """The tools."""
        return self.definitions.stored.registry

    @property
    def providers(self) -> Providers:
        """The providers."""
        return self.definitions.stored.providers

    @property
    def fragments(self) -> Named[PromptFragment]:
        """The prompt fragments."""
        return self.definitions.stored.fragments

    @property
    def accounts(self) -> Named[ServiceAccount]:
        """The service accounts."""
        return self.definitions.stored.accounts

    @property
    def steps(self) -> Named[StepRegistration]:
        """The handlers that workflow steps name."""
        return self.definitions.stored.steps

    @property
    def conditions(self) -> Named[ConditionBinding]:
        """The conditions that workflows name."""
        return self.definitions.stored.conditions

    @property
    def mcp_servers(self) -> Named[McpServerDefinition]:
        """The virtual MCP servers."""
        return self.definitions.stored.mcp_servers

    @property
    def triggers(self) -> Named[TriggerDefinition]:
        """What starts runs without a person."""
        return self.definitions.stored.triggers

    @property
    def catalogue(self) -> Catalogue:
        """Checks and saves definitions."""
        return self.definitions.catalogue

    @property
    def visibility(self) -> Visibility:
        """Tells which tools a principal may see."""
        return self.definitions.visibility

    @property
    def adoptions(self) -> Adoptions:
        """Takes in what imports have made."""
        return self.definitions.adoptions

    @property
    def executor(self) -> Executor:
        """Runs calls."""
        return self.engines.executor

    @property
    def engine(self) -> Engine:
        """Drives runs."""
        return self.engines.engine

    @property
    def start(self) -> Callable[[RunRequest], Coroutine[Any, Any, DriveResult]]:
        """Has a run driven here, or by a worker."""
        return self.engines.start

    async def result(self, driven: DriveResult, tool: ToolRevision | None = None) -> Result[Json]:
        """The result of a run that was driven; nothing is read if its tool is known, has no pins, and it has ended."""
        summary, log = driven.result, driven.log
        if tool is not None and summary.stop_reason is not None and not agent_pins(tool):
            return Result(summary, log)
        return await read_result(self.outside.store.journal, self.registry.get_revision, summary, log)

    @property
    def resume(self) -> Callable[[str], Coroutine[Any, Any, DriveResult]]:
        """Has a run of the journal driven here, or by a worker."""
        return self.engines.resume

    @property
    def references(self) -> References:
        """Has the reference data of providers."""
        return self.engines.references()

    @property
    def preparer(self) -> RunPreparer:
        """Prepares the scratch runs of authors."""
        return self.engines.preparer()

    @property
    def programs(self) -> Callable[[Models, Sandboxes], Mapping[RunKind, ProgramStart]]:
        """The code of each kind of run, with the models and the sandboxes that it opens."""
        return self.engines.programs

    def import_context(self, who: Principal, name: str) -> ImportContext:
        """What an import of a provider of this name is given."""
        return ImportContext(
            who=who,
            session=self.session,
            access=self.keeping.access,
            runtime=self.reaching.find,
            provider=self.providers.find(who.realm, name),
            tools=self.registry.current(who.realm),
            blobs=self.outside.store.blobs,
        )

    @property
    def functions(self) -> PythonRuntime:
        """Runs the Python functions that were added here."""
        return self.reaching.find(PythonRuntime)

    async def begin_with(self, real: CribServices, store: ShadowStore, realms: Sequence[str]) -> None:
        """Have what another crib has: definitions of some realms, functions, and what was added and not saved yet."""
        real.functions.lend(self.functions)
        for realm in dict.fromkeys((*realms, *(owner.realm for _, owner in real.catalogue.additions))):
            await store.take_over(realm)
        for addition, owner in real.catalogue.additions:
            self.catalogue.add(addition, owner=owner)

    async def let_go(self) -> None:
        """Let go of the connections that are of this crib alone."""
        await self.engine.close()
        await self.models.close()
        await self.reaching.close()
        await self.session.close()

    async def close(self) -> None:
        """Let go of leases, connections and the store."""
        await self.engine.close()
        await self.models.close()
        await self.reaching.close()
        await self.keeping.consents.settle()
        await self.session.close()
        await self.outside.sandbox.close()
        await self.sharing.close()
        await self.catalogue.close()


def _models(outside: Environment, session: HttpSession, keeping: CredentialServices) -> ModelPool:
    given = outside.definitions
    return ModelPool(
        session,
        given=outside.models,
        environment=outside.environment,
        is_released=keeping.variables.is_released_for_model,
        prices=given.prices,
        providers={**service_providers(given.model_services), **given.plugins.model_providers},
    )


def _catalogue(outside: Environment, kept: StoredDefinitions, models: ModelPool, reaching: Runtimes) -> Catalogue:
    return Catalogue(
        outside.store,
        kept,
        functions=reaching.find(PythonRuntime),
        models=models,
        commands=reaching.find(McpRuntime).servers.commands,
        plugins=reaching.find(PluginRuntimes),
        clock=outside.clock,
    )


def _code(
    outside: Environment,
    kept: StoredDefinitions,
    references: Callable[[], References],
    answer_checks: agents.AnswerChecks,
) -> Callable[[Models, Sandboxes], Mapping[RunKind, ProgramStart]]:
    """The program of each kind of run, with the models and sandboxes that it opens."""

    def code_of(opened: Models, sandbox: Sandboxes) -> Mapping[RunKind, ProgramStart]:
        from toolcrib.agents.programs import programs  # noqa: PLC0415 - loads all that runs are made of

        recall = agents.Memory(outside.store, opened)
        found = programs(
            opened,
            kept.registry,
            kept.providers,
            references(),
            fragments=kept.fragments,
            accounts=kept.accounts,
            recall=recall,
            checks=answer_checks,
        )
        kinds: dict[RunKind, Program] = {**found}
        parts = ProgramParts(sandbox, kept.registry)
        kinds |= {kind.run_kind: kind.open_program(parts) for kind in KINDS if kind.open_program is not None}
        preparer = agents.RunPreparer(opened, kept.registry, kept.providers, references())
        kinds["workflow"] = workflows.Workflow(
            kept.registry, agents.AgenticHandlers.of(preparer, kept.registry), kept.accounts
        )
        kinds["agent"] = holding_pins(kinds["agent"])
        return {
            kind: ProgramStart(program, kept.registry, with_model if kind in {"agent", "agentic"} else None)
            for kind, program in kinds.items()
        }

    return code_of


def _executor(
    outside: Environment, kept: StoredDefinitions, keeping: CredentialServices, reaching: Runtimes, sharing: Sharing
) -> Executor:
    runtimes = {**reaching.by_kind, **dict.fromkeys(DELEGATES, DelegateRuntime())}
    return Executor(
        tools=kept.registry,
        dispatcher=RuntimeDispatcher(runtimes, kept.providers.find),
        secrets=keeping.secrets,
        results=sharing.results,
        blob_sink=outside.store.blobs,
        rates=sharing.rates,
        clock=outside.clock,
        rules=ExecutionRules(Guardrails(outside.definitions.plugins.guardrails), kept.accounts, sharing.caps),
    )


def _engine(local: LocalEngine, outside: Environment) -> Engine:
    """What drives runs: this process, or the workers of a Restate cluster."""
    sharing = outside.sharing
    if sharing.restate is None:
        return local
    journal, clock = outside.store.journal, outside.clock
    return restate.RestateEngine.wire(
        local, journal, clock, owner=_owner(), lease_s=sharing.lease_s, options=sharing.restate
    )


def _starts(
    engine: Engine, outside: Environment, abilities: Abilities
) -> tuple[Callable[[RunRequest], Coroutine[Any, Any, DriveResult]], Callable[[str], Coroutine[Any, Any, DriveResult]]]:
    """What starts runs, and what resumes them; a store in memory has no other process that could drive one."""
    if outside.sharing.restate is not None or isinstance(outside.store, MemoryStore | ShadowStore):
        return engine.start, engine.resume
    wait_s = outside.sharing.worker_wait_s
    left = LeftRuns(engine, outside.store.journal, outside.clock, abilities.missing_functions, wait_s=wait_s)
    return left.start, left.resume


def _owner() -> str:
    return f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"  # hosts may share a name, and process numbers


class _LaterPrograms(dict[RunKind, Program]):
    """The code of each kind of run, which is loaded when the first run is driven."""

    def __init__(self, load: Callable[[], Mapping[RunKind, Program]]) -> None:
        super().__init__()
        self._load = load

    def __missing__(self, kind: RunKind) -> Program:
        found = self._load()
        self.update(found)
        return found[kind]


def at_home(found: Mapping[RunKind, ProgramStart], catalogue: Catalogue) -> Mapping[RunKind, Program]:
    """Programs that first read the current states of the tools in their run's realm from the store.

    A run says at its start which of them are deprecated. One whose tool needs it waits for a person before that.
    """

    async def settle(context: RunContext, tool: ToolRevision) -> None:
        await catalogue.renew(context.run.realm)
        for warning in catalogue.warnings_at_start(tool, context.request.pins):
            context.warn(warning)

    return {kind: structs.replace(start, settle=settle) for kind, start in found.items()}
