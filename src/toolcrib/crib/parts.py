"""The parts of a crib, made once and wired together. Nothing is connected and nothing runs here."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from toolcrib.agents import Furnisher, References, Snapshots, programs
from toolcrib.contracts import DELEGATES, ModelService, RunKind, ToolRevision
from toolcrib.crib.adoption import Adoptions
from toolcrib.crib.catalogue import Catalogue
from toolcrib.crib.keeping import Keeping
from toolcrib.crib.services import service_providers
from toolcrib.engines import EngineSettings, LocalEngine, new_run_id
from toolcrib.executor import Clock, Executor, SlidingWindow
from toolcrib.llm import LanguageModel, ModelPool
from toolcrib.llm.prices import Prices
from toolcrib.net import EgressPolicy, HttpSession
from toolcrib.plugins import Plugins
from toolcrib.providers.entities import Databases
from toolcrib.providers.mcp import Commands
from toolcrib.registry import Providers, Registry
from toolcrib.runs import Ended, Program, RunContext
from toolcrib.runtimes import (
    Abilities,
    Code,
    Composite,
    DelegateRuntime,
    EntityRuntime,
    GrpcRuntime,
    HttpRuntime,
    McpRuntime,
    McpServers,
    PluginHost,
    PluginRuntimes,
    PythonRuntime,
    Runtime,
    RuntimeDispatcher,
)
from toolcrib.sandbox import Sandbox
from toolcrib.store import Store


@dataclass(frozen=True, slots=True)
class Outside:
    """What a crib is given of the world."""

    store: Store
    clock: Clock
    egress: EgressPolicy
    environment: Mapping[str, str]
    """Where secrets and API keys are looked up."""
    released: tuple[str, ...]
    """Patterns of the variables that tools may use as secrets."""
    models: Mapping[str, LanguageModel]
    """Models that are used instead of opening one."""
    prices: Prices
    sandbox: Sandbox
    """Where code is run."""
    mcp_commands: tuple[str, ...]
    """Programs that may be started as MCP servers."""
    plugins: Plugins
    """Runtimes and model providers of other packages."""
    model_services: Mapping[str, ModelService]
    """Model providers that the operator has described."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a crib is made of."""

    outside: Outside
    session: HttpSession
    """Reaches what the egress policy allows."""
    models: ModelPool
    functions: PythonRuntime
    keeping: Keeping
    """Has the credentials."""
    grpc: GrpcRuntime
    """Has the connections to gRPC servers."""
    entities: EntityRuntime
    """Has the connections to databases."""
    mcp: McpServers
    """Has the connections to MCP servers."""
    registry: Registry
    providers: Providers
    catalogue: Catalogue
    adoptions: Adoptions
    references: References
    executor: Executor
    engine: LocalEngine
    furnisher: Furnisher
    """Furnishes the runs of the bench."""

    @classmethod
    def wire(cls, outside: Outside, *, lease_s: float) -> Self:
        """Make all parts."""
        session = HttpSession(outside.egress)
        registry, providers = Registry(outside.store.definitions), Providers(outside.store.definitions)
        keeping = Keeping.wire(
            outside.store,
            session,
            providers.find,
            environment=outside.environment,
            released=outside.released,
            clock=outside.clock,
        )
        access = keeping.access
        models = ModelPool(
            session,
            given=outside.models,
            environment=outside.environment,
            is_released=keeping.variables.is_released,
            prices=outside.prices,
            providers={**service_providers(outside.model_services), **outside.plugins.model_providers},
        )
        functions = PythonRuntime(session)
        commands = Commands(outside.mcp_commands)
        plugins = PluginRuntimes(outside.plugins.runtimes(PluginHost(session, keeping.secrets.resolve, outside.clock)))
        catalogue = Catalogue(
            outside.store,
            registry=registry,
            providers=providers,
            functions=functions,
            models=models,
            commands=commands,
            plugins=plugins,
            clock=outside.clock,
        )
        http = HttpRuntime(session, access, attic=outside.store.blobs, clock=outside.clock)
        grpc = GrpcRuntime(session, access, outside.store.blobs)
        entities = EntityRuntime(Databases(session.route), access, clock=outside.clock)
        mcp = McpServers(session, access, commands=commands, environment=outside.environment, clock=outside.clock)
        runtimes: dict[str, Runtime] = {"python": functions, "http": http, "grpc": grpc, "entity": entities}
        runtimes["plugin"] = plugins
        runtimes["mcp"] = McpRuntime(mcp, access, attic=outside.store.blobs)
        runtimes |= dict.fromkeys(DELEGATES, DelegateRuntime())
        executor = Executor(
            tools=registry,
            dispatcher=RuntimeDispatcher(runtimes, providers.find),
            secrets=keeping.secrets,
            results=outside.store.cache,
            attic=outside.store.blobs,
            rates=SlidingWindow(),
            clock=outside.clock,
        )
        snapshots = Snapshots(outside.store, outside.clock)
        references = References(snapshots, registry=registry, providers=providers, clock=outside.clock)
        kinds: dict[RunKind, Program] = {**programs(models.model, registry, providers, references)}
        kinds |= {"code": Code(outside.sandbox, registry), "composite": Composite(registry)}
        engine = LocalEngine(
            store=outside.store,
            registry=registry,
            executor=executor,
            programs=_at_home(kinds, catalogue),
            clock=outside.clock,
            new_run_id=new_run_id,
            settings=EngineSettings(owner=f"{socket.gethostname()}/{os.getpid()}", lease_s=lease_s),
            check_able=Abilities(registry, functions, models, plugins).check,
        )
        return cls(
            outside=outside,
            session=session,
            models=models,
            functions=functions,
            keeping=keeping,
            grpc=grpc,
            entities=entities,
            mcp=mcp,
            registry=registry,
            providers=providers,
            catalogue=catalogue,
            adoptions=Adoptions(
                outside.store.definitions,
                registry=registry,
                providers=providers,
                catalogue=catalogue,
                clock=outside.clock,
            ),
            references=references,
            executor=executor,
            engine=engine,
            furnisher=Furnisher(models.model, registry, providers, references),
        )

    async def close(self) -> None:
        """Let go of leases, connections and the store."""
        await self.engine.close()
        await self.models.close()
        await self.grpc.close()
        await self.entities.close()
        await self.mcp.close()
        await self.session.close()
        await self.outside.sandbox.close()
        await self.catalogue.close()


def _at_home(found: Mapping[RunKind, Program], catalogue: Catalogue) -> Mapping[RunKind, Program]:
    """Programs that know how the tools of their run's realm stand now, whichever process has changed that.

    A run says at its start which of them are deprecated.
    """

    def settled(program: Program) -> Program:
        async def run(context: RunContext, tool: ToolRevision) -> Ended:
            await catalogue.renew(context.run.realm)
            for warning in catalogue.warnings_at_start(tool, context.request.pins):
                context.warn(warning)
            return await program(context, tool)

        return run

    return {kind: settled(program) for kind, program in found.items()}
