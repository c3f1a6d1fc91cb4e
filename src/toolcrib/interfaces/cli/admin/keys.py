"""`toolcrib key`: make, list and remove API keys. `toolcrib secret`: secrets in the vault.

The value of a secret is read from stdin or a prompt, never from the command line.
"""

import os
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from toolcrib.interfaces.cli.support.commands import Table, print_json, prints, says, shows
from toolcrib.interfaces.cli.support.groups import CommandApp, command
from toolcrib.interfaces.cli.support.session import (
    DEFAULT_STORE,
    AsJson,
    Filter,
    IdOf,
    Sort,
    Store,
    key_ids,
    secret_names,
    with_crib,
)

if TYPE_CHECKING:
    from toolcrib.contracts import SecretEntry
    from toolcrib.crib import Crib
    from toolcrib.infrastructure.store import ApiKey
    from toolcrib.interfaces.cli.render.documents import KeyEntry, MasterKey, Removed, Rotation

secrets_app = CommandApp("Manage secrets that definitions use as ${secret:NAME}.")

Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="As in ${secret:NAME}.", show_default=False, autocompletion=secret_names),
]
Scope = Annotated[Literal["user", "realm", "org"], typer.Option("--scope", help="Whose it is.")]
KeyName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the key: k2 after k1.")]


@command(secrets_app, "set", example="toolcrib secret set CRM_TOKEN < token.txt")
@prints("secret {found.name} of scope {found.scope} has version {found.version}")
def set_secret(name: Name, scope: Scope = "realm", store: Store = DEFAULT_STORE) -> "SecretEntry":
    """Set a secret to what is on stdin; at a terminal it is asked for.

    The last line break is not part of it.
    """
    text = _value().removesuffix("\n").removesuffix("\r")
    return with_crib(store, lambda crib: crib.secrets.set(name, text, scope=scope), new=True)


def _value() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.read()
    from toolcrib.contracts import InvalidInput
    from toolcrib.interfaces.cli.render.console import JSON_ONLY

    if JSON_ONLY.get():
        raise InvalidInput("the value must be on stdin, because --json never asks; add < FILE")
    return typer.prompt("Value", hide_input=True, err=True)


_SECRETS: "Table[SecretEntry]" = Table(
    {
        "Name": lambda each: each.name,
        "Scope": lambda each: each.scope,
        "Version": lambda each: each.version,
        "By": lambda each: each.made_by,
        "At (UTC)": lambda each: each.created_at,
    }
)


@command(secrets_app, "list", example="toolcrib secret list")
@shows(_SECRETS)
async def list_secrets(crib: "Crib", filter: Filter = None, sort: Sort = None) -> "Sequence[SecretEntry]":
    """List the secrets, without values."""
    return crib.queries.select("secrets", await crib.secrets.list(), filter=filter, sort=sort)


@command(secrets_app, "remove", example="toolcrib secret remove CRM_TOKEN")
@says("secret {name} of scope {scope} is removed")
async def remove(crib: "Crib", name: Name, scope: Scope = "realm") -> "Removed":
    """Remove a secret."""
    from toolcrib.interfaces.cli.render.documents import Removed

    await crib.secrets.remove(name, scope=scope)
    return Removed(kind="secret", name=name)


@command(secrets_app, "rotate", example="toolcrib secret rotate")
@says("{found.sealed} sealed again; the other master keys are no longer needed")
async def rotate(crib: "Crib") -> "Rotation":
    """Seal all secrets again under the first master key.

    The keys are in TOOLCRIB_MASTER_KEYS. Connections of providers are sealed again too.
    """
    from toolcrib.interfaces.cli.render.documents import Rotation

    return Rotation(sealed=await crib.secrets.rotate())


@command(secrets_app, "new-key", example="toolcrib secret new-key k2")
@prints("{found.entry}")
def new_key(name: KeyName = "k1") -> "MasterKey":
    """Print a new random entry for TOOLCRIB_MASTER_KEYS.

    It is stored nowhere.
    """
    from toolcrib.infrastructure.secrets import new_master_key
    from toolcrib.interfaces.cli.render.documents import MasterKey

    return MasterKey(entry=new_master_key(name))


app = CommandApp("Make, list and remove API keys for the server.")

KeyId = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="The twelve digits after tcb_, or at least eight of them.",
        show_default=False,
        autocompletion=key_ids,
    ),
    IdOf("key"),
]

Scopes = Annotated[
    list[str] | None,
    typer.Option("--scope", metavar="URI", help="A pattern such as ai://tools/crm/*/execute; all if none is given."),
]
Days = Annotated[int | None, typer.Option("--days", min=1, help="Days until it expires.", show_default=False)]
Who = Annotated[str, typer.Option("--principal", metavar="ID", help="Who its holder is in journals.")]


@command(app, "add", example="toolcrib key add --principal ci --scope 'ai://tools/crm/*/execute'")
def add_key(
    scopes: Scopes = None,
    days: Days = None,
    who: Who = "owner",
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it, once and never again."""
    from toolcrib.contracts import InvalidSettings
    from toolcrib.contracts.base.errors import missing_extra
    from toolcrib.crib.settings import load_settings
    from toolcrib.interfaces.cli.render.documents import NewKey

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

    key = with_crib(store, issue, new=True)
    if as_json:
        print_json(NewKey(key=key))
    else:
        print(key)


def _entry(key: "ApiKey") -> "KeyEntry":
    from toolcrib.interfaces.cli.render.documents import KeyEntry

    return KeyEntry(
        key_id=key.key_id,
        last_four=key.last_four,
        principal=key.principal,
        scopes=key.scopes,
        created_at=key.created_at,
        expires_at=key.expires_at,
    )


_KEYS: "Table[KeyEntry]" = Table(
    {
        "Id": lambda key: key.key_id,
        "Ends in": lambda key: key.last_four,
        "Principal": lambda key: key.principal,
        "Scopes": lambda key: " ".join(key.scopes),
        "Expires (UTC)": lambda key: key.expires_at or "never",
    }
)


@command(app, "list", example="toolcrib key list")
@shows(_KEYS)
async def list_keys(crib: "Crib") -> "Sequence[KeyEntry]":
    """List the keys by id, without their secret parts."""
    return [_entry(key) for key in await crib.store.api_keys.list(crib.principal.realm)]


def _print_key(key: "KeyEntry") -> None:
    _KEYS([key])


@command(app, "show", example="toolcrib key show 0a1b2c3d4e5f")
@shows(_print_key)
async def show_key(crib: "Crib", key_id: KeyId) -> "KeyEntry":
    """Show a key: its holder, scopes and end."""
    key = await crib.store.api_keys.get(key_id)
    if key is None or key.realm != crib.principal.realm:
        raise _unknown(key_id)
    return _entry(key)


@command(app, "remove", example="toolcrib key remove 0a1b2c3d4e5f")
@says("key {found.name} is removed")
async def remove_key(crib: "Crib", key_id: KeyId) -> "Removed":
    """Remove a key, at once and for every server of the store."""
    from toolcrib.interfaces.cli.render.documents import Removed

    if not await crib.store.api_keys.remove(crib.principal.realm, key_id):
        raise _unknown(key_id)
    return Removed(kind="key", name=key_id)


def _unknown(key_id: str) -> Exception:
    from toolcrib.contracts import NotFound

    return NotFound(f"there is no key {key_id!r}; `toolcrib key list` shows all")
