"""Routes over what is kept by name, all alike: prompt fragments, service accounts, the vocabulary of workflows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final, Generic

from fastapi import APIRouter, Body, Depends

from toolcrib.contracts import Contract, InvalidInput, PromptFragment, ServiceAccount
from toolcrib.contracts.workflows import ConditionBinding, StepRegistration
from toolcrib.core.policy import permits
from toolcrib.core.registry import ItemT
from toolcrib.crib import Crib
from toolcrib.crib.tools.listing import NamedThings
from toolcrib.interfaces.server.http.context import Caller, CribDep, demand
from toolcrib.interfaces.server.http.requests import JsonRoute


class FragmentBody(PromptFragment, defer_build=False):
    """A prompt fragment, as an author sends it."""


class AccountBody(ServiceAccount, defer_build=False):
    """A service account, as its maker sends it."""


class StepBody(StepRegistration, defer_build=False):
    """A name for a tool, as its author sends it."""


class ConditionBody(ConditionBinding, defer_build=False):
    """A name for a condition, as its author sends it."""


class NamedPage(Contract):
    """Things of one kind by name."""

    items: tuple[Any, ...]


class FragmentPage(NamedPage):
    """Prompt fragments by name."""

    items: tuple[PromptFragment, ...]


class AccountPage(NamedPage):
    """Service accounts by name."""

    items: tuple[ServiceAccount, ...]


class StepPage(NamedPage):
    """Workflow steps by name."""

    items: tuple[StepRegistration, ...]


class ConditionPage(NamedPage):
    """Conditions by name."""

    items: tuple[ConditionBinding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[ItemT]):
    """What the routes over things of one kind need to know of it."""

    noun: str
    plural: str
    """Of paths and of security URIs: `ai://fragments/{name}/read`."""
    contract: type[ItemT]
    body: type[ItemT]
    """The same, as it is sent."""
    page: type[NamedPage]
    things: Callable[[Crib], NamedThings[ItemT]]
    saving: str
    """What saving does, for the document of the routes."""
    removing: str
    """What removing does."""

    def uri(self, name: str, verb: str) -> str:
        """Of what a caller needs a grant for."""
        return f"ai://{self.plural}/{name}/{verb}"


def routes_over(kind: Kind[ItemT], tag: str) -> APIRouter:
    """The four routes over one kind."""
    router = APIRouter(prefix=f"/ai/{kind.plural}", route_class=JsonRoute, tags=[tag])
    one, many = kind.noun, kind.plural

    @router.get("", name=f"list_{many}", response_model=kind.page, description=f"The {many} that the caller may read.")
    async def listed(crib: CribDep, caller: Caller) -> NamedPage:
        found = await kind.things(crib).list(principal=caller)
        return kind.page(items=tuple(item for item in found if permits(caller.grants, kind.uri(item.name, "read"))))

    @router.get(
        "/{name}", name=f"get_{one}", response_model=kind.contract, description=f"The {one} in its newest revision."
    )
    async def read(name: str, crib: CribDep, caller: Caller) -> ItemT:
        demand(caller, kind.uri(name, "read"))
        return await kind.things(crib).get(name, principal=caller)

    @router.put("/{name}", name=f"save_{one}", response_model=kind.contract, description=kind.saving)
    async def saved(name: str, body: Annotated[ItemT, Depends(_body_of(kind))], crib: CribDep, caller: Caller) -> ItemT:
        demand(caller, kind.uri(name, "write"))
        if name != body.name:
            raise InvalidInput(f"the body is named {body.name!r} and the path {name!r}; send it to its own name")
        item = kind.contract.model_validate(body.model_dump(mode="json"))
        await kind.things(crib).save(item, principal=caller)
        return item

    @router.delete("/{name}", name=f"remove_{one}", status_code=204, description=kind.removing)
    async def removed(name: str, crib: CribDep, caller: Caller) -> None:
        demand(caller, kind.uri(name, "write"))
        await kind.things(crib).remove(name, principal=caller)

    return router


def _body_of(kind: Kind[ItemT]) -> Callable[..., ItemT]:
    """What reads a body. The framework learns its type from the signature, which is only known here."""

    def read(body: ItemT) -> ItemT:
        return body

    read.__annotations__["body"] = Annotated[kind.body, Body()]
    return read


fragments: Final = routes_over(
    Kind(
        noun="fragment",
        plural="fragments",
        contract=PromptFragment,
        body=FragmentBody,
        page=FragmentPage,
        things=lambda crib: crib.fragments,
        saving="Store a new revision, which every run that begins from now on has.",
        removing="Take a fragment out; agents that name it cannot be run until they do not, or it is saved again.",
    ),
    "agents",
)
accounts: Final = routes_over(
    Kind(
        noun="account",
        plural="accounts",
        contract=ServiceAccount,
        body=AccountBody,
        page=AccountPage,
        things=lambda crib: crib.accounts,
        saving="Store an account, or change it; also for runs that have begun.",
        removing="Take an account out; agents that act as it can do nothing any more.",
    ),
    "agents",
)
steps: Final = routes_over(
    Kind(
        noun="step",
        plural="steps",
        contract=StepRegistration,
        body=StepBody,
        page=StepPage,
        things=lambda crib: crib.steps,
        saving="Give a tool a name in the vocabulary of workflows. Published ones keep what they were checked with.",
        removing="Take a name out of the vocabulary. Published workflows keep it; new ones cannot name it any more.",
    ),
    "workflows",
)
conditions: Final = routes_over(
    Kind(
        noun="condition",
        plural="conditions",
        contract=ConditionBinding,
        body=ConditionBody,
        page=ConditionPage,
        things=lambda crib: crib.conditions,
        saving="Give a condition a name. Published workflows keep the one that they were checked with.",
        removing="Take a condition out. Published workflows keep it; new ones cannot name it any more.",
    ),
    "workflows",
)
