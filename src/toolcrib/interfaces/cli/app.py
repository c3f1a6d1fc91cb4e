"""`toolcrib`: the commands put together, and what becomes of an error.

Every error of the library ends as one line on stderr: exit status 2 if what was asked for is wrong, else 1. A fault of
ours keeps its traceback.
"""

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from toolcrib.interfaces.cli.admin import (
    doctor,
    keys,
    providers,
    reference,
    restate,
    schema,
    secrets,
    settings,
    stores,
    up,
)
from toolcrib.interfaces.cli.admin import (
    serve as worker,
)
from toolcrib.interfaces.cli.admin import (
    store as pruning,
)
from toolcrib.interfaces.cli.agents import (
    accounts,
    agents,
    conversations,
)
from toolcrib.interfaces.cli.agents import (
    evaluations as evaluating,
)
from toolcrib.interfaces.cli.agents import (
    models as model,
)
from toolcrib.interfaces.cli.agents import (
    named as fragments,
)
from toolcrib.interfaces.cli.demo import demo
from toolcrib.interfaces.cli.runs import approvals, forks, replaying, runs, settling
from toolcrib.interfaces.cli.runs import replay as upgrading
from toolcrib.interfaces.cli.tools import (
    authoring,
    calling,
    code,
    databases,
    export,
    lifecycle,
    tools,
)
from toolcrib.interfaces.cli.tools import (
    imports as mcp,
)
from toolcrib.interfaces.cli.workflows import instances, publishing, workflows

USAGE, FAILURE = 2, 1


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
    ("show", authoring.show),
    ("prompt", authoring.prompt),
    ("regenerate", authoring.regenerate),
    ("test-prompt", authoring.try_prompt),
    ("revisions", authoring.revisions),
    ("roll-back", authoring.roll_back),
    ("call", calling.call),
    ("code", code.add_code),
    ("import-database", databases.import_database),
    ("import-mcp", mcp.import_mcp),
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
    ("remove", publishing.remove),
    ("materialize", publishing.materialize),
):
    workflows.app.command(name)(command)

for name, command in (
    ("fork", forks.fork),
    ("diff", forks.diff),
    ("export", replaying.export),
    ("replay", replaying.replay_run),
    ("settle", settling.settle),
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
app.add_typer(accounts.app, name="account")
app.add_typer(agents.app, name="agent")
app.add_typer(conversations.app, name="conversation")
app.add_typer(approvals.app, name="approval")
app.add_typer(demo.app, name="demo")
app.add_typer(fragments.app, name="fragment")
app.add_typer(instances.app, name="instance")
app.add_typer(keys.app, name="key")
app.add_typer(model.app, name="model")
app.add_typer(providers.app, name="provider")
app.add_typer(reference.app, name="reference")
app.add_typer(restate.app, name="restate")
app.add_typer(runs.app, name="run")
app.add_typer(secrets.app, name="secret")
app.add_typer(stores.app, name="store")
app.add_typer(tools.app, name="tool")
app.add_typer(upgrading.app, name="upgrade")
app.add_typer(workflows.app, name="workflow")
app.command("doctor")(doctor.doctor)
app.command("replay")(replaying.replay)
app.command("eval")(evaluating.evaluate)
app.command("export")(export.export)
app.command("schema")(schema.schema)
app.command("prune")(pruning.prune)
app.command("settings")(settings.show_settings)
app.command("up")(up.up)
app.command("worker")(worker.worker)


def main() -> None:
    """The entry point of the `toolcrib` program."""
    app()
