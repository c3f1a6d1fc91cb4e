"""`toolcrib run fork` and `toolcrib run diff`: go back to an event of a run, change something, and see what differs."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.support.inputs import text_of
from toolcrib.interfaces.cli.support.options import DEFAULT_STORE, AsJson, RunId, Store
from toolcrib.interfaces.cli.support.session_part import with_crib

if TYPE_CHECKING:
    from toolcrib.contracts import Json, JsonObject, Run
    from toolcrib.contracts.runs.comparisons import RunDiff
    from toolcrib.crib import Crib

At = Annotated[
    str | None,
    typer.Option(
        "--at", metavar="N", help="Last event that is known, or step:NAME, turn:N; else the first.", show_default=False
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="What is different: model, prompt (a text or @FILE), tool:NAME, policy (JSON), input.FIELD, temperature…",
        show_default=False,
    ),
]
AllowWrites = Annotated[bool, typer.Option("--allow-writes", help="Make calls that write and were not made before.")]
Anew = Annotated[bool, typer.Option("--anew", help="Take nothing from the recording after the event.")]
Other = Annotated[str, typer.Argument(metavar="OTHER", help="The id of the run that it is held against.")]

_TEXTS = frozenset({"model", "prompt", "reasoning_effort", "tool_calling"})


def fork(
    *,
    run_id: RunId,
    at: At = None,
    changes: Set = None,
    allow_writes: AllowWrites = False,
    anew: Anew = False,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Begin a run with what another one knew at an event, change something, and tell what then comes of it."""
    wanted = dict(map(_change, changes or ()))

    async def make(crib: "Crib") -> "tuple[Run, RunDiff]":
        made = await crib.fork(run_id, at=at, changes=wanted, allow_writes=allow_writes, anew=anew)
        return made, await crib.compare(run_id, made.run_id)

    made, found = with_crib(store, make)
    if as_json:
        print(json.dumps({"run": _shown(made), "diff": _shown(found)}, indent=2, ensure_ascii=False))
    else:
        from toolcrib.interfaces.cli.render.comparisons import print_diff

        print_diff(found)
        if made.error is not None:
            print(f"toolcrib: {made.error.code}: {made.error.message}", file=sys.stderr)
    if made.status in {"failed", "incomplete", "timed_out", "cancelled"}:
        raise typer.Exit(1)


def diff(run_id: RunId, other: Other, store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Hold two runs against each other: ends, costs, calls, answers and decisions."""
    found = with_crib(store, lambda crib: crib.compare(run_id, other))
    if as_json:
        print(found.model_dump_json(indent=2))
        return
    from toolcrib.interfaces.cli.render.comparisons import print_diff

    print_diff(found)


def _change(text: str) -> "tuple[str, Json]":
    """A change as it is typed: JSON where a value is JSON, else a text; `@FILE` for the text of a file."""
    name, given, value = text.partition("=")
    if not given:
        raise typer.BadParameter(f"--set {text}: write NAME=VALUE")
    if value.startswith("@"):
        value = text_of(Path(value[1:]))
    if name in _TEXTS or name.startswith("tool:"):
        return name, value
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _shown(contract: "Run | RunDiff") -> "JsonObject":
    return contract.model_dump(mode="json")
