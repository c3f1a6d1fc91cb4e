"""Routes over secrets: written, listed by name, removed. No route reads a value."""

from fastapi import APIRouter, Response
from pydantic import ConfigDict, SecretStr

from toolcrib.contracts import Contract, PermissionDenied, SecretEntry, SecretScope
from toolcrib.core.policy import permits
from toolcrib.interfaces.server.http.context_part import Caller, House, demand
from toolcrib.interfaces.server.http.parsing import JsonRoute

router = APIRouter(prefix="/secrets", route_class=JsonRoute, tags=["secrets"])


class SecretBody(Contract):
    """A secret's value."""

    model_config = ConfigDict(defer_build=False)

    value: SecretStr
    scope: SecretScope = "realm"


class SecretPage(Contract):
    """Secrets by name, without values."""

    items: tuple[SecretEntry, ...]


@router.get("")
async def list_secrets(crib: House, caller: Caller) -> SecretPage:
    """The secrets that the caller's calls can use and that the caller may know of."""
    found = await crib.secrets.list(principal=caller)
    return SecretPage(items=tuple(each for each in found if permits(caller.grants, f"ai://secrets/{each.name}/read")))


@router.put("/{name}")
async def set_secret(name: str, body: SecretBody, crib: House, caller: Caller) -> SecretEntry:
    """Set a secret of the caller or of the realm, or set it anew."""
    _demand(caller, name, body.scope)
    return await crib.secrets.set(name, body.value.get_secret_value(), scope=body.scope, principal=caller)


@router.delete("/{name}", status_code=204)
async def remove_secret(name: str, crib: House, caller: Caller, scope: SecretScope = "realm") -> Response:
    """Remove a secret of the caller or of the realm."""
    _demand(caller, name, scope)
    await crib.secrets.remove(name, scope=scope, principal=caller)
    return Response(status_code=204)


def _demand(caller: Caller, name: str, scope: SecretScope) -> None:
    """Let pass who may write a secret; those of all realms are the operator's, who has the command line."""
    demand(caller, f"ai://secrets/{name}/write")
    if scope == "org":
        msg = f"secret {name!r} would be one of all realms, which the operator sets: `toolcrib secret set --scope org`"
        raise PermissionDenied(msg)
