"""The `toolcrib` command: combines all commands and handles errors.

Each error of the library is printed as one line on stderr. The exit status is 2 for invalid input, else 1. Unexpected
exceptions keep their traceback.
"""

import gc
import os
import sys
from importlib.metadata import version as installed_version
from typing import Annotated, Any, Final

import typer

from toolcrib.interfaces.cli.admin import keys, providers, serve, settings, store
from toolcrib.interfaces.cli.agents import agents, evaluations, models, named
from toolcrib.interfaces.cli.demo import demo
from toolcrib.interfaces.cli.project import project
from toolcrib.interfaces.cli.runs import approvals, replay, runs
from toolcrib.interfaces.cli.support import completion
from toolcrib.interfaces.cli.support.groups import CommandGroup
from toolcrib.interfaces.cli.tools import authoring, lifecycle, tools
from toolcrib.interfaces.cli.tools.imports import ToolCommands
from toolcrib.interfaces.cli.workflows import instances, publishing, workflows

USAGE, FAILURE = 2, 1


def _print_version(asked: bool) -> None:
    if asked:
        print(f"toolcrib {installed_version('toolcrib')}")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
]
_COLLECTED_AFTER: Final = 50_000
"""New objects after which the collector looks for garbage: what a command loads at its start lives as long as it."""


class Commands(CommandGroup):
    """The root of all commands."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except Exception as failure:
            status = exit_status(failure)
            if status is None:
                raise
            print(f"toolcrib: {' '.join(str(failure).split())}", file=sys.stderr)
            raise typer.Exit(status) from None


def exit_status(failure: Exception) -> int | None:
    """The exit status that an error of the library means; null for any other exception."""
    from toolcrib.contracts import InvalidInput, ToolcribError

    match failure:
        case InvalidInput():
            return USAGE
        case ToolcribError():
            return FAILURE
        case _:
            return None


for name, command in (
    ("prompt", authoring.prompt),
    ("regenerate", authoring.regenerate),
    ("test-prompt", authoring.try_prompt),
    ("revisions", authoring.revisions),
    ("roll-back", authoring.roll_back),
    ("call", tools.call),
    ("code", tools.add_code),
    ("export", tools.export),
    ("deprecate", lifecycle.deprecate),
    ("block", lifecycle.block),
    ("activate", lifecycle.activate),
    ("impact", lifecycle.impact),
    ("review", lifecycle.review),
    ("accept", lifecycle.accept),
    ("reject", lifecycle.reject),
):
    tools.app.command(name)(command)

for name, command in (
    ("draft", publishing.draft),
    ("drafts", publishing.drafts),
    ("discard", publishing.discard),
    ("undo", publishing.undo),
    ("publish", publishing.publish),
    ("revert", publishing.revert),
    ("materialize", publishing.materialize),
):
    workflows.app.command(name)(command)

for name, command in (
    ("fork", replay.fork),
    ("diff", replay.diff),
    ("export", replay.export),
    ("replay", replay.replay_run),
    ("settle", approvals.settle_run),
):
    runs.app.command(name)(command)

app = typer.Typer(
    cls=Commands,
    name="toolcrib",
    help="Governed, observable, durable tools for AI agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for name, group in (
    ("account", named.accounts_app),
    ("agent", agents.app),
    ("approval", approvals.app),
    ("conversation", agents.conversations_app),
    ("demo", demo.app),
    ("fragment", named.app),
    ("instance", instances.app),
    ("key", keys.app),
    ("model", models.app),
    ("provider", providers.app),
    ("reference", providers.reference_app),
    ("restate", serve.app),
    ("run", runs.app),
    ("secret", keys.secrets_app),
    ("store", store.app),
    ("tool", tools.app),
    ("upgrade", replay.app),
    ("workflow", workflows.app),
):
    group.rich_markup_mode = None
    app.add_typer(group, name=name, cls=ToolCommands if name == "tool" else CommandGroup)


@app.callback()
def root(*, version: Version = False) -> None:
    """Governed, observable, durable tools for AI agents."""


app.command("completion")(completion.completion)
app.command("doctor")(settings.doctor)
app.command("replay")(replay.replay)
app.command("eval")(evaluations.evaluate)
app.command("init")(project.init)
app.command("export")(project.export)
app.command("schema")(settings.schema)
app.command("prune")(store.prune)
app.command("settings")(settings.show_settings)
app.command("apply")(project.apply)
app.command("up")(serve.up)
app.command("worker")(serve.worker)


def main() -> None:
    """The entry point of the `toolcrib` program."""
    gc.set_threshold(_COLLECTED_AFTER)
    if completion.VARIABLE in os.environ:
        completion.prepare()
    app()
