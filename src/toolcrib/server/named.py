"""Routes over prompt fragments and service accounts: listed, saved, removed by name."""

from fastapi import APIRouter, Response
from pydantic import ConfigDict

from toolcrib.contracts import Contract, InvalidInput, PromptFragment, ServiceAccount
from toolcrib.policy import permits
from toolcrib.server.context import Caller, House, demand
from toolcrib.server.parsing import JsonRoute

fragments = APIRouter(prefix="/ai/fragments", route_class=JsonRoute, tags=["agents"])
accounts = APIRouter(prefix="/ai/accounts", route_class=JsonRoute, tags=["agents"])

_BUILT = ConfigDict(defer_build=False)


class FragmentBody(PromptFragment):
    """A prompt fragment, as an author sends it."""

    model_config = _BUILT


class AccountBody(ServiceAccount):
    """A service account, as its maker sends it."""

    model_config = _BUILT


class FragmentPage(Contract):
    """Prompt fragments by name."""

    items: tuple[PromptFragment, ...]


class AccountPage(Contract):
    """Service accounts by name."""

    items: tuple[ServiceAccount, ...]


@fragments.get("")
async def list_fragments(crib: House, caller: Caller) -> FragmentPage:
    """The fragments that the caller may read."""
    found = await crib.fragments.list(principal=caller)
    return FragmentPage(items=tuple(item for item in found if permits(caller.grants, _fragment(item.name, "read"))))


@fragments.get("/{name}")
async def get_fragment(name: str, crib: House, caller: Caller) -> PromptFragment:
    """A fragment in its newest revision."""
    demand(caller, _fragment(name, "read"))
    return await crib.fragments.get(name, principal=caller)


@fragments.put("/{name}")
async def save_fragment(name: str, body: FragmentBody, crib: House, caller: Caller) -> PromptFragment:
    """Store a new revision, which every run that begins from now on has."""
    demand(caller, _fragment(name, "write"))
    _same_name(name, body.name)
    await crib.fragments.save(PromptFragment(**dict(body)), principal=caller)
    return body


@fragments.delete("/{name}", status_code=204)
async def remove_fragment(name: str, crib: House, caller: Caller) -> Response:
    """Take a fragment out; agents that name it cannot be run until they do not, or it is saved again."""
    demand(caller, _fragment(name, "write"))
    await crib.fragments.remove(name, principal=caller)
    return Response(status_code=204)


@accounts.get("")
async def list_accounts(crib: House, caller: Caller) -> AccountPage:
    """The accounts that the caller may read."""
    found = await crib.accounts.list(principal=caller)
    return AccountPage(items=tuple(item for item in found if permits(caller.grants, _account(item.name, "read"))))


@accounts.get("/{name}")
async def get_account(name: str, crib: House, caller: Caller) -> ServiceAccount:
    """An account with its grants."""
    demand(caller, _account(name, "read"))
    return await crib.accounts.get(name, principal=caller)


@accounts.put("/{name}")
async def save_account(name: str, body: AccountBody, crib: House, caller: Caller) -> ServiceAccount:
    """Store an account, or change it; also for runs that have begun."""
    demand(caller, _account(name, "write"))
    _same_name(name, body.name)
    await crib.accounts.save(ServiceAccount(**dict(body)), principal=caller)
    return body


@accounts.delete("/{name}", status_code=204)
async def remove_account(name: str, crib: House, caller: Caller) -> Response:
    """Take an account out; agents that act as it can do nothing any more."""
    demand(caller, _account(name, "write"))
    await crib.accounts.remove(name, principal=caller)
    return Response(status_code=204)


def _fragment(name: str, verb: str) -> str:
    return f"ai://fragments/{name}/{verb}"


def _account(name: str, verb: str) -> str:
    return f"ai://accounts/{name}/{verb}"


def _same_name(path: str, body: str) -> None:
    if path != body:
        raise InvalidInput(f"the body is named {body!r} and the path {path!r}; send it to its own name")
