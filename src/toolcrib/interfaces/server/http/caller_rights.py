"""What each route receives: the crib, the caller, the checks that routes share, and saving definitions for callers.

Callers over the network have restrictions beyond those of the crib: for instance, they may not define Python tools.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from types import MappingProxyType
from typing import Annotated, Final, cast
from urllib.parse import urlsplit

from fastapi import Depends, Request, Response
from fastapi.security import HTTPBearer

from toolcrib.contracts import (
    LOOKS,
    SECRET_REFERENCE,
    AgentDefinition,
    AgenticImplementation,
    AgentImplementation,
    Conflict,
    InvalidDefinition,
    JsonObject,
    LLMConfig,
    NotFound,
    PermissionDenied,
    Principal,
    ProviderDefinition,
    Run,
    ToolDefinition,
    ToolRevision,
    tool_uri,
)
from toolcrib.contracts.base.errors import UnknownName
from toolcrib.contracts.workflows import Publication, WorkflowDefinition, WorkflowDraft, WorkflowImplementation
from toolcrib.core.policy import permits, require_grant, require_publish
from toolcrib.core.registry import all_references_of
from toolcrib.crib import ActingCrib, Crib
from toolcrib.crib.agents.agents import shape_of
from toolcrib.infrastructure.net.addresses import denied_range
from toolcrib.infrastructure.store import Definition, DefinitionKind
from toolcrib.llm import PROVIDERS
from toolcrib.workflows.checks import read_definition

BEARER = HTTPBearer(auto_error=False, description="An API key of this server: `tcb_…`")
"""Documents in OpenAPI what `Authentication` enforces."""


# These are coroutines because the framework calls plain functions in other threads.


async def _caller(request: Request) -> Principal:
    return cast("Principal", request.state.principal)


async def _whole_crib(request: Request) -> Crib:
    return cast("Crib", request.app.state.crib)


async def _crib(request: Request) -> ActingCrib:
    crib = cast("Crib", request.app.state.crib)
    return crib.acting_as(cast("Principal", request.state.principal), start=getattr(request.state, "keyed", None))


Caller = Annotated[Principal, Depends(_caller)]
CribDep = Annotated[ActingCrib, Depends(_crib)]
"""The crib as the caller uses it."""
WholeCrib = Annotated[Crib, Depends(_whole_crib)]
"""The crib as the server uses it, where no caller is known yet, or the route itself has judged what the caller may."""


def demand(caller: Principal, uri: str) -> None:
    """Let a caller pass who has a grant for a security URI.

    Raises:
        PermissionDenied: The grant is missing; the message names it.
    """
    require_grant(caller, uri)


async def run_of(crib: ActingCrib, caller: Principal, run_id: str) -> Run:
    """A run of the caller's realm.

    Raises:
        NotFound: There is no such run; runs of other realms give the same error.
    """
    try:
        run = await crib.store.journal.run(run_id)
    except NotFound:
        run = None
    if run is None or run.realm != caller.realm:
        msg = f"there is no run {run_id!r}; GET /api/v1/executions lists the runs"
        raise NotFound(msg)
    return run


_PLURALS: Final[Mapping[DefinitionKind, str]] = MappingProxyType(
    {
        "provider": "providers",
        "baseline": "providers",
        "fragment": "fragments",
        "account": "accounts",
        "workflow_step": "steps",
        "condition": "conditions",
        "draft": "workflows",
        "mcp_server": "mcp_servers",
        "trigger": "triggers",
    }
)
"""Of security URIs, for what is no tool."""


def demand_write(caller: Principal, definition: ToolDefinition) -> None:
    """Let a caller pass who may write the tool. Of a workflow drafts are written; it changes by being published."""
    if isinstance(definition.implementation, WorkflowImplementation):
        require_publish(caller, definition.name)
    else:
        demand(caller, definition.security("write"))


def may_write(caller: Principal, definition: ToolDefinition) -> bool:
    """Whether a caller may write the tool."""
    return permits(caller.grants, definition.security("write"))


def may_see(caller: Principal, definition: ToolDefinition) -> bool:
    """Whether a caller may see a tool."""
    return any(permits(caller.grants, definition.security(verb)) for verb in LOOKS)


def demand_sight(caller: Principal, definition: ToolDefinition) -> None:
    """Let a caller pass who may see the tool."""
    if not may_see(caller, definition):
        demand(caller, definition.security("read"))


def demand_run(caller: Principal, run: Run) -> None:
    """Let a caller pass who has started the run, or may read the runs of its tool."""
    if run.made_by != caller.id:
        demand(caller, f"ai://runs/{run.request.tool_name}/read")


def demand_execute(caller: Principal, run: Run) -> None:
    """Allow a caller that has started the run, or may execute its tool."""
    if run.made_by != caller.id:
        demand(caller, f"ai://runs/{run.request.tool_name}/execute")


def may_see_run(caller: Principal, run: Run) -> bool:
    """Whether a caller may see a run."""
    return run.made_by == caller.id or permits(caller.grants, f"ai://runs/{run.request.tool_name}/read")


def may_see_kept(caller: Principal, kept: Run | Definition) -> bool:
    """Whether a caller may see something that a run names: another run, or a definition."""
    if isinstance(kept, Run):
        return may_see_run(caller, kept)
    if kept.kind == "tool":
        return may_see(caller, ToolDefinition.model_validate(kept.body))
    return permits(caller.grants, f"ai://{_PLURALS[kept.kind]}/{kept.name}/read")


def sees_names(request: Request, error: UnknownName) -> bool:
    """Whether the caller of a request may see every name that an error tells."""
    caller = cast("Principal", request.state.principal)
    if error.kind != "tool":
        plural = _PLURALS[cast("DefinitionKind", error.kind)]
        return all(permits(caller.grants, f"ai://{plural}/{name}/read") for name in error.names)
    registry = cast("Crib", request.app.state.crib).registry
    found = (registry.find(caller.realm, name, None) for name in error.names)
    return all(tool is None or may_see(caller, tool.definition) for tool in found)


def demand_secrets(caller: Principal, references: Iterable[str]) -> None:
    """Let a caller pass who may use every secret of the vault that a definition names.

    Who saves a definition decides where its secrets go. The operator releases variables to realms and for hosts.
    """
    for reference in references:
        found = SECRET_REFERENCE.fullmatch(reference)
        if found is not None and found[1] == "secret":
            demand(caller, f"ai://secrets/{found[2]}/execute")


def demand_provider(caller: Principal, provider: ProviderDefinition) -> None:
    """Let a caller pass who may save the provider: use its secrets, and have its tools saved if it is synced."""
    demand(caller, f"ai://providers/{provider.name}/write")
    demand_secrets(caller, all_references_of(provider))
    if provider.auto_discover is not None or provider.imported_from is not None:
        demand(caller, tool_uri("*", "*", "write"))


async def demand_import(crib: ActingCrib, caller: Principal, name: str, *, named: Iterable[str], accept: bool) -> None:
    """Let a caller pass who may import a provider of this name with its tools.

    Args:
        crib: Has the provider, if it is known.
        caller: The principal that imports.
        name: The name of the provider.
        named: What may be references to secrets in what is imported.
        accept: Whether the provider may move to another address, together with its secrets.
    """
    demand(caller, f"ai://providers/{name}/write")
    demand(caller, tool_uri("*", "*", "write"))
    demand_secrets(caller, named)
    known = crib.providers.find((await crib.authorize(newest=True)).realm, name) if accept else None
    demand_secrets(caller, () if known is None else all_references_of(known))


def refuse_code(definition: ToolDefinition) -> None:
    """Refuse Python code.

    Raises:
        InvalidDefinition: It is some.
    """
    if definition.implementation.kind == "python":
        msg = f"tool {definition.name!r} is Python code, which is added by a process: crib.add(function), not over HTTP"
        raise InvalidDefinition(msg)


def refuse_local_model(definition: ToolDefinition) -> None:
    """Refuse a model on a local address: it would be the server's network, not the caller's.

    Raises:
        PermissionDenied: The model's address is local.
    """
    implementation = definition.implementation
    if not isinstance(implementation, AgentImplementation | AgenticImplementation):
        return
    address = _address(implementation.llm)
    if address is not None and _is_local(address):
        msg = (
            f"tool {definition.name!r} names the model {implementation.llm.model!r} at the local address {address}; "
            "definitions over HTTP may do so only if the operator allows local models"
        )
        raise PermissionDenied(msg)


def _address(llm: LLMConfig) -> str | None:
    return llm.base_url or _usual_address(llm.model.partition(":")[0])


def _usual_address(provider: str) -> str | None:
    found = PROVIDERS.get(provider)
    known = found.base_url if found is not None else None
    return known if isinstance(known, str) else None


def is_local_provider(name: str) -> bool:
    """Whether the models of a provider are on a local address, so that `refuse_local_model` refuses them."""
    address = _usual_address(name)
    return address is not None and _is_local(address)


def _is_local(address: str) -> bool:
    host = (urlsplit(address).hostname or "").rstrip(".")
    try:
        return denied_range(ip_address(host)) is not None
    except ValueError:
        return host == "localhost" or host.endswith((".localhost", ".local", ".internal"))


@dataclass(frozen=True, slots=True)
class DefinitionWriter:
    """One request's way of saving."""

    crib: ActingCrib
    caller: Principal
    allow_local_models: bool

    async def save(self, definition: ToolDefinition, *, after: int | None = None) -> ToolRevision:
        """Store a definition as a new revision.

        Raises:
            PermissionDenied: The caller has no grant to write the tool or for a secret that it names, or its model is
                on a local address.
            InvalidDefinition: It is Python code, or not well formed.
            Conflict: Another revision has been saved since `after`.
        """
        demand_write(self.caller, definition)
        demand_secrets(self.caller, (secret.reference for secret in definition.secrets))
        self.check(definition)
        return await self.crib.save(definition, after=after)

    async def create(
        self,
        definition: ToolDefinition,
        response: Response,
        *,
        path: str,
        change: str = "PUT or PATCH",
        complete: Callable[[ToolDefinition], Awaitable[ToolDefinition]] | None = None,
    ) -> ToolRevision:
        """Store the first revision of a definition, and set the header `Location` of the response.

        Args:
            definition: The definition.
            response: The response.
            path: The path of definitions of its kind.
            change: The methods that change one that exists.
            complete: Adds what its author has left out.

        Raises:
            PermissionDenied: As `save` raises.
            InvalidDefinition: Likewise.
            Conflict: There is a tool of this name.
        """
        demand_write(self.caller, definition)  # before anything is said about what exists
        await self.crib.authorize(newest=True)
        if self.crib.registry.find(self.caller.realm, definition.name, None) is not None:
            msg = f"tool {definition.name!r} exists; {change} it to make a new revision, or take another name"
            raise Conflict(msg)
        saved = await self.save(definition if complete is None else await complete(definition), after=0)
        response.headers["Location"] = f"/api/v1{path}/{definition.name}"
        return saved

    async def draft(
        self, definition: WorkflowDefinition | JsonObject, *, note: str = "", after: int | None = None
    ) -> WorkflowDraft:
        """Keep a workflow without publishing it.

        Raises:
            PermissionDenied: The caller may not see a tool that it calls, or use a secret that it names.
            InvalidDefinition: It could not be published.
            Conflict: Another revision of the draft has been saved since `after`.
        """
        await self.demand_parts(definition)
        return await self.crib.workflows.draft(definition, note=note, after=after)

    async def publish(
        self,
        name: str,
        definition: WorkflowDefinition | JsonObject | None,
        *,
        after: int | None = None,
        draft: int | None = None,
    ) -> Publication:
        """Publish a workflow, or its draft; in the reviewed revision if its number is given.

        Raises:
            NotFound: There is no draft of this name.
            PermissionDenied: The caller may not publish it, or not change the tool of another kind that it replaces,
                or not see a tool that it calls, or not use a secret that it names.
            InvalidDefinition: Something is wrong with it.
            Conflict: Another revision has been saved since `after`, or of the draft since `draft`.
        """
        require_publish(self.caller, name)
        await self.crib.authorize(newest=True)
        known = self.crib.registry.find_by_ref(self.caller.realm, name)
        if known is not None:
            demand_write(self.caller, known.definition)
        workflows = self.crib.workflows
        if definition is not None:
            await self.demand_parts(definition)
            return await workflows.publish(definition, after=after)
        drafted = await workflows.get_draft(name)
        await self.demand_parts(drafted.definition)
        # publish the revision that was checked against the grants
        revision = drafted.revision if draft is None else draft
        return await workflows.publish(name, after=after, draft=revision)

    async def agent_of(self, body: AgentDefinition | JsonObject) -> AgentDefinition:
        """The agent that a request sends.

        Raises:
            PermissionDenied: It is none, and the caller may not save what of it is one.
            InvalidDefinition: It is none; all that is wrong is told, also with its names.
        """
        if isinstance(body, AgentDefinition):
            return body
        agent = shape_of(body)
        if agent is not None:
            demand_write(self.caller, agent.tool())
        return await self.crib.agents.read(body)

    async def demand_parts(self, definition: WorkflowDefinition | JsonObject) -> None:
        """Require that the caller may see a workflow's tools, whose schemas its check reveals, and use its secrets.

        Of a document without the shape of a definition this holds for the part of it that has that shape.
        """
        named = definition if isinstance(definition, WorkflowDefinition) else read_definition(definition).rest
        if named is None:
            return
        demand_secrets(self.caller, (secret.reference for secret in named.secrets))
        handlers = {handler.name: handler for handler in await self.crib.steps.list()}
        for ref in {step.callee(handlers) for step in named.steps} - {None}:
            tool = self.crib.registry.find_by_ref(self.caller.realm, str(ref))
            if tool is not None:
                demand_sight(self.caller, tool.definition)

    def check(self, definition: ToolDefinition) -> None:
        """Refuse what may not come over HTTP."""
        refuse_code(definition)
        if not self.allow_local_models:
            refuse_local_model(definition)


async def _writer(request: Request, crib: CribDep, caller: Caller) -> DefinitionWriter:
    return DefinitionWriter(crib, caller, request.app.state.allow_local_models)


Author = Annotated[DefinitionWriter, Depends(_writer)]
