"""`toolcrib tool call`: one call, from the terminal."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.support.objects import json_object
from toolcrib.interfaces.cli.support.options import DEFAULT_STORE, AsJson, Store
from toolcrib.interfaces.cli.support.session_part import with_crib

if TYPE_CHECKING:
    from toolcrib.core.runs import Result
    from toolcrib.crib import Crib

Ref = Annotated[str, typer.Argument(metavar="NAME", help="`name` or `name@range`.")]
Input = Annotated[str, typer.Option("--input", metavar="JSON", help="The arguments, as a JSON object.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Skip every call that would write.")]


def call(
    name: Ref,
    arguments: Input = "{}",
    dry_run: DryRun = False,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Call a tool once, and print its output; with --json the whole envelope. A failed call ends with status 1."""

    async def run(crib: "Crib") -> "Result":
        return await crib.invoke(name, json_object(arguments, "--input"), dry_run=dry_run, as_call=True)

    result = with_crib(store, run)
    if not result.envelopes:
        status, run_id = result.summary.status.replace("_", " "), result.run_id
        print(f"run {run_id} is {status}; decide it with `toolcrib run approve`, then `toolcrib run resume {run_id}`")
        return
    envelope = result.envelopes[-1]
    if as_json:
        print(envelope.model_dump_json(indent=2))
    elif envelope.error is not None:
        typer.echo(f"{envelope.error.code}: {envelope.error.message}", err=True)
    else:
        print(json.dumps(envelope.output, indent=2, ensure_ascii=False))
    if envelope.error is not None:
        raise typer.Exit(1)
