"""The agent card: what the agents of others learn of one of ours. What is inside of it stays hidden."""

from typing import Final

from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from a2a.utils.constants import PROTOCOL_VERSION_0_3, PROTOCOL_VERSION_1_0, TransportProtocol

from toolcrib.contracts import AgentImplementation, ToolRevision
from toolcrib.contracts.base.media import IMAGES, PDF
from toolcrib.kinds.a2a.message_parts import JSON, TEXT

_KEY: Final = "key"
_BINDINGS: Final = (TransportProtocol.JSONRPC, TransportProtocol.HTTP_JSON)


def card_of(agent: ToolRevision, address: str) -> AgentCard:
    """The card of an agent.

    Args:
        agent: The agent.
        address: Where it answers, without a slash at the end.
    """
    definition = agent.definition
    purpose = definition.description or definition.name
    skill = AgentSkill(id=definition.name, name=definition.name, description=purpose, tags=definition.tags or ["agent"])
    return AgentCard(
        name=definition.name,
        description=purpose,
        version=definition.version,
        supported_interfaces=[
            AgentInterface(url=address, protocol_binding=binding, protocol_version=version)
            for version in (PROTOCOL_VERSION_1_0, PROTOCOL_VERSION_0_3)
            for binding in _BINDINGS
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=False, extended_agent_card=False),
        security_schemes={
            _KEY: SecurityScheme(
                http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="Bearer", description="An API key: tcb_…")
            )
        },
        security_requirements=[SecurityRequirement(schemes={_KEY: StringList()})],
        default_input_modes=[TEXT, JSON, *IMAGES, PDF],
        default_output_modes=[JSON, TEXT] if answers_in_json(agent) else [TEXT],
        skills=[skill],
    )


def answers_in_json(agent: ToolRevision) -> bool:
    """Whether the answers of an agent are structured."""
    implementation = agent.definition.implementation
    return isinstance(implementation, AgentImplementation) and implementation.answer_schema is not None
