"""From the card of an agent to a provider and a tool. Loads the SDK of A2A."""

from collections.abc import Mapping
from typing import Final

import orjson
from a2a.client.card_resolver import parse_agent_card
from a2a.types import AgentCard, AgentInterface
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
from google.protobuf.json_format import ParseError

from toolcrib.contracts import (
    InvalidInput,
    JsonSchema,
    LossReport,
    OperationImport,
    Principal,
    ProviderDefinition,
    ReconnectRequired,
    ToolDefinition,
    Unavailable,
)
from toolcrib.core.executor import CallFailed
from toolcrib.core.providers import ProviderAccess
from toolcrib.core.providers.import_names import in_the_tree
from toolcrib.core.providers.imports import ImportedApi, cut_text, fitting
from toolcrib.infrastructure.net import HttpSession, NetworkError
from toolcrib.infrastructure.net.origins import origin_of
from toolcrib.kinds.a2a.shape import A2aBinding, A2aImplementation

MAX_CARD: Final = 1_000_000
"""Bytes of a card."""
TIMEOUT_S: Final = 600.0
"""Seconds that a task may take, as long as nobody says otherwise."""
_NO_NAMES: Final[Mapping[str, str]] = {}
_MAX_LONG: Final = 20_000
_BINDINGS: Final[tuple[A2aBinding, ...]] = ("JSONRPC", "HTTP+JSON")
_INPUT: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "message": {"type": "string", "minLength": 1, "description": "What the agent is asked, in words."},
        "data": {"type": "object", "description": "Structured data beside the message, if the agent needs it."},
        "task_id": {
            "type": "string",
            "description": "Of an earlier output whose state is input_required: the message answers what it asks.",
        },
        "context_id": {
            "type": "string",
            "description": "Of an earlier output: the message continues its conversation.",
        },
    },
    "required": ["message"],
    "additionalProperties": False,
}
_OUTPUT: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "state": {"enum": ["completed", "input_required"]},
        "text": {"type": "string", "description": "The answer in words, or what the agent asks."},
        "data": {"type": "array", "description": "The structured parts of the answer."},
        "files": {"type": "array", "items": {"type": "object"}, "description": "Files of the answer, described."},
        "task_id": {"type": ["string", "null"]},
        "context_id": {"type": ["string", "null"]},
    },
    "required": ["state", "text", "data", "files", "task_id", "context_id"],
}


async def fetch_card(
    session: HttpSession, access: ProviderAccess, provider: ProviderDefinition, who: Principal
) -> AgentCard:
    """Get the card of an agent.

    Args:
        session: The way out.
        access: Has the credentials.
        provider: The agent's address.
        who: Who imports.

    Raises:
        InvalidInput: There is no card, or it cannot be read.
        ReconnectRequired: The server refuses the credentials, or there are none.
        Unavailable: The address cannot be reached.
        EgressDenied: The policy forbids it.
    """
    address = provider.address
    url = address if address.endswith(".json") else f"{address.rstrip('/')}{AGENT_CARD_WELL_KNOWN_PATH}"
    try:
        credentials = await access.credentials(provider, url, who, None)
    except CallFailed as failure:
        raise in_the_tree(failure.error) from failure
    headers = {"accept": "application/json", **provider.headers, **credentials.headers}
    try:
        response = await session.request("GET", url, headers=headers, max_bytes=MAX_CARD)
    except NetworkError as problem:
        raise Unavailable(f"the card of {provider.name!r} cannot be fetched: {problem}") from problem
    if response.status in {401, 403}:
        raise ReconnectRequired(f"{url} answers with {response.status}; give the token of provider {provider.name!r}")
    if response.status >= 500:
        raise Unavailable(f"{url} answers with {response.status}; try again later")
    if response.status != 200:
        msg = f"{url} answers with {response.status}, and not with an agent card; give the agent's address"
        raise InvalidInput(msg)
    try:
        card = parse_agent_card(orjson.loads(response.body))
    except (ValueError, ParseError, AttributeError, TypeError) as problem:
        raise InvalidInput(f"what is at {url} is not an agent card: {problem}") from problem
    if not card.name:
        raise InvalidInput(f"what is at {url} is not an agent card: it has no name")
    return card


def import_card(card: AgentCard, provider: ProviderDefinition, *, names: Mapping[str, str] = _NO_NAMES) -> ImportedApi:
    """Make a provider and a tool of an agent.

    Args:
        card: Of the agent.
        provider: As it was asked for its card.
        names: The name of the tool by that of the agent, from an earlier import.

    Raises:
        InvalidInput: It speaks A2A in no way that we do, or its address is on another host than its card.
    """
    found = _interface(card, provider)
    if origin_of(found.url) != origin_of(provider.address):
        msg = (
            f"the card of {provider.name!r} says that the agent is at {found.url!r}, which is not where its card is; "
            "import it from there, so that its credentials are for that address"
        )
        raise InvalidInput(msg)
    name = names.get(card.name, fitting(provider.name))
    binding: A2aBinding = "JSONRPC" if found.protocol_binding == "JSONRPC" else "HTTP+JSON"
    tool = ToolDefinition(
        name=name,
        description=cut_text(card.description or f"The agent {card.name}."),
        long_description=cut_text(_long(card), _MAX_LONG),
        category=provider.name,
        tags=("agents",),
        source="imported",
        input_schema=_INPUT,
        output_schema=_OUTPUT,
        side_effects="writes",
        timeout_s=TIMEOUT_S,
        implementation=A2aImplementation(
            provider=provider.name, agent=card.name, binding=binding, protocol_version=found.protocol_version or "1.0"
        ),
    )
    report = LossReport(
        format=f"A2A {found.protocol_version or '1.0'}",
        operations=(OperationImport(operation=card.name, place="", tool=name, group="agents"),),
    )
    metadata = {"import": report.summary(), "card": provider.address, "version": card.version}
    at = provider.model_copy(update={"base_url": found.url, "metadata": metadata})
    return ImportedApi(at, (tool,), (), report)


def _interface(card: AgentCard, provider: ProviderDefinition) -> AgentInterface:
    """The best of its ways that we speak: the newest version first, and JSON-RPC before HTTP+JSON."""
    for version in ("1.", "0.3"):
        for binding in _BINDINGS:
            for each in card.supported_interfaces:
                if each.protocol_binding == binding and (each.protocol_version or "1.0").startswith(version):
                    return each
    has = ", ".join(f"{each.protocol_binding} {each.protocol_version}" for each in card.supported_interfaces) or "none"
    msg = f"agent {provider.name!r} has {has}; give one that has JSONRPC or HTTP+JSON in version 1 or 0.3 of A2A"
    raise InvalidInput(msg)


def _long(card: AgentCard) -> str:
    skills = (f"- {skill.name}: {skill.description}" for skill in card.skills)
    return "\n".join([card.description, "Skills:", *skills]) if card.skills else card.description
