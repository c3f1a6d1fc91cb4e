"""The parts of a crib, made once and wired together. Nothing is connected and nothing runs here."""

import os
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from toolcrib.agents import AgenticHandlers, Memory, Models, References, RunPreparer, Snapshots, programs
from toolcrib.contracts import DELEGATES, PromptFragment, RunKind, ServiceAccount, ToolRevision
from toolcrib.contracts.workflows import ConditionBinding, StepRegistration
from toolcrib.core.engines import Engine, EngineSettings, LocalEngine, new_run_id
from toolcrib.core.engines.restate import RestateEngine
from toolcrib.core.executor import Executor
from toolcrib.core.policy import Guardrails
from toolcrib.core.registry import Named, Providers, Registry
from toolcrib.core.runs import Program, RunContext, RunEnd, holding_pins, with_confirmation, with_fork
from toolcrib.crib.container.access import Visibility
from toolcrib.crib.container.adoption import Adoptions
from toolcrib.crib.container.catalogue import Catalogue
from toolcrib.crib.container.environment import CredentialServices, Environment, RuntimeSet, Sharing
from toolcrib.crib.container.model_services import asking, service_providers
from toolcrib.infrastructure.net import HttpSession
from toolcrib.infrastructure.store import Definitions
from toolcrib.infrastructure.store.memory.shadow import ShadowStore
from toolcrib.kinds.runtimes import (
    Abilities,
    Code,
    Composite,
    DelegateRuntime,
    EntityRuntime,
    GrpcRuntime,
    McpServers,
    PythonRuntime,
    RuntimeDispatcher,
    Sandboxes,
)
from toolcrib.llm import ModelPool
from toolcrib.workflows import Workflow


@dataclass(frozen=True, slots=True)
class CribServices:
    """What a crib is made of."""

    outside: Environment
    session: HttpSession
    """Reaches what the egress policy allows."""
    models: ModelPool
    reaching: RuntimeSet
    """Has the runtimes, and their connections."""
    keeping: CredentialServices
    """Has the credentials."""
    sharing: Sharing
    registry: Registry
    providers: Providers
    fragments: Named[PromptFragment]
    accounts: Named[ServiceAccount]
    steps: Named[StepRegistration]
    conditions: Named[ConditionBinding]
    catalogue: Catalogue
    visibility: Visibility
    adoptions: Adoptions
    references: References
    executor: Executor
    engine: Engine
    preparer: RunPreparer
    """Prepares the scratch runs of authors."""
    programs: Callable[[Models, Sandboxes], Mapping[RunKind, Program]]
    """The code of each kind of run, with the models and the sandboxes that it opens."""

    @classmethod
    def wire(cls, outside: Environment) -> Self:
        """Make all parts."""
        session = HttpSession(outside.egress)
        kept = _Kept.of(outside.store.definitions)
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
        reaching = RuntimeSet.wire(outside, session, keeping)
        registry.runs_here = reaching.functions.serves
        catalogue = _catalogue(outside, kept, models, reaching)
        sharing = Sharing.wire(outside)
        executor = _executor(outside, kept, keeping, reaching, sharing)
        snapshots = Snapshots(outside.store, outside.clock)
        references = References(snapshots, registry=registry, providers=providers, clock=outside.clock)

        code_of = _code(outside, kept, references)
        local = LocalEngine(
            store=outside.store,
            registry=registry,
            executor=executor,
            programs=at_home(code_of(models.model, outside.sandbox), catalogue),
            clock=outside.clock,
            new_run_id=new_run_id,
            settings=EngineSettings(owner=_owner(), lease_s=outside.sharing.lease_s),
            check_able=Abilities(registry, reaching.functions, models, reaching.plugins).check,
        )
        return cls(
            outside=outside,
            session=session,
            models=models,
            reaching=reaching,
            keeping=keeping,
            sharing=sharing,
            registry=registry,
            providers=providers,
            fragments=kept.fragments,
            accounts=kept.accounts,
            steps=kept.steps,
            conditions=kept.conditions,
            catalogue=catalogue,
            visibility=Visibility(registry),
            adoptions=Adoptions(
                outside.store.definitions,
                registry=registry,
                providers=providers,
                catalogue=catalogue,
                clock=outside.clock,
            ),
            references=references,
            executor=executor,
            engine=_engine(local, outside),
            preparer=RunPreparer(models.model, registry, providers, references),
            programs=code_of,
        )

    @property
    def functions(self) -> PythonRuntime:
        """Runs the Python functions that were added here."""
        return self.reaching.functions

    @property
    def grpc(self) -> GrpcRuntime:
        """Has the connections to gRPC servers."""
        return self.reaching.grpc

    @property
    def entities(self) -> EntityRuntime:
        """Has the connections to databases."""
        return self.reaching.entities

    @property
    def mcp(self) -> McpServers:
        """Has the connections to MCP servers."""
        return self.reaching.mcp

    async def begin_with(self, real: "CribServices", store: ShadowStore, realms: Sequence[str]) -> None:
        """Have what another crib has: definitions of some realms, functions, and what was added and not saved yet."""
        real.functions.lend(self.functions)
        for realm in dict.fromkeys((*realms, *(owner.realm for _, owner in real.catalogue.additions))):
            await store.take_over(realm)
        for addition, owner in real.catalogue.additions:
            self.catalogue.add(addition, owner)

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
        is_released=keeping.variables.is_released,
        prices=given.prices,
        providers={**service_providers(given.model_services), **given.plugins.model_providers},
    )


class _Kept(NamedTuple):
    """What people have saved, at hand."""

    registry: Registry
    providers: Providers
    fragments: Named[PromptFragment]
    accounts: Named[ServiceAccount]
    steps: Named[StepRegistration]
    conditions: Named[ConditionBinding]

    @classmethod
    def of(cls, definitions: Definitions) -> Self:
        return cls(
            Registry(definitions),
            Providers(definitions),
            Named(definitions, "fragment", PromptFragment),
            Named(definitions, "account", ServiceAccount),
            Named(definitions, "workflow_step", StepRegistration),
            Named(definitions, "condition", ConditionBinding),
        )


def _catalogue(outside: Environment, kept: _Kept, models: ModelPool, reaching: RuntimeSet) -> Catalogue:
    return Catalogue(
        outside.store,
        registry=kept.registry,
        providers=kept.providers,
        fragments=kept.fragments,
        accounts=kept.accounts,
        steps=kept.steps,
        conditions=kept.conditions,
        functions=reaching.functions,
        models=models,
        commands=reaching.commands,
        plugins=reaching.plugins,
        clock=outside.clock,
    )


def _code(
    outside: Environment, kept: _Kept, references: References
) -> Callable[[Models, Sandboxes], Mapping[RunKind, Program]]:
    """The code of each kind of run, with whatever models and sandboxes it shall open."""

    def code_of(opened: Models, sandbox: Sandboxes) -> Mapping[RunKind, Program]:
        recall = Memory(outside.store, opened)
        found = programs(
            opened,
            kept.registry,
            kept.providers,
            references,
            fragments=kept.fragments,
            accounts=kept.accounts,
            recall=recall,
        )
        kinds: dict[RunKind, Program] = {**found}
        kinds |= {"code": Code(sandbox, kept.registry), "composite": Composite(kept.registry)}
        preparer = RunPreparer(opened, kept.registry, kept.providers, references)
        kinds["workflow"] = Workflow(kept.registry, AgenticHandlers.of(preparer, kept.registry), kept.accounts)
        kinds["agent"] = asking(holding_pins(kinds["agent"]))
        kinds["agentic"] = asking(kinds["agentic"])
        return {kind: with_fork(program, kept.registry) for kind, program in kinds.items()}

    return code_of


def _executor(
    outside: Environment, kept: _Kept, keeping: CredentialServices, reaching: RuntimeSet, sharing: Sharing
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
        guardrails=Guardrails(outside.definitions.plugins.guardrails),
        accounts=kept.accounts,
        caps=sharing.caps,
    )


def _engine(local: LocalEngine, outside: Environment) -> Engine:
    """What drives runs: this process, or the workers of a Restate cluster."""
    sharing = outside.sharing
    if sharing.restate is None:
        return local
    journal, clock = outside.store.journal, outside.clock
    return RestateEngine.wire(local, journal, clock, owner=_owner(), lease_s=sharing.lease_s, options=sharing.restate)


def _owner() -> str:
    return f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"  # hosts may share a name, and process numbers


def at_home(found: Mapping[RunKind, Program], catalogue: Catalogue) -> Mapping[RunKind, Program]:
    """Programs that know how the tools of their run's realm stand now, whichever process has changed that.

    A run says at its start which of them are deprecated. One whose tool needs it waits for a person before that.
    """

    def settled(program: Program) -> Program:
        async def run(context: RunContext, tool: ToolRevision) -> RunEnd:
            await catalogue.renew(context.run.realm)
            for warning in catalogue.warnings_at_start(tool, context.request.pins):
                context.warn(warning)
            return await program(context, tool)

        return run

    return {kind: with_confirmation(settled(program)) for kind, program in found.items()}
