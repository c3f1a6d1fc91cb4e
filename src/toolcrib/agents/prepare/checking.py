"""Holding the definition of an agent against the catalogue when it is saved, and deriving what follows from it."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from toolcrib.agents.prepare.agent import Fragments
from toolcrib.agents.toolset.allocation import meant
from toolcrib.agents.toolset.resolution import shares_of
from toolcrib.contracts import (
    EFFECTS,
    AgentDefinition,
    AgentImplementation,
    InvalidDefinition,
    SideEffects,
    ToolDefinition,
    ToolRevision,
)
from toolcrib.core.policy import least
from toolcrib.core.registry import Registry, compile_schema, means_many


def check_agent(definition: ToolDefinition, registry: Registry, realm: str, fragments: Fragments) -> ToolDefinition:
    """The definition as it is stored; one of another kind as it is.

    Its side effects are the most that its tools have, and no more than it says itself. Where it means tools by pattern,
    category or tag, any tool may come to them, and where it may write workflows, it writes: there it is what it says
    itself. Its time-out as a call leaves its runs their own, and its output schema follows from the answer's format.

    Raises:
        InvalidDefinition: It is not well formed; the message names the field and what to do.
        NotFound: It names a tool, a delegate or a summary agent that does not exist, or means no tool at all.
    """
    agent = definition.implementation
    if not isinstance(agent, AgentImplementation):
        return definition
    for problem in _problems(definition, agent, realm, fragments):
        msg = f"agent {definition.name!r}: {problem}"
        raise InvalidDefinition(msg)
    for reference in (*agent.delegates, *([agent.memory.summary_agent] if agent.memory.summary_agent else [])):
        _require_agent(definition.name, reference, registry, realm)
    effects = _effects(definition.name, agent, registry, realm)
    return AgentDefinition.of(definition).tool().model_copy(update={"side_effects": effects})


def _problems(
    definition: ToolDefinition, agent: AgentImplementation, realm: str, fragments: Fragments
) -> Iterator[str]:
    """What can be said without looking at tools."""
    if "message" not in definition.parameter_names():
        yield "input_schema has no property 'message', which is what an agent is asked; add it"
    yield from _format_problems(agent)
    if agent.realms and realm not in agent.realms:
        yield f"it is saved in realm {realm!r} and may run in {', '.join(agent.realms)} only; add its own realm"
    for name in agent.prompt_fragments:
        if fragments.find(realm, name) is None:
            yield f"there is no prompt fragment {name!r} in realm {realm!r}; save it first, or take it out"
    for delegate in agent.delegates:
        if means_many(delegate):
            yield f"delegate {delegate!r} is a pattern; name each agent that it may call"


def _format_problems(agent: AgentImplementation) -> Iterator[str]:
    schema = agent.response_schema
    if (schema is not None) is not (agent.response_format == "structured"):
        has = "no" if schema is None else "a"
        yield (
            f"response_format is {agent.response_format!r} and there is {has} response_schema; "
            "'structured' needs one, and nothing else has one"
        )
    if schema is None:
        return
    try:
        compile_schema(schema)
    except InvalidDefinition as problem:
        yield f"response_schema is not a JSON Schema 2020-12 that can be used offline: {problem}"
    if schema.get("type") != "object":
        yield f"response_schema has type {schema.get('type')!r}; models answer with an object, so use type 'object'"


def _require_agent(name: str, reference: str, registry: Registry, realm: str) -> ToolRevision:
    found = registry.require(realm, reference)
    kind = found.definition.implementation.kind
    if kind != "agent":
        msg = f"agent {name!r}: {reference!r} is of kind {kind!r}, not an agent; name it in tools"
        raise InvalidDefinition(msg)
    return found


def _effects(name: str, agent: AgentImplementation, registry: Registry, realm: str) -> SideEffects:
    """The most that its calls may do."""
    present = {
        EFFECTS.index(tool.definition.side_effects)
        for share in shares_of(agent)
        for tool in meant(share, registry, realm, name)
        if share.ref in agent.delegates or not any(fnmatchcase(tool.name, out) for out in agent.excluded_tools)
    }
    if agent.can_create_workflows or any(share.many for share in shares_of(agent)):
        return agent.side_effects
    return least(agent.side_effects, EFFECTS[max(present, default=0)])
