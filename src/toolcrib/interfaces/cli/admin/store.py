"""`toolcrib store`: the version of a store's schema, and migrations. `toolcrib prune`: delete old data."""

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.render.progress import progress
from toolcrib.interfaces.cli.render.rows import print_rows
from toolcrib.interfaces.cli.support.commands import prints
from toolcrib.interfaces.cli.support.groups import CommandApp, command
from toolcrib.interfaces.cli.support.inputs import time_of
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, Store, with_crib

if TYPE_CHECKING:
    from toolcrib.contracts.pruning_and_rehearsal import Pruned
    from toolcrib.crib import Crib
    from toolcrib.infrastructure.store.sql.sql_store import SchemaState, SqlStore
    from toolcrib.interfaces.cli.render.documents import SchemaReport

app = CommandApp("Inspect and migrate the schema of a store.")

MigrationDryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")]


def _print_schema(found: "SchemaState") -> None:
    revision = "no tables of Toolcrib" if found.revision is None else f"schema revision {found.revision}"
    print(f"The store {found.store} has {revision}; this release has {found.newest}.")
    if found.revision is not None and found.revision > found.newest:
        print("A newer release wrote it: install that release, or restore a backup from before.")
    for number, purpose in found.pending:
        print(f"  {number}: {purpose}")


def _schema_document(found: "SchemaState") -> "SchemaReport":
    from toolcrib.interfaces.cli.render.documents import Migration, SchemaReport

    pending = tuple(Migration(revision=number, purpose=purpose) for number, purpose in found.pending)
    return SchemaReport(store=found.store, revision=found.revision, newest=found.newest, pending=pending)


@command(app, "show", example="toolcrib store show")
@prints(_print_schema, data=_schema_document)
def show(store: Store = DEFAULT_STORE) -> "SchemaState":
    """Print the schema of a store, and pending migrations."""
    return asyncio.run(_sql_store(store).schema())


@command(app, "migrate", example="toolcrib store migrate --dry-run")
@prints(_print_schema, data=_schema_document)
def migrate(dry_run: MigrationDryRun = False, store: Store = DEFAULT_STORE) -> "SchemaState":
    """Migrate a store to the schema of this release.

    All migrations are one transaction. Opening a store does the same.
    """

    async def work() -> "SchemaState":
        opened = _sql_store(store)
        if not dry_run:
            with progress("Migrating the store"):
                await opened.open()
                await opened.close()
        return await opened.schema()

    return asyncio.run(work())


def _sql_store(url: str | None) -> "SqlStore":
    from toolcrib.contracts import InvalidInput
    from toolcrib.crib.settings import load_settings
    from toolcrib.infrastructure.store import open_store
    from toolcrib.infrastructure.store.sql.sql_store import SqlStore

    settings = load_settings({"store": url}).settings
    found = open_store(settings.store, blobs=settings.blobs)
    if not isinstance(found, SqlStore):
        raise InvalidInput("a store in memory has no schema; name another one with --store")
    return found


OlderThan = Annotated[
    str | None,
    typer.Option(
        "--older-than",
        metavar="AGE",
        help="Minimum age of what is deleted, as 30d, 12h or 8w, instead of TOOLCRIB_RETENTION_RUNS_DAYS.",
        show_default=False,
    ),
]
Realm = Annotated[str | None, typer.Option("--realm", metavar="NAME", help="Only this realm; all if none is given.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Count what would be deleted, and delete nothing.")]
Compact = Annotated[
    bool,
    typer.Option("--compact", help="Also return free space to the file system; blocks other writers meanwhile."),
]


def _print_pruned(pruned: "Pruned") -> None:
    from toolcrib.contracts import format_timestamp

    counts, kept = pruned.gone, pruned.kept
    rows = [
        ("runs", f"{counts.runs} in {counts.families} families"),
        ("events", str(counts.events)),
        ("approvals", str(counts.approvals)),
        ("conversations", str(counts.conversations)),
        ("expired results", str(pruned.expired_results)),
        ("blobs", f"{pruned.blobs} of {pruned.blob_bytes} bytes"),
        ("kept: not ended", str(kept.unfinished)),
        ("kept: needed by an open run", str(kept.needed)),
        ("kept: in a conversation that stays", str(kept.in_conversation)),
    ]
    columns = (f"Ended before {format_timestamp(pruned.ended_before)}", "Would go" if pruned.dry_run else "Deleted")
    print_rows(columns, rows)


@prints(_print_pruned)
def prune(
    *,
    older_than: OlderThan = None,
    realm: Realm = None,
    dry_run: DryRun = False,
    compact: Compact = False,
    store: Store = DEFAULT_STORE,
) -> "Pruned":
    """Delete old runs, conversations and unreferenced data."""
    age = _age(older_than)

    async def work(crib: "Crib") -> "Pruned":
        with progress("Deleting old data"):
            pruned = await crib.retention.prune(older_than=age, realm=realm, dry_run=dry_run)
            if compact and not dry_run:
                await crib.store.retention.compact()
            return pruned

    return with_crib(store, work)


def _age(given: str | None) -> timedelta:
    from toolcrib.contracts import InvalidInput
    from toolcrib.crib.settings import load_settings

    kept = load_settings().settings.retention.keep
    if given is None and kept is not None:
        return kept
    if given is None:
        raise InvalidInput(
            "the age of what is deleted is missing; add --older-than 30d, or set TOOLCRIB_RETENTION_RUNS_DAYS"
        )
    return time_of(given, "--older-than")
