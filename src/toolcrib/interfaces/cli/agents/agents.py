"""`toolcrib agent`: manage and run agents. `toolcrib conversation`: show and remove conversations."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.render.tables import print_tools
from toolcrib.interfaces.cli.support.commands import (
    HelpTexts,
    ItemFormat,
    Resource,
    Table,
    is_unsuccessful,
    print_json,
    prints,
    says,
    shows,
)
from toolcrib.interfaces.cli.support.groups import CommandApp, command
from toolcrib.interfaces.cli.support.inputs import bytes_of, json_object, object_in, telling_lines
from toolcrib.interfaces.cli.support.session import (
    DEFAULT_STORE,
    AsJson,
    DefinitionFile,
    Filter,
    IdOf,
    Sort,
    Store,
    conversation_ids,
    names_of,
    with_crib,
)

if TYPE_CHECKING:
    from toolcrib.contracts import AgentResponse, Conversation, ResolvedTool, ToolRevision
    from toolcrib.crib import Crib
    from toolcrib.interfaces.cli.render.documents import ConversationHistory, Removed

app = CommandApp("Manage and run agents.")

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="The agent's name, or `name@range`.",
        show_default=False,
        autocompletion=names_of("agent"),
    ),
]
Message = Annotated[str, typer.Argument(metavar="MESSAGE", help="What it is asked.", show_default=False)]
About = Annotated[str | None, typer.Option("--message", metavar="TEXT", help="What it would be asked.")]
Talk = Annotated[
    str | None,
    typer.Option(
        "--conversation",
        metavar="ID",
        help="The conversation to continue: its id, its first characters, or latest.",
        show_default=False,
        autocompletion=conversation_ids,
    ),
]
Context = Annotated[
    str | None,
    typer.Option("--context", metavar="JSON", help="Variables that it is told with the message, as a JSON object."),
]
Stream = Annotated[bool, typer.Option("--stream", help="Print the answer while it is generated.")]
Files = Annotated[
    list[Path] | None,
    typer.Option(
        "--file",
        metavar="FILE",
        help="An image, a PDF file, audio or a text that it is shown; may be repeated.",
        show_default=False,
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Skip every call that would write.")]
_ANY = 1_000_000


def print_saved(saved: "ToolRevision") -> None:
    """Print which revision of a tool, agent or workflow was saved."""
    kind = saved.definition.implementation.kind
    print(f"{kind if kind in {'agent', 'workflow'} else 'tool'} {saved.ref} is saved as revision {saved.revision}")
    for warning in saved.warnings:
        print(f"toolcrib: {warning}", file=sys.stderr)


@command(app, "add", example="toolcrib agent add desk.yaml")
@prints(print_saved)
def add(file: DefinitionFile, store: Store = DEFAULT_STORE) -> "ToolRevision":
    """Save an agent from a file, as a new revision.

    Every problem of the definition is reported by line.
    """
    content = object_in(file)
    content.pop("kind", None)
    with telling_lines(file):
        return with_crib(store, lambda crib: crib.agents.save(content), new=True)


_TOOLS: "Table[ResolvedTool]" = Table(
    {
        "Tool": lambda each: each.tool,
        "Availability": lambda each: each.availability,
        "Meant by": lambda each: each.reference,
        "Reason": lambda each: each.reason,
    }
)


@command(app, "tools", example="toolcrib agent tools desk")
@shows(_TOOLS)
async def tools(crib: "Crib", name: Name, message: About = None) -> "Sequence[ResolvedTool]":
    """List the tools that an agent would have.

    Tools that are left out are listed with the reason.
    """
    return await crib.agents.tools(name, message=message)


@command(app, "run", example='toolcrib agent run desk "Which deals has Acme?"')
def run(
    name: Name,
    message: Message,
    *,
    conversation: Talk = None,
    context: Context = None,
    file: Files = None,
    stream: Stream = False,
    dry_run: DryRun = False,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Ask an agent, and print its answer.

    The exit status is 1 if it fails. With --stream --json, each event of the stream is one line of JSON, and the
    response is the last line.

    Variables of --context stay for all later turns of the conversation.
    """
    from toolcrib.contracts import AgentRequest
    from toolcrib.kinds.python.files import File

    files = tuple(File(bytes_of(path), name=path.name).as_input() for path in file or ())

    given = {} if context is None else json_object(context, "--context")

    async def ask(crib: "Crib") -> "AgentResponse":
        talk = None if conversation is None else await crib.ids.find("conversation", conversation)
        request = AgentRequest(message=message, conversation_id=talk, context=given, files=files, dry_run=dry_run)
        if not stream:
            return await crib.executions.execute(name, request)
        from toolcrib.interfaces.cli.render.streams import print_events, spoken

        begun = await crib.executions.submit(name, request)
        await (print_events if as_json else spoken)(crib, begun.run_id)
        return await crib.executions.respond(begun.run_id)

    found = with_crib(store, ask)
    if as_json and stream:
        print(f'{{"response": {found.model_dump_json()}}}')
    elif as_json:
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
        decide = f"toolcrib approval approve {call.approval_id}"
        print(f"{waiting}: {call.name}; decide it with `{decide}`, then `toolcrib run resume {found.run_id}`")
    for call in found.tool_calls:
        print(f"{waiting}: {call.name} is for a client to perform; return its result over REST or in Python")
    if found.conversation_id is not None:
        print(f"conversation: {found.conversation_id}", file=sys.stderr)


def _definition(agent: "ToolRevision") -> object:
    from toolcrib.contracts import AgentDefinition
    from toolcrib.crib.project.writing import tagged

    definition = AgentDefinition.of(agent.definition)
    return tagged(definition, definition.model_dump(mode="json", exclude_defaults=True))


async def _all(crib: "Crib") -> "Sequence[ToolRevision]":
    return (await crib.agents.page(limit=_ANY)).items


AGENTS: "Resource[ToolRevision]" = Resource(
    noun="agent",
    name=Name,
    list=_all,
    get=lambda crib, name: crib.agents.get(name),
    remove=lambda crib, name: crib.agents.remove(name),
    shown=ItemFormat(queried="agents", table=print_tools, data=_definition),
    help=HelpTexts(
        {
            "show": "Print an agent's definition.",
            "remove": "Remove an agent.\n\nIts active runs continue, and its conversations stay readable.",
        },
        {"show": " desk", "remove": " desk"},
    ),
)
AGENTS.add_to(app)

conversations_app = CommandApp("Inspect and remove conversations with agents.")

Id = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="The conversation's id, its first characters, or latest.",
        show_default=False,
        autocompletion=conversation_ids,
    ),
    IdOf("conversation"),
]
Agent = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="With this agent only.", show_default=False, autocompletion=names_of("agent")),
]
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


@command(conversations_app, "list", example="toolcrib conversation list --agent desk")
@shows(_CONVERSATIONS)
async def list_conversations(
    crib: "Crib",
    *,
    agent: Agent = None,
    everybody: Everybody = False,
    filter: Filter = None,
    sort: Sort = None,
    limit: Limit = 20,
) -> "Sequence[Conversation]":
    """List conversations, the newest first."""
    from toolcrib.infrastructure.queries.grammar import Every, equal

    where = Every(() if agent is None else (equal("agent", agent),))
    page = await crib.queries.page(
        "conversations", filter=filter, sort=sort, limit=limit, everybody=everybody, where=where
    )
    return page.items


def _print_conversation(found: "ConversationHistory") -> None:
    conversation, turns = found.conversation, found.turns
    print(f"{conversation.title} ({conversation.agent}, {conversation.status}, {conversation.tokens} tokens)")
    for turn in turns:
        print(f"\n{turn.index}. {turn.run_id} {turn.status}\n> {turn.message}\n{turn.response or ''}".rstrip())


@command(conversations_app, "show", example="toolcrib conversation show latest")
@shows(_print_conversation)
async def show_conversation(crib: "Crib", conversation_id: Id) -> "ConversationHistory":
    """Print a conversation, turn by turn."""
    from toolcrib.interfaces.cli.render.documents import ConversationHistory

    found = await crib.conversations.get(conversation_id)
    turns = await crib.conversations.turns(conversation_id, limit=max(found.turn_count, 1))
    return ConversationHistory(conversation=found, turns=tuple(turns))


@command(conversations_app, "remove", example="toolcrib conversation remove 01j9x2m4")
@says("conversation {found.name} is removed")
async def remove(crib: "Crib", conversation_id: Id) -> "Removed":
    """Remove a conversation.

    The runs of its turns stay in the journal, for audit.
    """
    from toolcrib.interfaces.cli.render.documents import Removed

    await crib.conversations.delete(conversation_id)
    return Removed(kind="conversation", name=conversation_id)
