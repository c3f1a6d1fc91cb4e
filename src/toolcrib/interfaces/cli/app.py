"""The `toolcrib` command: combines all commands and handles errors.

Each error of the library is printed as one line on stderr. The exit status is 2 for invalid input, else 1. Unexpected
exceptions keep their traceback.
"""

import gc
import sys
from typing import Any, Final

import typer
from typer.core import TyperGroup

from toolcrib.interfaces.cli.admin import keys, providers, serve, settings, store
from toolcrib.interfaces.cli.agents import agents, evaluations, models, named
from toolcrib.interfaces.cli.demo import demo
from toolcrib.interfaces.cli.project import project
from toolcrib.interfaces.cli.runs import approvals, replay, runs
from toolcrib.interfaces.cli.tools import authoring, lifecycle, tools
from toolcrib.interfaces.cli.workflows import instances, publishing, workflows

USAGE, FAILURE = 2, 1
_COLLECTED_AFTER: Final = 50_000
"""New objects after which the collector looks for garbage: what a command loads at its start lives as long as it."""


class Commands(TyperGroup):
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
)
app.add_typer(named.accounts_app, name="account")
app.add_typer(agents.app, name="agent")
app.add_typer(agents.conversations_app, name="conversation")
app.add_typer(approvals.app, name="approval")
app.add_typer(demo.app, name="demo")
app.add_typer(named.app, name="fragment")
app.add_typer(instances.app, name="instance")
app.add_typer(keys.app, name="key")
app.add_typer(models.app, name="model")
app.add_typer(providers.app, name="provider")
app.add_typer(providers.reference_app, name="reference")
app.add_typer(serve.app, name="restate")
app.add_typer(runs.app, name="run")
app.add_typer(keys.secrets_app, name="secret")
app.add_typer(store.app, name="store")
app.add_typer(tools.app, name="tool")
app.add_typer(replay.app, name="upgrade")
app.add_typer(workflows.app, name="workflow")
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
    app()
