"""`toolcrib agent`: manage and ask agents. `toolcrib conversation`: show and delete conversations."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.render.tables import print_tools
from toolcrib.interfaces.cli.support.commands import (
    ItemFormat,
    Resource,
    Table,
    is_unsuccessful,
    print_json,
    says,
    shows,
)
from toolcrib.interfaces.cli.support.inputs import object_in, telling_lines
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, AsJson, IdOf, Store, with_crib

if TYPE_CHECKING:
    from toolcrib.contracts import AgentResponse, Conversation, ConversationTurn, ResolvedTool, ToolRevision
    from toolcrib.crib import Crib

app = typer.Typer(help="Manage and run agents.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The agent's name, or `name@range`.", show_default=False)]
File = Annotated[Path, typer.Argument(metavar="FILE.yaml", help="The definition, as YAML or JSON.")]
Message = Annotated[str, typer.Argument(metavar="MESSAGE", help="What it is asked.", show_default=False)]
About = Annotated[str | None, typer.Option("--message", metavar="TEXT", help="What it would be asked.")]
Talk = Annotated[
    str | None, typer.Option("--conversation", metavar="ID", help="The conversation to continue.", show_default=False)
]
Stream = Annotated[bool, typer.Option("--stream", help="Print the answer while it is generated.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Skip every call that would write.")]
_ANY = 1_000_000


@app.command("add")
def add(file: File, store: Store = DEFAULT_STORE) -> None:
    """Store an agent as a new revision; every problem of the definition is reported by line."""
    content = object_in(file)
    with telling_lines(file):
        saved = with_crib(store, lambda crib: crib.agents.save(content), new=True)
    print(f"agent {saved.ref} is saved as revision {saved.revision}")
    for warning in saved.warnings:
        print(f"toolcrib: {warning}", file=sys.stderr)


_TOOLS: "Table[ResolvedTool]" = Table(
    {
        "Tool": lambda each: each.tool,
        "Availability": lambda each: each.availability,
        "Meant by": lambda each: each.reference,
        "Reason": lambda each: each.reason,
    }
)


@app.command("tools")
@shows(_TOOLS)
async def tools(crib: "Crib", name: Name, message: About = None) -> "Sequence[ResolvedTool]":
    """List the tools that an agent would have, and those left out, with the reason."""
    return await crib.agents.tools(name, message=message)


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
        print_json(found)
    else:
        _print(found, streamed=stream)
    if is_unsuccessful(found):
        raise typer.Exit(1)


def _print(found: "AgentResponse", *, streamed: bool) -> None:
    """The answer, and on stderr what there is to know besides."""
    if found.response and not streamed:
        print(found.response)
    for warning in found.warnings:
        print(f"toolcrib: {warning}", file=sys.stderr)
    if found.error is not None:
        print(f"toolcrib: {found.error.code}: {found.error.message}", file=sys.stderr)
        print(f"toolcrib: what it did: toolcrib run trace {found.run_id}", file=sys.stderr)
    waiting = f"run {found.run_id} is {found.status.replace('_', ' ')}"
    for call in found.approvals:
        command = f"toolcrib approval approve {call.approval_id}"
        print(f"{waiting}: {call.name}; decide it with `{command}`, then `toolcrib run resume {found.run_id}`")
    for call in found.tool_calls:
        print(f"{waiting}: {call.name} is for a client to perform; bring what came of it over REST or in Python")
    if found.conversation_id is not None:
        print(f"conversation: {found.conversation_id}", file=sys.stderr)


def _definition(agent: "ToolRevision") -> object:
    from toolcrib.contracts import AgentDefinition

    return AgentDefinition.of(agent.definition).model_dump(mode="json", exclude_defaults=True)


async def _all(crib: "Crib") -> "Sequence[ToolRevision]":
    return (await crib.agents.page(limit=_ANY)).items


AGENTS: "Resource[ToolRevision]" = Resource(
    noun="agent",
    name=Name,
    list=_all,
    table=print_tools,
    get=lambda crib, name: crib.agents.get(name),
    one=ItemFormat(data=_definition),
    remove=lambda crib, name: crib.agents.remove(name),
    help={
        "list": "List the agents.",
        "show": "Print an agent's definition.",
        "remove": "Remove an agent from the catalogue; active runs continue, and its conversations stay readable.",
    },
)
AGENTS.add_to(app)

conversations_app = typer.Typer(help="Inspect and delete conversations with agents.", no_args_is_help=True)

Id = Annotated[
    str,
    typer.Argument(
        metavar="CONVERSATION", help="The conversation's id, its first characters, or latest.", show_default=False
    ),
    IdOf("conversation"),
]
Agent = Annotated[str | None, typer.Option(metavar="NAME", help="With this agent only.", show_default=False)]
Everybody = Annotated[bool, typer.Option("--everybody", help="Of all principals of the realm.")]
Limit = Annotated[int, typer.Option(min=1, max=1000, help="The most conversations.")]


_CONVERSATIONS: "Table[Conversation]" = Table(
    {
        "Conversation": lambda each: each.conversation_id,
        "Agent": lambda each: each.agent,
        "Status": lambda each: each.status,
        "Turns": lambda each: each.turn_count,
        "Begun (UTC)": lambda each: f"{each.created_at:%Y-%m-%d %H:%M}",
        "Title": lambda each: each.title,
    }
)


@conversations_app.command("list")
@shows(_CONVERSATIONS)
async def list_conversations(
    crib: "Crib", agent: Agent = None, everybody: Everybody = False, limit: Limit = 20
) -> "Sequence[Conversation]":
    """List conversations, the newest first."""
    return await crib.conversations.list(agent=agent, everybody=everybody, limit=limit)


def _print_conversation(found: "tuple[Conversation, Sequence[ConversationTurn]]") -> None:
    conversation, turns = found
    print(f"{conversation.title} ({conversation.agent}, {conversation.status}, {conversation.tokens} tokens)")
    for turn in turns:
        print(f"\n{turn.index}. {turn.run_id} {turn.status}\n> {turn.message}\n{turn.response or ''}".rstrip())


@conversations_app.command("show")
@shows(_print_conversation, data=lambda found: {"conversation": found[0], "turns": found[1]})
async def show_conversation(crib: "Crib", conversation_id: Id) -> "tuple[Conversation, Sequence[ConversationTurn]]":
    """Print a conversation: what was said, turn by turn."""
    found = await crib.conversations.get(conversation_id)
    return found, await crib.conversations.turns(conversation_id, limit=max(found.turn_count, 1))


@conversations_app.command("delete")
@says("conversation {conversation_id} is deleted")
async def delete(crib: "Crib", conversation_id: Id) -> None:
    """Delete a conversation; the runs of its turns stay in the journal, for audit."""
    await crib.conversations.delete(conversation_id)
