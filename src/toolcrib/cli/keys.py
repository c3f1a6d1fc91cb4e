"""`toolcrib key add`: another API key for the server of a store."""

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.cli.options import DEFAULT_STORE, Store
from toolcrib.cli.session import with_crib

if TYPE_CHECKING:
    from toolcrib.crib import Crib

app = typer.Typer(help="Make API keys for the server.", no_args_is_help=True)

Scopes = Annotated[
    list[str] | None,
    typer.Option("--scope", metavar="URI", help="A pattern such as ai://tools/crm/*/execute; all if none is given."),
]
Days = Annotated[int | None, typer.Option("--days", min=1, help="Days until it expires.", show_default=False)]
Who = Annotated[str, typer.Option("--principal", metavar="ID", help="Who its holder is in journals.")]


@app.callback()
def keys() -> None:
    """Make API keys for the server."""


@app.command("add")
def add_key(scopes: Scopes = None, days: Days = None, who: Who = "owner", store: Store = DEFAULT_STORE) -> None:
    """Print a new key, which is shown nowhere else and never again."""
    from toolcrib.contracts import InvalidSettings
    from toolcrib.settings import load_settings

    try:
        from toolcrib.server import KeyRing, read_pepper
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
