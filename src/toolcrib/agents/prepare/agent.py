"""Prepares an agent's run: account, model, tools, prompt, memory and policy; checks agents when they are saved.

Facts that may change, such as the shown tools and the texts of fragments, are recorded, so that a resumed run sees the
same. An agent acts as its service account, otherwise as its caller. The account must exist and be enabled whenever the
run is resumed, and its grants are read again before every call.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Protocol

import orjson
from msgspec import Struct

from toolcrib.agents.history.variables import ConversationStart, Recall, RecalledContext, message_of, opening
from toolcrib.agents.model.client import ModelClient
from toolcrib.agents.model.context_window import ContextWindow
from toolcrib.agents.prepare.agentic_tool import Models
from toolcrib.agents.toolset.allocation import AllocationEntry, GrantedRevision, meant
from toolcrib.agents.toolset.resolution import ToolRequester, resolve, shares_of
from toolcrib.agents.toolset.tool_search import Folded
from toolcrib.agents.toolset.toolset import Toolset, allot
from toolcrib.contracts import (
    EFFECTS,
    AgentDefinition,
    AgentImplementation,
    ErrorCode,
    InvalidDefinition,
    InvalidInput,
    Json,
    NotFound,
    Principal,
    PromptFragment,
    Reason,
    SideEffects,
    ToolDefinition,
    ToolRevision,
)
from toolcrib.core.executor import CallFailed, error
from toolcrib.core.policy import Accounts, least
from toolcrib.core.registry import DefinitionFaults, Registry, compile_schema, means_many
from toolcrib.core.runs import RunContext
from toolcrib.llm import Message


def identity_of(agent: AgentImplementation, caller: Principal, accounts: Accounts) -> Principal:
    """Who makes the calls of an agent.

    Args:
        agent: What its definition says.
        caller: Who has asked it, in the realm where it runs.
        accounts: Finds its account.

    Raises:
        CallFailed: Its account does not exist or is disabled.
    """
    name, realm = agent.principal_ref, caller.realm
    if name is None:
        return caller
    account = accounts.find(realm, name)
    if account is None or not account.enabled:
        state = "does not exist" if account is None else "is disabled"
        message = f"the agent acts as the account {name!r}, which {state} in realm {realm!r}; save it, or enable it"
        raise CallFailed(error(ErrorCode.POLICY_DENIED, Reason.PERMISSION_MISSING, message))
    return account.principal(realm)


_MOST_OFFERS = 1000
_MOST_TOLD = 50
"""Tools that are left out, in the journal."""
_JSON = "When you are done, answer with one JSON object and nothing else."
_STRUCTURED = "When you are done, answer with one JSON object that meets this JSON Schema, and nothing else:\n"


class Fragments(Protocol):
    """Finds reusable pieces of prompts."""

    def find(self, realm: str, name: str) -> PromptFragment | None:
        """The fragment of a realm, or null."""
        ...


class PreparedAgent(Struct, frozen=True):
    """What the turns of an agent's run begin with."""

    agent: AgentImplementation
    model_client: ModelClient
    offer: Toolset
    system: str
    """The system prompt, which stays the same through the run."""
    opening: tuple[Message, ...]
    found: tuple[str, ...]
    """Names of the hidden tools that the model has found in the turns before."""


class AgentPreparer:
    """Prepares runs of agents.

    Args:
        models: Opens models.
        registry: Finds tools.
        fragments: Finds pieces of prompts.
        accounts: Finds the service accounts that agents act as.
        recall: Remembers conversations.
    """

    def __init__(
        self, models: Models, registry: Registry, *, fragments: Fragments, accounts: Accounts, recall: Recall
    ) -> None:
        self._models = models
        self._registry = registry
        self._fragments = fragments
        self._accounts = accounts
        self._recall = recall
        self._offers: dict[tuple[object, ...], Toolset] = {}

    async def prepare(self, context: RunContext, tool: ToolRevision, agent: AgentImplementation) -> PreparedAgent:
        """Take on the identity, open the model, resolve the tools, write the prompt, and set the run's policy.

        Raises:
            CallFailed: The agent's service account does not exist or is disabled.
            InvalidSettings: The model cannot be opened.
            NotFound: A fragment does not exist.
        """
        context.principal = identity_of(agent, context.request.principal, self._accounts)
        model_client = ModelClient(
            context=context, model=self._models(agent.llm), llm=agent.llm, parallel=agent.parallel_tool_calls
        )
        begun = await self._recall.conversation_start(context)
        offer = await self._offer(context, tool, agent, begun)
        context.policy = replace(
            offer.policy(context.policy),
            side_effects=least(context.policy.side_effects, agent.side_effects),
            guardrails=context.policy.guardrails,
        )
        system, run_input = await self._system(context, agent, offer), context.request.input
        files = context.request.files
        found = offer.findable(begun.found)
        room = ContextWindow(context, agent.llm).for_the_past(
            opening(run_input, RecalledContext(), files), system=system, tools=offer.with_found(found)
        )
        recalled = await self._recall(context, agent, room)
        return PreparedAgent(
            agent=agent,
            model_client=model_client,
            offer=offer,
            system=system,
            opening=(*recalled.messages, opening(run_input, recalled, files)),
            found=found,
        )

    # Tools ------------------------------------------------------------------------------------------------------------

    async def _offer(
        self, context: RunContext, tool: ToolRevision, agent: AgentImplementation, begun: ConversationStart
    ) -> Toolset:
        """The tools as the run has found them; equal ones are laid out once."""
        rows = await self._resolve_tools(context, tool, agent, begun)
        in_words = agent.llm.tool_calling == "text"
        hints = not context.request.has_old_rules
        key = (*rows, in_words, hints)
        if key not in self._offers:
            if len(self._offers) >= _MOST_OFFERS:
                self._offers.clear()
            self._offers[key] = await self._laid_out(context.run.realm, rows, in_words=in_words, hints=hints)
        return self._offers[key]

    async def _resolve_tools(
        self, context: RunContext, tool: ToolRevision, agent: AgentImplementation, begun: ConversationStart
    ) -> tuple[tuple[str, int, bool], ...]:
        """Content hash and priority of each tool, and whether it is shown: the same in all turns of a conversation."""
        realm, pins = context.run.realm, context.request.pins

        async def bound(ref: str) -> ToolRevision:
            return await self._registry.resolve(realm, ref, pins)

        async def look() -> Json:
            effects = least(context.policy.side_effects, agent.side_effects)
            message = begun.message or message_of(context.request.input)
            asker = ToolRequester(realm, tool.name, context.principal, effects, message)
            found = await resolve(agent, asker, self._registry, bound)
            rows = [(item.tool.content_hash, item.share.priority, item.shown) for item in found.candidates]
            return {
                "shown": sum(shown for _, _, shown in rows),
                "findable": sum(not shown for _, _, shown in rows),
                "left_out": [
                    {"tool": item.tool, "reference": item.reference, "reason": item.reason}
                    for item in found.left_out[:_MOST_TOLD]
                ],
                "kept": await context.keep(orjson.dumps(rows)),
            }

        known = await context.once("tools", "tools_resolved", look)
        for item in known["left_out"]:
            if not means_many(item["reference"]):
                context.warn(f"tool {item['reference']!r} was left out: {item['reason']}")
        rows: list[tuple[str, int, bool]] = orjson.loads(await context.read_blob(known["kept"]))
        replaced = context.request.replaced
        return tuple((replaced.get(pinned, pinned), priority, shown) for pinned, priority, shown in rows)

    async def _laid_out(
        self, realm: str, rows: tuple[tuple[str, int, bool], ...], *, in_words: bool, hints: bool
    ) -> Toolset:
        found = [
            GrantedRevision(await self._registry.get_revision(realm, content_hash), priority=priority)
            for content_hash, priority, _ in rows
        ]
        allotted = allot(found, {})
        pairs = list(zip(allotted, (shown for _, _, shown in rows), strict=True))
        shown, hidden = (tuple(item for item, is_shown in pairs if is_shown is wanted) for wanted in (True, False))
        return Toolset(allotted, Folded(shown, hidden), in_words=in_words, hints=hints)

    # Prompt -----------------------------------------------------------------------------------------------------------

    async def _system(self, context: RunContext, agent: AgentImplementation, offer: Toolset) -> str:
        parts = [agent.system_prompt, *await self._pieces(context, agent)]
        # Without tools the request itself says it; a model that writes its calls is told when it is ready.
        if offer.tools and not offer.in_words and agent.response_format != "text":
            schema = agent.answer_schema
            structured = agent.response_format == "structured"
            parts.append(_STRUCTURED + orjson.dumps(schema).decode() if structured else _JSON)
        return "\n\n".join(part for part in parts if part)

    async def _pieces(self, context: RunContext, agent: AgentImplementation) -> list[str]:
        """The texts of the fragments, as they were when the run began."""
        if not agent.prompt_fragments:
            return []

        async def look() -> Json:
            found = [self._fragment(context.run.realm, name) for name in agent.prompt_fragments]
            return {
                "fragments": {fragment.name: fragment.content_hash for fragment in found},
                "kept": await context.keep(orjson.dumps([fragment.text for fragment in found])),
            }

        known = await context.once("prompt", "prompt_fragments", look)
        return orjson.loads(await context.read_blob(known["kept"]))

    def _fragment(self, realm: str, name: str) -> PromptFragment:
        found = self._fragments.find(realm, name)
        if found is None:
            msg = f"there is no prompt fragment {name!r} in realm {realm!r}; save it, or take it out of the agent"
            raise NotFound(msg)
        return found


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
    found = DefinitionFaults(f"agent {definition.name!r}")
    for path, problem in _problems(definition, agent, realm, fragments):
        found.add(path, problem)
    for path, reference in _agents_named(agent):
        require = partial(_require_agent, definition.name, own=not path.startswith("/delegates/"))
        found.attempt(partial(require, reference, registry, realm), None, path)
    effects = _effects(definition.name, agent, registry, realm, found)
    found.tell()
    return AgentDefinition.of(definition).tool().model_copy(update={"side_effects": effects})


def _problems(
    definition: ToolDefinition, agent: AgentImplementation, realm: str, fragments: Fragments
) -> Iterator[tuple[str, str]]:
    """What can be said without looking at tools: the place of each problem, and the problem."""
    if "message" not in definition.parameter_names():
        yield "/input_schema", "input_schema has no property 'message', which is what an agent is asked; add it"
    for problem in _format_problems(agent):
        yield ("/response_format" if agent.response_schema is None else "/response_schema"), problem
    if agent.realms and realm not in agent.realms:
        allowed = ", ".join(agent.realms)
        yield (
            "/realms",
            f"it may be saved in {allowed} only, and this is realm {realm!r}; add {realm!r}, or save it there",
        )
    for place, name in enumerate(agent.prompt_fragments):
        if fragments.find(realm, name) is None:
            path = f"/prompt_fragments/{place}"
            yield path, f"there is no prompt fragment {name!r} in realm {realm!r}; save it first, or take it out"
    for place, delegate in enumerate(agent.delegates):
        if means_many(delegate):
            yield f"/delegates/{place}", f"delegate {delegate!r} is a pattern; name each agent that it may call"


def _agents_named(agent: AgentImplementation) -> Iterator[tuple[str, str]]:
    """The agents that must exist, by their places."""
    for place, delegate in enumerate(agent.delegates):
        if not means_many(delegate):
            yield f"/delegates/{place}", delegate
    if agent.memory.summary_agent:
        yield "/memory/summary_agent", agent.memory.summary_agent


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


def _require_agent(name: str, reference: str, registry: Registry, realm: str, *, own: bool) -> ToolRevision:
    """An agent; one of this system if it has to be our own."""
    found = registry.require(realm, reference)
    implementation = found.definition.implementation
    if not implementation.is_agent or (own and not isinstance(implementation, AgentImplementation)):
        advice = "name one of this system" if implementation.is_agent else "name it in tools"
        msg = f"agent {name!r}: {reference!r} is of kind {implementation.kind!r}, not an agent; {advice}"
        raise InvalidDefinition(msg)
    return found


def _effects(
    name: str, agent: AgentImplementation, registry: Registry, realm: str, found: DefinitionFaults
) -> SideEffects:
    """The most that its calls may do; tools that there are not are added to what was found."""
    delegates, present = set(agent.delegates), set[int]()
    places = {item.tool: f"/tools/{place}/tool" for place, item in enumerate(agent.tools)}
    for share in shares_of(agent):
        if share.ref in delegates:
            tools = _known(share, registry, realm, name)
        else:
            tools = found.attempt(partial(meant, share, registry, realm, name), (), places.get(share.ref, ""))
        present |= {
            EFFECTS.index(tool.definition.side_effects)
            for tool in tools
            if share.ref in delegates or not any(fnmatchcase(tool.name, out) for out in agent.excluded_tools)
        }
    if agent.can_create_workflows or any(share.many for share in shares_of(agent)):
        return agent.side_effects
    return least(agent.side_effects, EFFECTS[max(present, default=0)])


def _known(share: AllocationEntry, registry: Registry, realm: str, name: str) -> Sequence[ToolRevision]:
    """The delegates that an entry means; that one is missing is told of the delegates."""
    try:
        return meant(share, registry, realm, name)
    except (InvalidInput, NotFound):
        return ()
