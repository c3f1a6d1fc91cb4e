"""`toolcrib key`: API keys for the server of a store: made, listed, revoked."""

import json
import os
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.support.options import DEFAULT_STORE, AsJson, Store
from toolcrib.interfaces.cli.support.session_part import with_crib

if TYPE_CHECKING:
    from toolcrib.crib import Crib

app = typer.Typer(help="Make, list and revoke API keys for the server.", no_args_is_help=True)

KeyId = Annotated[str, typer.Argument(metavar="ID", help="The twelve digits after tcb_.", show_default=False)]

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
    from toolcrib.crib.settings import load_settings

    try:
        from toolcrib.interfaces.server import KeyRing, read_pepper
    except ModuleNotFoundError as missing:
        msg = f"keys are of the server, which needs {missing.name!r}: pip install 'toolcrib[server]'"
        raise InvalidSettings(msg) from missing

    url = load_settings({"store": store}).settings.store

    async def issue(crib: "Crib") -> str:
        pepper = read_pepper(url, os.environ, keys=await crib.store.api_keys.count())
        expires_at = crib.clock.now() + timedelta(days=days) if days else None
        holder = crib.principal.model_copy(update={"id": who})
        ring = KeyRing(crib.store.api_keys, pepper, crib.clock)
        return await ring.issue(holder, scopes=tuple(scopes) if scopes else None, expires_at=expires_at)

    print(with_crib(store, issue, new=True))


@app.command("list")
def list_keys(store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the keys: their ids and last four characters, never more of them."""
    from toolcrib.contracts import format_timestamp

    found = with_crib(store, lambda crib: crib.store.api_keys.list(crib.principal.realm))
    facts = [
        {
            "key_id": key.key_id,
            "last_four": key.last_four,
            "principal": key.principal,
            "scopes": list(key.scopes),
            "created_at": format_timestamp(key.created_at),
            "expires_at": None if key.expires_at is None else format_timestamp(key.expires_at),
        }
        for key in found
    ]
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    from toolcrib.interfaces.cli.render.tables import print_rows

    rows = [
        (key.key_id, key.last_four, key.principal, " ".join(key.scopes), str(fact["expires_at"] or "never"))
        for key, fact in zip(found, facts, strict=True)
    ]
    print_rows(("Id", "Ends in", "Principal", "Scopes", "Expires (UTC)"), rows)


@app.command("revoke")
def revoke_key(key_id: KeyId, store: Store = DEFAULT_STORE) -> None:
    """Take a key out of use, at once and in every server of the store."""
    if not with_crib(store, lambda crib: crib.store.api_keys.remove(crib.principal.realm, key_id)):
        from toolcrib.contracts import NotFound

        msg = f"there is no key {key_id!r}; `toolcrib key list` shows all"
        raise NotFound(msg)
    print(f"key {key_id} is revoked")
