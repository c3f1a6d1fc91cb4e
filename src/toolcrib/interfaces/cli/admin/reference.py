"""`toolcrib reference`: the valid values that providers declare, as they were read last, and reading them now."""

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.support.options import DEFAULT_STORE, AsJson, Store
from toolcrib.interfaces.cli.support.session_part import with_crib

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcrib.contracts import ReferenceSnapshot

app = typer.Typer(help="Look at the reference data of providers, and sync it.", no_args_is_help=True)

Provider = Annotated[
    str | None, typer.Argument(metavar="PROVIDER", help="Name of the provider; all if it is left out.")
]
Lists = Annotated[list[str] | None, typer.Argument(metavar="LIST", help="Lists of it; all if none is given.")]

Accept = Annotated[bool, typer.Option("--accept", help="Believe lists that have lost most of their values.")]
OneProvider = Annotated[str, typer.Argument(metavar="PROVIDER", help="Name of the provider.")]
OneList = Annotated[str, typer.Argument(metavar="LIST", help="Name of the list.")]


@app.command("list")
def list_references(provider: Provider = None, store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List what providers declare, each with its last snapshot and its age."""
    _show(with_crib(store, lambda crib: crib.reference_data.list(provider)), as_json=as_json)


@app.command("sync")
def sync(
    provider: Provider = None,
    names: Lists = None,
    accept: Accept = False,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Read lists now; exit status 1 if one of them could not be read."""
    found = with_crib(store, lambda crib: crib.reference_data.sync(provider, *(names or ()), accept=accept))
    _show(found, as_json=as_json)
    failed = [snapshot for snapshot in found if snapshot.error is not None]
    for snapshot in failed:
        print(f"toolcrib: {snapshot.provider}: {snapshot.error}", file=sys.stderr)
    if failed:
        raise typer.Exit(1)


@app.command("history")
def history(provider: OneProvider, name: OneList, store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Show what the last readings of a list brought, newest first."""
    found = with_crib(store, lambda crib: crib.reference_data.history(provider, name))
    if as_json:
        print(json.dumps([reading.model_dump(mode="json") for reading in found], indent=2, ensure_ascii=False))
        return
    from toolcrib.interfaces.cli.render.tables import print_readings

    print_readings(found)


def _show(found: "Sequence[ReferenceSnapshot]", *, as_json: bool) -> None:
    if as_json:
        print(json.dumps([snapshot.model_dump(mode="json") for snapshot in found], indent=2, ensure_ascii=False))
        return
    from toolcrib.interfaces.cli.render.tables import print_references

    print_references(found)
