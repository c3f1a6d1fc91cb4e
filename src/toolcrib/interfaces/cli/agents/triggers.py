"""Triggers: what starts agents, workflows and tools without a person."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.support.commands import HelpTexts, ItemFormat, Resource, Table, shows
from toolcrib.interfaces.cli.support.groups import CommandApp, command
from toolcrib.interfaces.cli.support.inputs import object_in, to_contract
from toolcrib.interfaces.cli.support.session import names_of

if TYPE_CHECKING:
    from toolcrib.contracts import JsonObject, TriggerDefinition, TriggerStart, TriggerState
    from toolcrib.crib import Crib

app = CommandApp("Manage what starts runs: times, webhooks, other runs.")

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Its name.", show_default=False, autocompletion=names_of("trigger"))
]
Event = Annotated[
    Path | None, typer.Option("--event", metavar="FILE", help="YAML or JSON that its input reads as ${event.…}.")
]


async def _add(crib: "Crib", content: "JsonObject") -> "TriggerDefinition":
    from toolcrib.contracts import TriggerDefinition

    fields = {name: value for name, value in content.items() if name != "kind"}
    trigger = to_contract(TriggerDefinition, fields, f"trigger {content.get('name')!r}")
    await crib.triggers.save(trigger)
    return trigger


def _source(trigger: "TriggerDefinition") -> str:
    from toolcrib.contracts import CronSource, WebhookSource

    if isinstance(trigger.when, CronSource):
        return f"{trigger.when.cron} {trigger.when.timezone}"
    if isinstance(trigger.when, WebhookSource):
        return f"webhook ({trigger.when.signature})"
    return f"end of {trigger.when.tool}"


TRIGGERS: "Resource[TriggerDefinition]" = Resource(
    noun="trigger",
    name=Name,
    list=lambda crib: crib.triggers.list(),
    get=lambda crib, name: crib.triggers.get(name),
    add=_add,
    remove=lambda crib, name: crib.triggers.remove(name),
    shown=ItemFormat(
        queried="triggers",
        table=Table(
            {
                "Name": lambda each: each.name,
                "On": _source,
                "Starts": lambda each: each.start,
                "As": lambda each: each.account,
                "Enabled": lambda each: each.enabled,
            }
        ),
    ),
    help=HelpTexts({}, {"show": " nightly", "add": " nightly.yaml", "remove": " nightly"}),
)
TRIGGERS.add_to(app)


def _print_state(found: "TriggerState") -> None:
    print(f"next: {found.next_at or ('-' if found.enabled else 'paused')}")
    print(f"last: {found.last_at or '-'} {found.last_run_id or ''} {found.last_status or ''}".rstrip())
    print(f"started: {found.started}, left out: {found.skipped}")
    if found.problem is not None:
        print(f"problem: {found.problem}")


@command(app, "state", example="toolcrib trigger state nightly")
@shows(_print_state)
async def state(crib: "Crib", name: Name) -> "TriggerState":
    """Print how a trigger stands: next time, last run, last problem."""
    return await crib.triggers.state(name)


@command(app, "pause", example="toolcrib trigger pause nightly")
@shows("trigger {found.name} is paused")
async def pause(crib: "Crib", name: Name) -> "TriggerState":
    """Have a trigger start nothing until it is resumed."""
    await crib.triggers.pause(name)
    return await crib.triggers.state(name)


@command(app, "resume", example="toolcrib trigger resume nightly")
@shows("trigger {found.name} is resumed")
async def resume(crib: "Crib", name: Name) -> "TriggerState":
    """Have a paused trigger start runs again.

    What has passed meanwhile is not caught up.
    """
    await crib.triggers.resume(name)
    return await crib.triggers.state(name)


def _print_start(found: "TriggerStart") -> None:
    print(f"{found.outcome}: run {found.run_id}" if found.run_id else f"{found.outcome}: {found.problem}")


@command(app, "fire", example="toolcrib trigger fire nightly")
@shows(_print_start, fails=lambda found: found.outcome == "failed")
async def fire(crib: "Crib", name: Name, *, event: Event = None) -> "TriggerStart":
    """Start now what a trigger starts.

    toolcrib up or a worker drives the run.
    """
    return await crib.triggers.fire(name, None if event is None else object_in(event))
