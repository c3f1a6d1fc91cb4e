"""What callers over the network may not define or see, beyond what a crib itself forbids."""

from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from toolcrib.contracts import (
    LOOKS,
    SECRET_REFERENCE,
    AgenticImplementation,
    AgentImplementation,
    InvalidDefinition,
    LLMConfig,
    PermissionDenied,
    Principal,
    Run,
    ToolDefinition,
    tool_uri,
)
from toolcrib.core.policy import permits, require_publish
from toolcrib.core.registry import all_references_of
from toolcrib.crib import Crib
from toolcrib.infrastructure.net.addresses import denied_range
from toolcrib.infrastructure.store import Definition, DefinitionKind
from toolcrib.interfaces.server.http.context_part import demand
from toolcrib.llm import PROVIDERS

_PLURALS: Final[Mapping[DefinitionKind, str]] = MappingProxyType(
    {
        "provider": "providers",
        "baseline": "providers",
        "fragment": "fragments",
        "account": "accounts",
        "workflow_step": "steps",
        "condition": "conditions",
        "draft": "workflows",
    }
)
"""Of security URIs, for what is no tool."""


def demand_write(caller: Principal, definition: ToolDefinition) -> None:
    """Let a caller pass who may write the tool. Of a workflow drafts are written; it changes by being published."""
    if definition.implementation.kind == "workflow":
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
    """Let a caller pass who has started the run, or may carry on the runs of its tool."""
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


def demand_secrets(caller: Principal, references: Iterable[str]) -> None:
    """Let a caller pass who may use every secret of the vault that a definition names.

    Who saves a definition decides where its secrets go. Variables are released to all definitions by the operator.
    """
    for reference in references:
        found = SECRET_REFERENCE.fullmatch(reference)
        if found is not None and found[1] == "secret":
            demand(caller, f"ai://secrets/{found[2]}/execute")


async def demand_import(crib: Crib, caller: Principal, name: str, *, named: Iterable[str], accept: bool) -> None:
    """Let a caller pass who may import a provider of this name with its tools.

    Args:
        crib: Has the provider, if it is known.
        caller: Who imports.
        name: Of the provider.
        named: What may be references to secrets in what is imported.
        accept: Whether the provider may be moved elsewhere, and the secrets that it has with it.
    """
    demand(caller, f"ai://providers/{name}/write")
    demand(caller, tool_uri("*", "*", "write"))
    demand_secrets(caller, named)
    known = crib.providers.find((await crib.enter(caller, newest=True)).realm, name) if accept else None
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
    provider = PROVIDERS.get(llm.model.partition(":")[0])
    known = provider.base_url if provider is not None else None
    return llm.base_url or (known if isinstance(known, str) else None)


def _is_local(address: str) -> bool:
    host = (urlsplit(address).hostname or "").rstrip(".")
    try:
        return denied_range(ip_address(host)) is not None
    except ValueError:
        return host == "localhost" or host.endswith((".localhost", ".local", ".internal"))
