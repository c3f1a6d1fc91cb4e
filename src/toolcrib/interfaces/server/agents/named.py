"""Routes of resources kept by name: fragments, service accounts, workflow steps, conditions, MCP servers, triggers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final, Generic, NamedTuple, Protocol

from fastapi import Body, Depends, Response

from toolcrib.contracts import InvalidInput, McpServerDefinition, PromptFragment, ServiceAccount, TriggerDefinition
from toolcrib.contracts.workflows import ConditionBinding, StepRegistration
from toolcrib.core.registry import ItemT
from toolcrib.crib import ActingCrib
from toolcrib.crib.tools.resources import ResourceName
from toolcrib.interfaces.server.http.caller_rights import Caller, CribDep, demand
from toolcrib.interfaces.server.http.document import REVISION
from toolcrib.interfaces.server.http.requests import IfMatch, Routes, expected_revision, name_revision
from toolcrib.interfaces.server.queries import ALL, After, Filter, ListLimit, Sort, add_queries, to_page
from toolcrib.interfaces.server.views.base import PageView


class ResourceTexts(NamedTuple):
    """What the OpenAPI document says of a resource."""

    body: str
    """Of what an author sends."""
    page: str
    """Of all things of a realm."""
    save: str
    remove: str


class Things(Protocol[ItemT]):
    """Things of one kind, by name: see `NamedThings`."""

    async def get(self, name: str) -> ItemT:
        """The newest revision."""
        ...

    async def revision(self, name: str) -> int:
        """The number of the newest revision."""
        ...

    async def save(self, item: ItemT, /, *, after: int | None = None) -> int:
        """Store a new revision; returns its number."""
        ...

    async def remove(self, name: str) -> None:
        """Remove one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedResource(Generic[ItemT]):
    """What the routes over things of one kind need to know of it."""

    noun: str
    plural: ResourceName
    """Of paths and of security URIs: `ai://fragments/{name}/read`."""
    tag: str
    contract: type[ItemT]
    things: Callable[[ActingCrib], "Things[ItemT]"]
    texts: ResourceTexts

    def uri(self, name: str, verb: str) -> str:
        """Of what a caller needs a grant for."""
        return f"ai://{self.plural}/{name}/{verb}"

    @property
    def _title(self) -> str:
        return self.noun.title().replace("_", "")

    def body(self) -> type[ItemT]:
        """The contract as it is sent."""
        made: Any = type(f"{self._title}Body", (self.contract,), {"__doc__": self.texts.body})
        made.model_config["defer_build"] = False  # as a route does for bodies that it names itself
        return made

    def page(self) -> type[PageView[ItemT]]:
        """The response with resources that the caller may see."""
        made: Any = type(f"{self._title}Page", (PageView[self.contract],), {"__doc__": self.texts.page})
        return made


def routes_over(resource: NamedResource[ItemT]) -> Routes:
    """The four routes over things of one kind."""
    one, many = resource.noun, resource.plural
    router = Routes(prefix=f"/ai/{many}", tags=(resource.tag,))
    page = resource.page()

    add_queries(router, many, page)

    @router.get("", name=f"list_{many}", response_model=page, description=f"The {many} that the caller may read.")
    async def find_all(
        crib: CribDep,
        filter: Filter = None,
        sort: Sort = None,
        after: After = None,
        limit: ListLimit = None,
    ) -> PageView[ItemT]:
        found = await crib.queries.page(many, filter=filter, sort=sort, after=after, limit=limit or ALL)
        return to_page(page, found)

    @router.get(
        "/{name}",
        name=f"get_{one}",
        response_model=resource.contract,
        responses=REVISION,
        description=f"The {one} in its newest revision, which the header `ETag` names.",
    )
    async def read(name: str, crib: CribDep, caller: Caller, response: Response) -> ItemT:
        demand(caller, resource.uri(name, "read"))
        things = resource.things(crib)
        name_revision(response, await things.revision(name))  # before reading: a later body is newer than its ETag
        return await things.get(name)

    @router.put("/{name}", name=f"save_{one}", response_model=resource.contract, description=resource.texts.save)
    async def save(
        name: str,
        body: Annotated[ItemT, Depends(_reader(resource.body()))],
        *,
        crib: CribDep,
        caller: Caller,
        response: Response,
        if_match: IfMatch = None,
    ) -> ItemT:
        demand(caller, resource.uri(name, "write"))
        if name != body.name:
            raise InvalidInput(f"the body is named {body.name!r} and the path {name!r}; send it to its own name")
        item = resource.contract.model_validate(body.model_dump(mode="json"))
        name_revision(response, await resource.things(crib).save(item, after=expected_revision(if_match)))
        return item

    @router.delete("/{name}", name=f"remove_{one}", status_code=204, description=resource.texts.remove)
    async def remove(name: str, crib: CribDep, caller: Caller) -> None:
        demand(caller, resource.uri(name, "write"))
        await resource.things(crib).remove(name)

    return router


def _reader(contract: type[ItemT]) -> Callable[..., Awaitable[ItemT]]:
    """What reads a body. The framework learns its type from the signature, which is only known here."""

    async def read(body: ItemT) -> ItemT:
        return body

    read.__annotations__["body"] = Annotated[contract, Body()]
    return read


RESOURCES: Final[tuple[NamedResource[Any], ...]] = (
    NamedResource(
        noun="fragment",
        plural="fragments",
        tag="agents",
        contract=PromptFragment,
        things=lambda crib: crib.fragments,
        texts=ResourceTexts(
            "A prompt fragment, as an author sends it.",
            "Prompt fragments by name.",
            "Store a new revision, which every run that begins from now on has.",
            "Take a fragment out; agents that name it cannot be run until they do not, or it is saved again.",
        ),
    ),
    NamedResource(
        noun="account",
        plural="accounts",
        tag="agents",
        contract=ServiceAccount,
        things=lambda crib: crib.accounts,
        texts=ResourceTexts(
            "A service account, as its maker sends it.",
            "Service accounts by name.",
            "Store an account, or change it; also for runs that have begun.",
            "Take an account out; agents that act as it can do nothing any more.",
        ),
    ),
    NamedResource(
        noun="step",
        plural="steps",
        tag="workflows",
        contract=StepRegistration,
        things=lambda crib: crib.steps,
        texts=ResourceTexts(
            "A name for a tool, as its author sends it.",
            "Workflow steps by name.",
            "Give a tool a name in the vocabulary of workflows. Published ones keep what they were checked with.",
            "Take a name out of the vocabulary. Published workflows keep it; new ones cannot name it any more.",
        ),
    ),
    NamedResource(
        noun="condition",
        plural="conditions",
        tag="workflows",
        contract=ConditionBinding,
        things=lambda crib: crib.conditions,
        texts=ResourceTexts(
            "A name for a condition, as its author sends it.",
            "Conditions by name.",
            "Give a condition a name. Published workflows keep the one that they were checked with.",
            "Take a condition out. Published workflows keep it; new ones cannot name it any more.",
        ),
    ),
    NamedResource(
        noun="mcp_server",
        plural="mcp_servers",
        tag="mcp",
        contract=McpServerDefinition,
        things=lambda crib: crib.mcp_servers,
        texts=ResourceTexts(
            "A virtual MCP server, as its author sends it.",
            "Virtual MCP servers by name.",
            "Store a virtual MCP server. Its clients are offered the new selection from their next request on.",
            "Take a virtual MCP server out; its address is not found any more.",
        ),
    ),
    NamedResource(
        noun="trigger",
        plural="triggers",
        tag="triggers",
        contract=TriggerDefinition,
        things=lambda crib: crib.triggers,
        texts=ResourceTexts(
            "A trigger, as its author sends it.",
            "Triggers by name.",
            "Store a trigger. It counts from now on; nothing earlier is caught up.",
            "Take a trigger out. Runs that it has started continue.",
        ),
    ),
)
routers: Final = tuple(map(routes_over, RESOURCES))
