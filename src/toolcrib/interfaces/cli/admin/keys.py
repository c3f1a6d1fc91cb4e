"""`toolcrib key`: create, list and revoke API keys. `toolcrib secret`: secrets in the vault.

The value of a secret is read from stdin or a prompt, never from the command line.
"""

import os
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from toolcrib.interfaces.cli.support.commands import Table, says, shows
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, IdOf, Store, with_crib

if TYPE_CHECKING:
    from toolcrib.contracts import SecretEntry
    from toolcrib.crib import Crib
    from toolcrib.infrastructure.store import ApiKey

secrets_app = typer.Typer(help="Manage secrets that definitions use as ${secret:NAME}.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="As in ${secret:NAME}.", show_default=False)]
Scope = Annotated[Literal["user", "realm", "org"], typer.Option("--scope", help="Whose it is.")]
KeyName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the key: k2 after k1.")]


@secrets_app.command("set")
def set_secret(name: Name, scope: Scope = "realm", store: Store = DEFAULT_STORE) -> None:
    """Set a secret to what comes on stdin, up to its last line break; at a terminal it is asked for."""
    value = typer.prompt("Value", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.read()
    text = value.removesuffix("\n").removesuffix("\r")
    entry = with_crib(store, lambda crib: crib.secrets.set(name, text, scope=scope), new=True)
    print(f"secret {name} of scope {scope} has version {entry.version}")


_SECRETS: "Table[SecretEntry]" = Table(
    {
        "Name": lambda each: each.name,
        "Scope": lambda each: each.scope,
        "Version": lambda each: each.version,
        "By": lambda each: each.made_by,
        "At (UTC)": lambda each: each.created_at,
    }
)


@secrets_app.command("list")
@shows(_SECRETS)
async def list_secrets(crib: "Crib") -> "Sequence[SecretEntry]":
    """List the secrets, without values."""
    return await crib.secrets.list()


@secrets_app.command("remove")
@says("secret {name} of scope {scope} is removed")
async def remove(crib: "Crib", name: Name, scope: Scope = "realm") -> None:
    """Remove a secret."""
    await crib.secrets.remove(name, scope=scope)


@secrets_app.command("rotate")
@says("{found} sealed again; the other master keys are not needed any more")
async def rotate(crib: "Crib") -> int:
    """Seal all secrets and connections under the first key of TOOLCRIB_MASTER_KEYS."""
    return await crib.secrets.rotate()


@secrets_app.command("new-key")
def new_key(name: KeyName = "k1") -> None:
    """Print an entry for TOOLCRIB_MASTER_KEYS with a random key, which is kept nowhere."""
    from toolcrib.infrastructure.secrets import new_master_key

    print(new_master_key(name))


app = typer.Typer(help="Create, list and revoke API keys for the server.", no_args_is_help=True)

KeyId = Annotated[
    str,
    typer.Argument(metavar="ID", help="The twelve digits after tcb_, or the first.", show_default=False),
    IdOf("key"),
]

Scopes = Annotated[
    list[str] | None,
    typer.Option("--scope", metavar="URI", help="A pattern such as ai://tools/crm/*/execute; all if none is given."),
]
Days = Annotated[int | None, typer.Option("--days", min=1, help="Days until it expires.", show_default=False)]
Who = Annotated[str, typer.Option("--principal", metavar="ID", help="Who its holder is in journals.")]


@app.command("add")
def add_key(scopes: Scopes = None, days: Days = None, who: Who = "owner", store: Store = DEFAULT_STORE) -> None:
    """Print a new key, which is shown nowhere else and never again."""
    from toolcrib.contracts import InvalidSettings
    from toolcrib.contracts.base.errors import missing_extra
    from toolcrib.crib.settings import load_settings

    try:
        from toolcrib.interfaces.server import KeyRing, read_pepper
    except ModuleNotFoundError as missing:
        raise InvalidSettings(missing_extra("a key of the server", missing.name, "server")) from missing

    url = load_settings({"store": store}).settings.store

    async def issue(crib: "Crib") -> str:
        pepper = read_pepper(url, os.environ, keys=await crib.store.api_keys.count())
        expires_at = crib.clock.now() + timedelta(days=days) if days else None
        holder = crib.principal.model_copy(update={"id": who})
        ring = KeyRing(crib.store.api_keys, pepper, crib.clock)
        return await ring.issue(holder, scopes=tuple(scopes) if scopes else None, expires_at=expires_at)

    print(with_crib(store, issue, new=True))


def _to_document(key: "ApiKey") -> "dict[str, Any]":
    from toolcrib.contracts import format_timestamp

    return {
        "key_id": key.key_id,
        "last_four": key.last_four,
        "principal": key.principal,
        "scopes": list(key.scopes),
        "created_at": format_timestamp(key.created_at),
        "expires_at": None if key.expires_at is None else format_timestamp(key.expires_at),
    }


_KEYS: "Table[ApiKey]" = Table(
    {
        "Id": lambda key: key.key_id,
        "Ends in": lambda key: key.last_four,
        "Principal": lambda key: key.principal,
        "Scopes": lambda key: " ".join(key.scopes),
        "Expires (UTC)": lambda key: _to_document(key)["expires_at"] or "never",
    }
)


@app.command("list")
@shows(_KEYS, data=lambda found: [_to_document(key) for key in found])
async def list_keys(crib: "Crib") -> "Sequence[ApiKey]":
    """List the keys: their ids and last four characters, never more of them."""
    return await crib.store.api_keys.list(crib.principal.realm)


@app.command("revoke")
@says("key {key_id} is revoked")
async def revoke_key(crib: "Crib", key_id: KeyId) -> None:
    """Revoke a key, at once and in every server of the store."""
    if not await crib.store.api_keys.remove(crib.principal.realm, key_id):
        from toolcrib.contracts import NotFound

        msg = f"there is no key {key_id!r}; `toolcrib key list` shows all"
        raise NotFound(msg)
