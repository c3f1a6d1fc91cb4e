"""`toolcrib conversation`: look at conversations with agents, and delete them."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.support.options import DEFAULT_STORE, AsJson, Store
from toolcrib.interfaces.cli.support.session_part import with_crib

if TYPE_CHECKING:
    from toolcrib.contracts import Conversation, ConversationTurn
    from toolcrib.crib import Crib

app = typer.Typer(help="Look at conversations with agents, and delete them.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="CONVERSATION", help="The conversation's id.", show_default=False)]
Agent = Annotated[str | None, typer.Option(metavar="NAME", help="With this agent only.", show_default=False)]
Everybody = Annotated[bool, typer.Option("--everybody", help="Of all principals of the realm.")]
Limit = Annotated[int, typer.Option(min=1, max=1000, help="The most conversations.")]


@app.command("list")
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


@app.command("show")
def show(conversation_id: Id, store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
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


@app.command("delete")
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
