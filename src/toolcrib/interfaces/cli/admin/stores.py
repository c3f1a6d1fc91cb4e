"""`toolcrib store`: which schema a store has, and bringing it to that of this release."""

import asyncio
import json
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.support.options import DEFAULT_STORE, AsJson, Store

if TYPE_CHECKING:
    from toolcrib.infrastructure.store.sql.store import SchemaState, SqlStore

app = typer.Typer(help="Look at a store's schema, and migrate it.", no_args_is_help=True)

DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")]


@app.command("status")
def status(store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Say which schema revision a store has, which one this release has, and what lies between."""
    found = asyncio.run(_sql_store(store).schema())
    if as_json:
        print(json.dumps(found._asdict(), indent=2))
        return
    _print(found)


@app.command("migrate")
def migrate(store: Store = DEFAULT_STORE, dry_run: DryRun = False) -> None:
    """Bring a store to the schema of this release, in one transaction; whatever opens a store does the same."""

    async def work() -> "SchemaState":
        opened = _sql_store(store)
        if not dry_run:
            await opened.open()
            await opened.close()
        return await opened.schema()

    _print(asyncio.run(work()))


def _sql_store(url: str | None) -> "SqlStore":
    from toolcrib.contracts import InvalidInput
    from toolcrib.crib.settings import load_settings
    from toolcrib.infrastructure.store import open_store
    from toolcrib.infrastructure.store.sql.store import SqlStore

    settings = load_settings({"store": url}).settings
    found = open_store(settings.store, blobs=settings.blobs)
    if not isinstance(found, SqlStore):
        raise InvalidInput("a store in memory has no schema; name another one with --store")
    return found


def _print(found: "SchemaState") -> None:
    revision = "no tables of Toolcrib" if found.revision is None else f"schema revision {found.revision}"
    print(f"The store {found.store} has {revision}; this release has {found.newest}.")
    if found.revision is not None and found.revision > found.newest:
        print("A newer release wrote it: install that release, or restore a backup from before.")
    for number, purpose in found.pending:
        print(f"  {number}: {purpose}")
