"""The conversations of a crib: start, continue, list, read, change and delete them.

A turn is a run whose id is derived from the conversation and the turn's number, so only one message can become that
turn; a simultaneous message is refused with a `Conflict`. No new turn starts while a turn runs or waits. Without a
grant for `ai://conversations/all/…`, the conversations of other principals appear as missing. The functions that make
the next revision of a conversation are pure.
"""

import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from toolcrib.agents import SUMMARIZED, Summary, message_of, variables_of
from toolcrib.contracts import (
    WAITING,
    AgentImplementation,
    AgentRequest,
    CallFinished,
    Conflict,
    Conversation,
    ConversationStatus,
    ConversationTurn,
    InvalidInput,
    JsonObject,
    NotFound,
    PermissionDenied,
    Principal,
    ProgressMade,
    Run,
    RunEvent,
    RunRequest,
    RunSuspended,
    ToolRevision,
    canonical,
)
from toolcrib.core.engines import Engine, new_run_id
from toolcrib.core.executor import Clock
from toolcrib.core.policy import permits
from toolcrib.core.runs import response_of, turn_run_id
from toolcrib.crib.container.access import Actor
from toolcrib.infrastructure.queries.grammar import Condition, equal
from toolcrib.infrastructure.store import ConversationFilter, Store
from toolcrib.infrastructure.store.ports.queried_fields import EVERYTHING
from toolcrib.infrastructure.store.ports.records import no_conversation

MOST_CONTEXT_BYTES: Final = 64 * 1024
_LONGEST_TITLE: Final = 60
_SENTENCE_ENDS: Final = (". ", "? ", "! ")


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A turn for which one run may be created; the first one wins."""

    run_id: str
    """The id that the run must have."""
    index: int | None
    """The turn's place; null if the agent keeps no conversations."""
    conversation_id: str | None

    def bind(self, request: RunRequest) -> RunRequest:
        """The request of the run, as this turn of its conversation."""
        return request.model_copy(update={"conversation_id": self.conversation_id, "turn": self.index})


def title_of(message: str) -> str:
    """A title by rule: the first sentence of the first message, cut between words."""
    text = " ".join(message.split())
    ends = [end + 1 for mark in _SENTENCE_ENDS if (end := text.find(mark)) > 0]
    sentence = text[: min(ends)] if ends else text
    if len(sentence) <= _LONGEST_TITLE:
        return sentence.removesuffix(".")
    words = sentence[:_LONGEST_TITLE].rpartition(" ")[0]
    return f"{(words or sentence[:_LONGEST_TITLE]).rstrip(' ,;:-.')}…"


def check_context(variables: JsonObject) -> None:
    """Refuse variables that are more than a conversation carries.

    Raises:
        InvalidInput: They are no JSON, or too many.
    """
    size = len(canonical(variables))
    if size > MOST_CONTEXT_BYTES:
        msg = f"the context has {size} bytes of JSON, at most {MOST_CONTEXT_BYTES} are kept; put large data into a tool"
        raise InvalidInput(msg)


def next_revision(conversation: Conversation, at: datetime, changes: Mapping[str, Any]) -> Conversation:
    """The next revision."""
    moved = {"updated_at": at, "revision": conversation.revision + 1}
    return conversation.model_copy(update={**changes, **moved})


def with_turn_ended(conversation: Conversation, run: Run, at: datetime, summary: Mapping[str, Any]) -> Conversation:
    """The next revision, in which the last turn is counted and has left its variables.

    Args:
        conversation: Its last turn is not counted yet.
        run: The run of that turn, ended.
        at: Now.
        summary: What it has made of the turns that are no longer shown, as fields; empty if nothing.
    """
    return next_revision(
        conversation,
        at,
        {
            "ended_turns": conversation.turn_count,
            "tokens": conversation.tokens + run.all_tokens,
            "shared_context": {**conversation.shared_context, **variables_of(run.request.input)},
            **summary,
        },
    )


def refuse_closed(conversation: Conversation) -> None:
    """Refuse another turn of a conversation that is over.

    Raises:
        Conflict: It is completed or archived.
    """
    if conversation.status != "active":
        msg = (
            f"conversation {conversation.conversation_id!r} is {conversation.status}; set its status to active to "
            "continue it, or begin a new one"
        )
        raise Conflict(msg)


def under_way(conversation: Conversation, run: Run, waiting_for: tuple[str, ...]) -> Conflict:
    """The error for a message, or another change, while a turn is active or waits."""
    turn = f"turn {conversation.turn_count} of conversation {conversation.conversation_id!r}"
    if run.status in WAITING:
        what = f"waits in run {run.run_id!r} ({run.status}) for {', '.join(waiting_for)}"
        return Conflict(f"{turn} {what}; answer that or cancel the run, and send this again")
    if run.ended:
        return Conflict(f"another message has become {turn}, in run {run.run_id!r}; send this again if it still holds")
    return Conflict(f"{turn} is under way in run {run.run_id!r} ({run.status}); wait for its end or cancel it")


def turn_of(run: Run, events: Sequence[RunEvent]) -> ConversationTurn:
    """A turn, read from its run.

    Args:
        run: The run.
        events: Its journal.
    """
    calls = [entry.event.envelope for entry in events if isinstance(entry.event, CallFinished)]
    return ConversationTurn(
        conversation_id=run.request.conversation_id or "",
        index=run.request.turn or 1,
        run_id=run.run_id,
        message=message_of(run.request.input) or "",
        response=response_of(run.output_or_partial),
        status=run.status,
        call_ids=tuple(envelope.call_id for envelope in calls),
        tokens=run.all_tokens,
        duration_s=(events[-1].at - run.created_at).total_seconds() if events else 0.0,
        created_at=run.created_at,
    )


_FIRST_EVENTS: Final = 100
"""A turn recalls before it does anything else, so what it has written of that is among its first events."""


class Conversations:
    """What people and the execution service do with conversations.

    Args:
        store: Has them, and the runs.
        engine: Creates the runs of turns.
        clock: Time.
        actor: The actor of the crib.
    """

    def __init__(self, store: Store, engine: Engine, clock: Clock, actor: Actor) -> None:
        self._store = store
        self._engine = engine
        self._clock = clock
        self._actor = actor

    # Turns ------------------------------------------------------------------------------------------------------------

    async def begin(self, agent: ToolRevision, request: AgentRequest, who: Principal) -> OpenTurn:
        """Determine which turn a message would be. Create its run with `create`, and report its end with `settle`.

        Whatever becomes of the turn, nothing has to be taken back: until its run is created, others can be that turn.

        Args:
            agent: The agent that is asked.
            request: With the message, and the id of the conversation to continue, if any.
            who: The principal that asks.

        Raises:
            NotFound: The conversation is not there, or another's.
            Conflict: A turn of it is active or waits, it is with another agent, or it is closed.
            InvalidInput: The agent keeps no conversations, or the context is too large.
        """
        if not _persists(agent):
            if request.conversation_id is not None:
                msg = f"agent {agent.name!r} keeps no conversations (memory.persist_conversation is false)"
                raise InvalidInput(msg)
            return OpenTurn(new_run_id(), None, None)
        if request.conversation_id is None:
            return await self._first(agent, request, who)
        return await self._next(agent, request.conversation_id, request.context, who)

    async def create(self, turn: OpenTurn, request: RunRequest) -> str:
        """Create the run of a turn, queued; durable on return. Returns its id.

        Raises:
            Conflict: Another message has become this turn; its run is named.
        """
        try:
            return await self._engine.create(turn.bind(request), run_id=turn.run_id)
        except Conflict:
            run = await self._store.journal.run(turn.run_id)
            found = await self._store.conversations.get(run.realm, turn.conversation_id or "")
            if found is None:
                raise
            raise await self._under_way(found, run) from None

    async def settle(self, run: Run) -> None:
        """Count an ended turn; does nothing for other runs. If it is not called, a later operation does the same."""
        known = run.request.conversation_id
        found = await self._store.conversations.get(run.realm, known) if known and run.request.turn else None
        if found is not None:
            await self._settle_last_turn(found)

    async def _first(self, agent: ToolRevision, request: AgentRequest, who: Principal) -> OpenTurn:
        check_context(request.context)
        now = self._clock.now()
        conversation = Conversation(
            conversation_id=f"conv_{secrets.token_hex(16)}",
            realm=who.realm,
            agent=agent.name,
            principal=who.id,
            title=title_of(request.message or ""),
            turn_count=1,
            created_at=now,
            updated_at=now,
        )
        await self._store.conversations.add(conversation)
        return _open(conversation)

    async def _next(self, agent: ToolRevision, conversation_id: str, given: JsonObject, who: Principal) -> OpenTurn:
        while True:
            found = await self._settle_last_turn(await self._of(conversation_id, who))
            if found.agent != agent.name:
                msg = (
                    f"conversation {conversation_id!r} is with agent {found.agent!r}, and this is {agent.name!r}; "
                    "begin a new one with it"
                )
                raise Conflict(msg)
            refuse_closed(found)
            check_context({**found.shared_context, **given})
            if found.ended_turns < found.turn_count:
                await self._refuse_open(found)
                return _open(found)  # its run was never created: this message may be that turn
            claimed = next_revision(found, self._clock.now(), {"turn_count": found.turn_count + 1})
            with suppress(Conflict):
                await self._store.conversations.replace(claimed)
                return _open(claimed)

    # Looking and changing ---------------------------------------------------------------------------------------------

    async def list(
        self,
        *,
        agent: str | None = None,
        status: ConversationStatus | None = None,
        everybody: bool = False,
        before: str | None = None,
        limit: int = 50,
    ) -> Sequence[Conversation]:
        """A page of conversations, newest first.

        Args:
            agent: With this agent only.
            status: In this status only.
            everybody: Include all principals of the realm, not only the caller.
            before: The last id of the page before.
            limit: At most so many.

        Raises:
            PermissionDenied: The caller may not.
            NotFound: There is no conversation `before`.

        Example:
            await desk("Which deals has Acme?")
            for conversation in await crib.conversations.list(agent="desk", limit=10):
                print(conversation.title, conversation.turn_count)
        """
        who = await self._actor.authorize()
        _demand(who, "all" if everybody else "own", "read")
        wanted = ConversationFilter(None if everybody else who.id, agent, status)
        found = await self._store.conversations.list(who.realm, wanted, before=before, limit=limit)
        return await self.settle_turns(found)

    def readable(self, who: Principal, *, everybody: bool) -> Condition:
        """What is true of the conversations of a principal, or of those of everybody, if it may read them.

        Raises:
            PermissionDenied: It may not.
        """
        _demand(who, "all" if everybody else "own", "read")
        return EVERYTHING if everybody else equal("principal", who.id)

    async def settle_turns(self, found: Sequence[Conversation]) -> Sequence[Conversation]:
        """Conversations with their last turns counted, if those have ended."""
        return [await self._settle_last_turn(conversation) for conversation in found]

    async def get(self, conversation_id: str) -> Conversation:
        """A conversation.

        Raises:
            NotFound: It does not exist, or belongs to another principal.
            PermissionDenied: The caller may not read conversations.

        Example:
            answer = await desk("Which deals has Acme?")
            conversation = await crib.conversations.get(answer.conversation_id)
            print(conversation.title, conversation.status)
        """
        return await self._require_access(conversation_id, await self._actor.authorize(), "read")

    async def own(self, conversation_id: str) -> Conversation:
        """A conversation of the caller, which it may continue; grants on other conversations do not count.

        Raises:
            NotFound: It does not exist, or belongs to another principal.

        Example:
            answer = await desk("Which deals has Acme?")
            conversation = await crib.conversations.own(answer.conversation_id)
        """
        return await self._of(conversation_id, await self._actor.authorize())

    async def turns(self, conversation_id: str, *, after: int = 0, limit: int = 50) -> Sequence[ConversationTurn]:
        """The turns after a number, in order; turns whose run was deleted are left out.

        Raises:
            NotFound: There is no such conversation, or it is another's.
            PermissionDenied: The caller may not read conversations.

        Example:
            answer = await desk("Which deals has Acme?")
            for turn in await crib.conversations.turns(answer.conversation_id):
                print(turn.message, turn.response, turn.tokens)
        """
        found = await self.get(conversation_id)
        places = range(after + 1, min(found.turn_count, after + limit) + 1)
        runs = [await self._run(found, place) for place in places]
        return [await self._turn(run) for run in runs if run is not None]

    async def change(
        self,
        conversation_id: str,
        *,
        title: str | None = None,
        status: ConversationStatus | None = None,
        shared_context: JsonObject | None = None,
    ) -> Conversation:
        """Set the title, the status or the variables; what is null stays.

        Raises:
            NotFound: It does not exist, or belongs to another principal.
            PermissionDenied: The caller may not read conversations.
            InvalidInput: The variables are too large.

        Example:
            answer = await desk("Which deals has Acme?")
            await crib.conversations.change(answer.conversation_id, title="Deals of Acme", status="archived")
        """
        who = await self._actor.authorize()
        given = {"title": title, "status": status, "shared_context": shared_context}
        changes = {name: value for name, value in given.items() if value is not None}
        if shared_context is not None:
            check_context(shared_context)
        while True:
            found = await self._settle_last_turn(await self._of(conversation_id, who))
            _demand(who, "own", "read")
            following = next_revision(found, self._clock.now(), changes)
            with suppress(Conflict):
                await self._store.conversations.replace(following)
                return following

    async def delete(self, conversation_id: str) -> None:
        """Delete a conversation. The runs of its turns stay in the journal, for audit.

        Raises:
            NotFound: It does not exist, or belongs to another principal.
            PermissionDenied: The caller may not delete conversations.
            Conflict: A turn is active or waits.

        Example:
            answer = await desk("Which deals has Acme?")
            await crib.conversations.delete(answer.conversation_id)
        """
        found = await self._require_access(conversation_id, await self._actor.authorize(), "delete")
        await self._refuse_open(found)
        if not await self._store.conversations.remove(found.realm, conversation_id):
            raise no_conversation(conversation_id)

    # Inside -----------------------------------------------------------------------------------------------------------

    async def _of(self, conversation_id: str, who: Principal) -> Conversation:
        """A conversation of the caller's own."""
        found = await self._store.conversations.get(who.realm, conversation_id)
        if found is None or found.principal != who.id:
            raise no_conversation(conversation_id)
        return found

    async def _require_access(self, conversation_id: str, who: Principal, verb: str) -> Conversation:
        """A conversation of the caller's own, or one that the caller has a grant for."""
        found = await self._store.conversations.get(who.realm, conversation_id)
        if found is None or (found.principal != who.id and not permits(who.grants, _uri("all", verb))):
            raise no_conversation(conversation_id)
        if found.principal == who.id:
            _demand(who, "own", verb)
        return await self._settle_last_turn(found)

    async def _settle_last_turn(self, found: Conversation) -> Conversation:
        """The conversation with its last turn counted, if that has ended."""
        while found.ended_turns < found.turn_count:
            run = await self._run(found, found.turn_count)
            if run is None or not run.ended:
                break
            following = with_turn_ended(found, run, self._clock.now(), await self._summary(run))
            try:
                await self._store.conversations.replace(following)
            except Conflict:
                known = await self._store.conversations.get(found.realm, found.conversation_id)
                if known is None:
                    raise no_conversation(found.conversation_id) from None
                found = known
            else:
                found = following
        return found

    async def _summary(self, run: Run) -> Mapping[str, Any]:
        """What a turn knew of the turns that it no longer showed, as fields of the conversation."""
        for entry in await self._store.journal.events(run.run_id, limit=_FIRST_EVENTS):
            if isinstance(entry.event, ProgressMade) and entry.event.key == SUMMARIZED:
                summary = Summary.of(entry.event.data)
                if summary is not None:
                    text = (await self._store.blobs.get(run.realm, summary.digest)).decode()
                    return {"summary": text, "summarized_turns": summary.turns}
        return {}

    async def _refuse_open(self, found: Conversation) -> None:
        if found.ended_turns < found.turn_count:
            run = await self._run(found, found.turn_count)
            if run is not None and not run.ended:
                raise await self._under_way(found, run)

    async def _under_way(self, found: Conversation, run: Run) -> Conflict:
        events = await self._store.journal.events(run.run_id, after=max(run.events - 1, 0))
        last = events[-1].event if events else None
        return under_way(found, run, last.waiting_for if isinstance(last, RunSuspended) else ())

    async def _run(self, found: Conversation, turn: int) -> Run | None:
        try:
            return await self._store.journal.run(turn_run_id(found.conversation_id, turn))
        except NotFound:
            return None

    async def _turn(self, run: Run) -> ConversationTurn:
        return turn_of(run, await self._store.journal.events(run.run_id))


def _open(conversation: Conversation) -> OpenTurn:
    index = conversation.turn_count
    run_id = turn_run_id(conversation.conversation_id, index)
    return OpenTurn(run_id, index, conversation.conversation_id)


def _persists(agent: ToolRevision) -> bool:
    implementation = agent.definition.implementation
    return isinstance(implementation, AgentImplementation) and implementation.memory.persist_conversation


def _uri(whose: str, verb: str) -> str:
    return f"ai://conversations/{whose}/{verb}"


def _demand(who: Principal, whose: str, verb: str) -> None:
    uri = _uri(whose, verb)
    if not permits(who.grants, uri):
        msg = f"principal {who.id!r} has no grant for {uri!r}; ask the realm's owner for it"
        raise PermissionDenied(msg)
