"""`toolcrib run export`, `toolcrib run replay` and `toolcrib replay`: a run in one file, and its events made again."""

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.support.options import DEFAULT_STORE, AsJson, RunId, Store
from toolcrib.interfaces.cli.support.session_part import with_crib

if TYPE_CHECKING:
    from toolcrib.contracts import Replay
    from toolcrib.core.runs.journal.bundles import Manifest
    from toolcrib.crib import Crib

Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", dir_okay=False, help="Where to; ID.bundle if not given."),
]
BundleFile = Annotated[
    Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="A bundle, as `toolcrib run export` writes.")
]
Parked = Annotated[bool, typer.Option("--parked", help="Also a run that has not ended, as far as it has come.")]


def export(run_id: RunId, output: Output = None, store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Write a run with all that is needed to make its events again into one file."""
    from toolcrib.contracts import InvalidInput

    path = output or Path(f"{run_id}.bundle")
    part = path.with_name(f"{path.name}.part")  # what is there already stays until the new one is whole

    async def write(crib: "Crib") -> "Manifest":
        with part.open("wb") as file:
            return await crib.export_run(run_id, file)

    try:
        manifest = with_crib(store, write)
        part.replace(path)
    except OSError as problem:
        raise InvalidInput(f"{path} cannot be written: {problem.strerror}; name another file with -o") from problem
    finally:
        part.unlink(missing_ok=True)
    if as_json:
        print(manifest.model_dump_json(indent=2))
        return
    print(f"wrote {path}: {len(manifest.entries)} entries, {path.stat().st_size} bytes")
    for left in manifest.left_out:
        print(f"  without {left.what}: {left.why}", file=sys.stderr)


def replay_run(run_id: RunId, parked: Parked = False, store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Make the events of a run again from its journal alone; exit status 1 if one of them is another."""
    _show(with_crib(store, lambda crib: crib.replay(run_id, parked=parked)), as_json=as_json)


def replay(path: BundleFile, as_json: AsJson = False) -> None:
    """Make the events of a run again from a bundle alone, without a store; exit status 1 if one of them is another."""
    from toolcrib.crib.runs.bundles_part import replay_file

    with path.open("rb") as file:
        _show(asyncio.run(replay_file(file, str(path))), as_json=as_json)


def _show(found: "Replay", *, as_json: bool) -> None:
    if as_json:
        print(found.model_dump_json(indent=2))
    elif found.divergence is None:
        calls = f"{len(found.envelopes)} tool calls, {found.model_calls} model calls, {len(found.nested)} nested runs"
        print(f"run {found.run_id} goes the same way: {found.events} events, {calls}, {found.status}")
        print(f"  {found.digest}")
    else:
        there = found.divergence
        print(f"run {there.run_id} goes another way at event {there.event}: {there.field}")
        print(f"  expected {json.dumps(there.expected, ensure_ascii=False)}")
        print(f"  got      {json.dumps(there.got, ensure_ascii=False)}")
    if not found.same:
        raise typer.Exit(1)
