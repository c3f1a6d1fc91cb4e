"""The `toolcrib` command: combines all commands.

An error of the library is one line on stderr, or one JSON object there with `--json` (`support/failures.py`).
Unexpected exceptions keep their traceback.
"""

import gc
import os
from importlib.metadata import version as installed_version
from typing import Annotated, Final

import typer

from toolcrib.interfaces.cli.admin import keys, mcp, mcp_servers, providers, serve, settings, store
from toolcrib.interfaces.cli.agents import agents, evaluations, models, named, triggers
from toolcrib.interfaces.cli.demo import demo
from toolcrib.interfaces.cli.project import project
from toolcrib.interfaces.cli.runs import approvals, replay, runs
from toolcrib.interfaces.cli.support import completion
from toolcrib.interfaces.cli.support.groups import HELP, CommandGroup, command
from toolcrib.interfaces.cli.tools import authoring, lifecycle, tools
from toolcrib.interfaces.cli.tools.imports import ToolCommands
from toolcrib.interfaces.cli.workflows import drafts, instances, publishing, workflows

STATUSES: Final = "Exit status: 0 success; 1 the command or the run failed; 2 invalid input or usage."


def _print_version(asked: bool) -> None:
    if asked:
        print(f"toolcrib {installed_version('toolcrib')}")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
]
_COLLECTED_AFTER: Final = 50_000
"""New objects after which the collector looks for garbage: what a command loads at its start lives as long as it."""

for name, made, example in (
    ("prompt", authoring.prompt, "toolcrib tool prompt deals"),
    ("regenerate", authoring.regenerate, "toolcrib tool regenerate deals --accept"),
    ("render-prompt", authoring.render_prompt, 'toolcrib tool render-prompt deals "Which deals has Acme?"'),
    ("test-prompt", authoring.try_prompt, 'toolcrib tool test-prompt deals "Which deals has Acme?"'),
    ("revisions", authoring.revisions, "toolcrib tool revisions deals --compare 1 2"),
    ("revert", authoring.revert, "toolcrib tool revert deals 1"),
    ("call", tools.call, 'toolcrib tool call search_deals --input \'{"company": "Acme"}\''),
    ("add-code", tools.add_code, "toolcrib tool add-code total.py --name total"),
    ("export", tools.export, "toolcrib tool export search_deals --as openai"),
    ("deprecate", lifecycle.deprecate, "toolcrib tool deprecate old_search --replacement search"),
    ("block", lifecycle.block, 'toolcrib tool block refund --message "Under review"'),
    ("activate", lifecycle.activate, "toolcrib tool activate refund"),
    ("access", lifecycle.access, "toolcrib tool access search_deals"),
    ("impact", lifecycle.impact, "toolcrib tool impact search_deals"),
    ("review", lifecycle.review, "toolcrib tool review crm_update_deal"),
    ("accept", lifecycle.accept, "toolcrib tool accept crm_update_deal"),
    ("reject", lifecycle.reject, "toolcrib tool reject crm_update_deal"),
):
    command(tools.app, name, example=example)(made)

for name, made, example in (
    ("publish", publishing.publish, "toolcrib workflow publish follow-up.yaml"),
    ("revert", publishing.revert, "toolcrib workflow revert follow-up 1"),
    ("materialize", publishing.materialize, "toolcrib workflow materialize report --run latest --step found"),
):
    command(workflows.app, name, example=example)(made)

for name, made, example in (
    ("fork", replay.fork, "toolcrib run fork latest --at turn:2 --set model=openai:gpt-5"),
    ("diff", replay.diff, "toolcrib run diff 01j9x2m4 latest"),
    ("export", replay.export, "toolcrib run export latest -o run.bundle"),
    ("replay", replay.replay_run, "toolcrib run replay latest"),
    ("settle", approvals.settle_run, "toolcrib run settle latest t2.c1 --happened"),
):
    command(runs.app, name, example=example)(made)

app = typer.Typer(
    cls=CommandGroup,
    name="toolcrib",
    help="Governed, observable, durable tools for AI agents.",
    epilog=STATUSES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=dict(HELP),
)

_GROUPS: Final[dict[str, type[CommandGroup]]] = {"mcp": mcp_servers.McpCommands, "tool": ToolCommands}
"""Groups that find their commands in a way of their own."""

for name, group in (
    ("account", named.accounts_app),
    ("agent", agents.app),
    ("approval", approvals.app),
    ("attachment", runs.attachments_app),
    ("condition", named.conditions_app),
    ("conversation", agents.conversations_app),
    ("demo", demo.app),
    ("draft", drafts.app),
    ("fragment", named.app),
    ("handler", named.handlers_app),
    ("instance", instances.app),
    ("key", keys.app),
    ("mcp", mcp_servers.app),
    ("model", models.app),
    ("provider", providers.app),
    ("reference", providers.reference_app),
    ("restate", serve.app),
    ("run", runs.app),
    ("secret", keys.secrets_app),
    ("store", store.app),
    ("tool", tools.app),
    ("trigger", triggers.app),
    ("upgrade", replay.app),
    ("workflow", workflows.app),
):
    app.add_typer(group, name=name, cls=_GROUPS.get(name, CommandGroup))


@app.callback()
def root(*, version: Version = False) -> None:
    """Governed, observable, durable tools for AI agents."""


for name, made, example in (
    ("apply", project.apply, "toolcrib apply definitions --plan"),
    ("completion", completion.completion, "toolcrib completion bash --install"),
    ("doctor", settings.doctor, "toolcrib doctor"),
    ("eval", evaluations.evaluate, "toolcrib eval tasks.yaml --agent desk --repeat 3"),
    ("export", project.export, "toolcrib export definitions"),
    ("guard", mcp.guard, "toolcrib guard --approve 'write_*' -- mcp-server-files /data"),
    ("init", project.init, "toolcrib init shop"),
    ("prune", store.prune, "toolcrib prune --older-than 30d --dry-run"),
    ("replay", replay.replay, "toolcrib replay run.bundle"),
    ("schema", settings.schema, "toolcrib schema Run"),
    ("settings", settings.show_settings, "toolcrib settings"),
    ("up", serve.up, "toolcrib up shop.tools:crib"),
    ("worker", serve.worker, "toolcrib worker shop.tools:crib"),
):
    command(app, name, example=example)(made)


def main() -> None:
    """The entry point of the `toolcrib` program."""
    gc.set_threshold(_COLLECTED_AFTER)
    if completion.VARIABLE in os.environ:
        completion.prepare()
    app()
