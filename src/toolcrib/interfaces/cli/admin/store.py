"""`toolcrib prune`: take out of a store what ended long ago."""

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from toolcrib.interfaces.cli.support.options import DEFAULT_STORE, AsJson, Store
from toolcrib.interfaces.cli.support.session_part import with_crib

if TYPE_CHECKING:
    from toolcrib.contracts.maintenance import Pruned
    from toolcrib.crib import Crib

_AGE: Final = re.compile(r"(\d+)([mhdw])")
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

OlderThan = Annotated[
    str | None,
    typer.Option(
        "--older-than",
        metavar="AGE",
        help="Age of what goes, as 30d, 12h or 8w, instead of TOOLCRIB_RETENTION_RUNS_DAYS.",
        show_default=False,
    ),
]
Realm = Annotated[str | None, typer.Option("--realm", metavar="NAME", help="Only this realm; all if none is given.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Count what would go, and take nothing out.")]
Compact = Annotated[
    bool,
    typer.Option("--compact", help="Give the space back to the file system too; nobody else can write meanwhile."),
]


def prune(
    *,
    older_than: OlderThan = None,
    realm: Realm = None,
    dry_run: DryRun = False,
    compact: Compact = False,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Take out runs and conversations that ended long ago, and all that only they needed."""
    age = _age(older_than)

    async def work(crib: "Crib") -> "Pruned":
        pruned = await crib.retention.prune(older_than=age, realm=realm, dry_run=dry_run)
        if compact and not dry_run:
            await crib.store.retention.compact()
        return pruned

    pruned = with_crib(store, work)
    if as_json:
        print(pruned.model_dump_json(indent=2))
        return
    _print(pruned)


def _age(given: str | None) -> timedelta:
    from toolcrib.contracts import InvalidInput
    from toolcrib.crib.settings import load_settings

    kept = load_settings().settings.retention.keep
    if given is None and kept is not None:
        return kept
    found = _AGE.fullmatch(given or "")
    if found is None:
        msg = f"--older-than {given!r} is no age" if given else "say how old what goes must be"
        raise InvalidInput(f"{msg}: --older-than 30d, or set TOOLCRIB_RETENTION_RUNS_DAYS")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def _print(pruned: "Pruned") -> None:
    from toolcrib.contracts import format_timestamp
    from toolcrib.interfaces.cli.render.tables import print_rows

    gone, kept = pruned.gone, pruned.kept
    rows = [
        ("runs", f"{gone.runs} in {gone.families} families"),
        ("events", str(gone.events)),
        ("approvals", str(gone.approvals)),
        ("conversations", str(gone.conversations)),
        ("expired results", str(pruned.expired_results)),
        ("blobs", f"{pruned.blobs} of {pruned.blob_bytes} bytes"),
        ("kept: something goes on", str(kept.unfinished)),
        ("kept: needed by a run that goes on", str(kept.needed)),
        ("kept: in a conversation that stays", str(kept.in_conversation)),
    ]
    print_rows(
        (f"Ended before {format_timestamp(pruned.ended_before)}", "Would go" if pruned.dry_run else "Gone"), rows
    )
