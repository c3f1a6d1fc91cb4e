"""Agents of a crib: save, read, list and remove them as flat documents, and list the tools that an agent would have.

await crib.agents.save(AgentDefinition(name="desk", llm=LLMConfig(model="anthropic:claude-sonnet-4")))
for tool in await crib.agents.tools("desk", message="Who owns the Acme deal?"):
print(tool.tool, tool.availability, tool.reason)

Example:
    await crib.agents.save(AgentDefinition(name="clerk", llm=LLMConfig(model="anthropic:claude-sonnet-4")))
    for each in await crib.agents.tools("clerk", message="Who owns the Acme deal?"):
        print(each.tool, each.availability, each.reason)
"""

from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from toolcrib.agents import ToolRequester, identity_of, resolve
from toolcrib.contracts import (
    AgentDefinition,
    AgentImplementation,
    InvalidDefinition,
    InvalidInput,
    InvalidSettings,
    JsonObject,
    NotFound,
    PermissionDenied,
    ResolvedTool,
    ToolRevision,
)
from toolcrib.core.executor import CallFailed
from toolcrib.core.expressions.suggestions import suggestion
from toolcrib.core.registry import DefinitionFaults, Facet
from toolcrib.crib.container.access import Actor
from toolcrib.crib.container.container import CribServices
from toolcrib.crib.tools.listing import ToolListing, ToolsPage
from toolcrib.workflows.checks.documents import fields_at, is_on_one_way, place_of, rest_of


def shape_of(document: JsonObject) -> AgentDefinition | None:
    """The agent that a document is, without what is wrong in its form; null if that leaves no agent."""
    try:
        return AgentDefinition.model_validate(document)
    except ValidationError as problem:
        return rest_of(AgentDefinition, document, problem.errors(include_url=False, include_input=False))[0]


def _told(error: ErrorDetails) -> str:
    """What is wrong at a place; no value is repeated, because it may be a secret."""
    field = ".".join(map(str, error["loc"]))
    if error["type"] != _UNKNOWN:
        return f"{field}: {error['msg'].removeprefix('Value error, ')}"
    meant = suggestion(str(error["loc"][-1]), fields_at(AgentDefinition, error["loc"][:-1]))
    return f"there is no field {field!r}; {meant or 'take it out'}".rstrip()


_UNKNOWN: Final = "extra_forbidden"


class Agents:
    """The agents of a crib.

    Args:
        parts: The parts of the crib.
        listing: The crib's listing, which knows what a principal may see.
        actor: The actor of the crib.
    """

    def __init__(self, parts: CribServices, listing: ToolListing, actor: Actor) -> None:
        self._parts = parts
        self._listing = listing
        self._actor = actor

    async def save(self, agent: AgentDefinition | JsonObject, *, after: int | None = None) -> ToolRevision:
        """Check a definition and store it as a revision, whose warnings say what its author should know.

        Args:
            agent: The definition, or a document that may be one.
            after: Number of the revision that the author has changed; 0 for a new agent; null to save over anything.

        Raises:
            InvalidDefinition: It is not well formed; `problems` has all that is wrong, in its form and its names.
            NotFound: Only one thing is wrong: it names a tool, an agent or an account that does not exist.
            PermissionDenied: It acts as an account that its author may not use.
            Conflict: Another revision has been saved since `after`.

        Example:
            llm = LLMConfig(model="anthropic:claude-sonnet-4")
            clerk = AgentDefinition(name="clerk", llm=llm, tools=(AllocatedTool(tool="search_deals"),))
            saved = await crib.agents.save(clerk)
            print(saved.ref, saved.warnings)
        """
        definition = agent if isinstance(agent, AgentDefinition) else await self.read(agent)
        return await self._parts.catalogue.save(definition.tool(), await self._actor.authorize(), after=after)

    async def read(self, document: JsonObject) -> AgentDefinition:
        """The definition that a document is; it may still name what there is not.

        Raises:
            InvalidDefinition: It has not the shape of one. `problems` has all that is wrong, also with its names.

        Example:
            desk = await crib.agents.read({"name": "desk", "llm": {"model": "anthropic:claude-sonnet-4"}})
            print(desk.tools)
        """
        try:
            return AgentDefinition.model_validate(document)
        except ValidationError as problem:
            found = problem.errors(include_url=False, include_input=False)
        who = await self._actor.authorize(newest=True)
        faults = DefinitionFaults(f"agent {document.get('name')!r}")
        for error in found:
            faults.add(place_of(error, document)[0], _told(error))
        rest, removed = rest_of(AgentDefinition, document, found)
        if rest is not None:
            for path, text in self._further(rest, who.realm):
                if not any(is_on_one_way(path, taken) for taken in removed):
                    faults.add(path, text)
        faults.tell()
        raise InvalidDefinition(str(faults.texts))

    def _further(self, agent: AgentDefinition, realm: str) -> Iterator[tuple[str, str]]:
        """What is wrong with a definition that has the right shape: places and texts."""
        try:
            self._parts.catalogue.check_tool(agent.tool(), realm)
        except InvalidInput as problem:
            yield from ((str(each["path"]), str(each["problem"])) for each in problem.problems)
        except (NotFound, InvalidSettings) as problem:
            yield "", str(problem)

    async def get(self, ref: str) -> ToolRevision:
        """The revision of an agent.

        Args:
            ref: `name` or `name@range`.

        Raises:
            NotFound: There is no such agent; it may be a tool of another kind.

        Example:
            saved = await crib.agents.get("desk")
            print(saved.ref, AgentDefinition.of(saved.definition).llm.model)
        """
        who = await self._actor.authorize(newest=True)
        return self._require(who.realm, ref)[0]

    async def page(self, *, after: str = "", limit: int = 50, text: str | None = None) -> ToolsPage:
        """The agents that come after a name and that the principal may see; `AgentDefinition.of` reads each.

        Args:
            after: A name; empty for the beginning.
            limit: At most so many.
            text: Text to find in name, title, description or tags.

        Example:
            page = await crib.agents.page(text="desk")
            print([each.name for each in page.items])
        """
        facets: dict[Facet, str | None] = {"kind": "agent"}
        return await self._listing.page(after=after, limit=limit, text=text, facets=facets)

    async def remove(self, name: str) -> None:
        """Remove an agent from the catalogue; its runs continue, and its conversations remain readable.

        Raises:
            NotFound: There is no such agent.

        Example:
            await crib.agents.remove("desk")
        """
        who = await self._actor.authorize(newest=True)
        await self._parts.registry.remove(who.realm, self._require(who.realm, name)[0].name)

    async def tools(self, ref: str, *, message: str | None = None) -> Sequence[ResolvedTool]:
        """Which tools an agent would have now: those that its model sees, those that it can find, and what is left out.

        Args:
            ref: `name` or `name@range`.
            message: What it would be asked, which decides what is shown if there are too many tools.

        Raises:
            NotFound: There is no such agent.
            PermissionDenied: Its service account does not exist or is disabled.

        Example:
            for each in await crib.agents.tools("desk", message="Which deals has Acme?"):
                print(each.tool, each.availability, each.reason)
        """
        who = await self._actor.authorize(newest=True)
        registry = self._parts.registry
        tool, agent = self._require(who.realm, ref)
        try:
            acting = identity_of(agent, who, self._parts.accounts)
        except CallFailed as refusal:
            raise PermissionDenied(refusal.error.message) from refusal

        async def bound(named: str) -> ToolRevision:
            return registry.require(who.realm, named)

        asker = ToolRequester(who.realm, tool.name, acting, agent.side_effects, message)
        return (await resolve(agent, asker, registry, bound)).report()

    def _require(self, realm: str, ref: str) -> tuple[ToolRevision, AgentImplementation]:
        found = self._parts.registry.find_by_ref(realm, ref)
        agent = None if found is None else found.definition.implementation
        if found is None or not isinstance(agent, AgentImplementation):
            agents = sorted(self._parts.registry.index(realm).having("kind", "agent"))[:10]
            known = f"available: {', '.join(agents)}" if agents else "save it first"
            msg = f"no agent {ref!r} in realm {realm!r}; {known}"
            raise NotFound(msg)
        return found, agent
