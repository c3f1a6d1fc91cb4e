"""`toolcrib agent`: keep agents, and ask them.

`toolcrib conversation`: look at conversations with agents, and delete them.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.support.inputs import object_in, to_contract
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, AsJson, Store, with_crib

if TYPE_CHECKING:
    from toolcrib.contracts import AgentResponse, ToolRevision
    from toolcrib.crib import Crib

app = typer.Typer(help="Manage and run agents.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The agent's name, or `name@range`.", show_default=False)]
File = Annotated[Path, typer.Argument(metavar="FILE.yaml", help="The definition, as YAML or JSON.")]
Message = Annotated[str, typer.Argument(metavar="MESSAGE", help="What it is asked.", show_default=False)]
About = Annotated[str | None, typer.Option("--message", metavar="TEXT", help="What it would be asked.")]
Talk = Annotated[
    str | None, typer.Option("--conversation", metavar="ID", help="The conversation that goes on.", show_default=False)
]
Stream = Annotated[bool, typer.Option("--stream", help="Print the answer while it is generated.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Skip every call that would write.")]
_ANY = 1_000_000


@app.command("add")
def add(file: File, store: Store = DEFAULT_STORE) -> None:
    """Store an agent as a new revision."""
    from toolcrib.contracts import AgentDefinition

    agent = to_contract(AgentDefinition, object_in(file), f"agent {file}")
    saved = with_crib(store, lambda crib: crib.agents.save(agent), new=True)
    print(f"agent {saved.ref} is saved as revision {saved.revision}")
    for warning in saved.warnings:
        print(f"toolcrib: {warning}", file=sys.stderr)


@app.command("list")
def list_agents(store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the agents."""

    async def read(crib: "Crib") -> "list[ToolRevision]":
        return list((await crib.agents.page(limit=_ANY)).items)

    found = with_crib(store, read)
    if as_json:
        print(json.dumps([_definition(agent) for agent in found], indent=2, ensure_ascii=False))
        return
    from toolcrib.interfaces.cli.render.tables import print_tools

    print_tools(found)


@app.command("show")
def show(name: Name, store: Store = DEFAULT_STORE) -> None:
    """Print an agent's definition."""
    found = with_crib(store, lambda crib: crib.agents.get(name))
    print(json.dumps(_definition(found), indent=2, ensure_ascii=False))


@app.command("tools")
def tools(name: Name, message: About = None, store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the tools that an agent would have, and those left out, with the reason."""
    found = with_crib(store, lambda crib: crib.agents.tools(name, message=message))
    if as_json:
        print(json.dumps([tool.model_dump(mode="json") for tool in found], indent=2, ensure_ascii=False))
        return
    from toolcrib.interfaces.cli.render.tables import print_rows

    rows = [(tool.tool, tool.availability, tool.reference, tool.reason or "") for tool in found]
    print_rows(("Tool", "Availability", "Meant by", "Reason"), rows)


@app.command("remove")
def remove(name: Name, store: Store = DEFAULT_STORE) -> None:
    """Remove an agent from the catalogue; active runs continue, and its conversations stay readable."""
    with_crib(store, lambda crib: crib.agents.remove(name))
    print(f"agent {name} is removed")


@app.command("run")
def run(
    name: Name,
    message: Message,
    *,
    conversation: Talk = None,
    stream: Stream = False,
    dry_run: DryRun = False,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Ask an agent, and print its answer; with --json the whole execution. One that fails ends with status 1."""
    from toolcrib.contracts import AgentRequest

    request = AgentRequest(message=message, conversation_id=conversation, dry_run=dry_run)

    async def ask(crib: "Crib") -> "AgentResponse":
        if not stream or as_json:
            return await crib.executions.execute(name, request)
        from toolcrib.interfaces.cli.render.streams import spoken

        begun = await crib.executions.submit(name, request)
        await spoken(crib, begun.run_id)
        return await crib.executions.respond(begun.run_id)

    found = with_crib(store, ask)
    if as_json:
        print(found.model_dump_json(indent=2))
    else:
        _print(found, said=stream)
    if found.status in {"failed", "incomplete", "timed_out", "cancelled"}:
        raise typer.Exit(1)


def _print(found: "AgentResponse", *, said: bool) -> None:
    """The answer, and on stderr what there is to know besides."""
    if found.response and not said:
        print(found.response)
    for warning in found.warnings:
        print(f"toolcrib: {warning}", file=sys.stderr)
    if found.error is not None:
        print(f"toolcrib: {found.error.code}: {found.error.message}", file=sys.stderr)
        print(f"toolcrib: what it did: toolcrib run trace {found.run_id}", file=sys.stderr)
    waiting = f"run {found.run_id} is {found.status.replace('_', ' ')}"
    for call in found.approvals:
        told = f"toolcrib approval approve {call.approval_id}"
        print(f"{waiting}: {call.name}; decide it with `{told}`, then `toolcrib run resume {found.run_id}`")
    for call in found.tool_calls:
        print(f"{waiting}: {call.name} is for a client to perform; bring what came of it over REST or in Python")
    if found.conversation_id is not None:
        print(f"conversation: {found.conversation_id}", file=sys.stderr)


def _definition(agent: "ToolRevision") -> object:
    from toolcrib.contracts import AgentDefinition

    return AgentDefinition.of(agent.definition).model_dump(mode="json", exclude_defaults=True)


if TYPE_CHECKING:
    from toolcrib.contracts import Conversation, ConversationTurn
    from toolcrib.crib import Crib

conversations_app = typer.Typer(help="Inspect and delete conversations with agents.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="CONVERSATION", help="The conversation's id.", show_default=False)]
Agent = Annotated[str | None, typer.Option(metavar="NAME", help="With this agent only.", show_default=False)]
Everybody = Annotated[bool, typer.Option("--everybody", help="Of all principals of the realm.")]
Limit = Annotated[int, typer.Option(min=1, max=1000, help="The most conversations.")]


@conversations_app.command("list")
def list_conversations(
    agent: Agent = None,
    everybody: Everybody = False,
    limit: Limit = 20,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """List conversations, the newest first."""
    found = with_crib(store, lambda crib: crib.conversations.list(agent=agent, everybody=everybody, limit=limit))
    if as_json:
        print(json.dumps([each.model_dump(mode="json") for each in found], indent=2, ensure_ascii=False))
        return
    from toolcrib.interfaces.cli.render.tables import print_rows

    columns = ("Conversation", "Agent", "Status", "Turns", "Begun (UTC)", "Title")
    print_rows(columns, [_row(conversation) for conversation in found])


@conversations_app.command("show")
def show_conversation(conversation_id: Id, store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Print a conversation: what was said, turn by turn."""

    async def read(crib: "Crib") -> "tuple[Conversation, list[ConversationTurn]]":
        found = await crib.conversations.get(conversation_id)
        turns = await crib.conversations.turns(conversation_id, limit=max(found.turn_count, 1))
        return found, list(turns)

    found, turns = with_crib(store, read)
    if as_json:
        told = {
            "conversation": found.model_dump(mode="json"),
            "turns": [turn.model_dump(mode="json") for turn in turns],
        }
        print(json.dumps(told, indent=2, ensure_ascii=False))
        return
    print(f"{found.title} ({found.agent}, {found.status}, {found.tokens} tokens)")
    for turn in turns:
        print(f"\n{turn.index}. {turn.run_id} {turn.status}\n> {turn.message}\n{turn.response or ''}".rstrip())


@conversations_app.command("delete")
def delete(conversation_id: Id, store: Store = DEFAULT_STORE) -> None:
    """Delete a conversation; the runs of its turns stay in the journal, for audit."""
    with_crib(store, lambda crib: crib.conversations.delete(conversation_id))
    print(f"conversation {conversation_id} is deleted")


def _row(conversation: "Conversation") -> tuple[str, ...]:
    return (
        conversation.conversation_id,
        conversation.agent,
        conversation.status,
        str(conversation.turn_count),
        conversation.created_at.strftime("%Y-%m-%d %H:%M"),
        conversation.title,
    )
