"""What an agent remembers of a conversation: the turns before, as its memory's strategy and the model's room allow.

`full` shows all turns, `sliding_window` the last ones, `summary` those and a summary of what came before, `none`
nothing. Turns that do not fit give way: first their results are shortened, then the oldest fall out, in jumps (see
`window`). The decision is written down in the run; what was said is not: it stands in the journals of the turns.
"""

from collections.abc import Mapping

from toolcrib.agents.history.prior_turns import RECALLED, SUMMARIZED, Past, Summary
from toolcrib.agents.history.variables import Begun, Recalled, message_of, variables_of
from toolcrib.agents.history.window import Window, moved
from toolcrib.agents.prepare.agentic_tool import Models
from toolcrib.agents.prepare.summaries import summarize
from toolcrib.contracts import AgentImplementation, Json, JsonObject
from toolcrib.core.runs import RunContext
from toolcrib.infrastructure.store import Store
from toolcrib.llm import Message, user
from toolcrib.llm.base.usage import estimated_tokens

_SUMMARY_TOKENS = 1500
"""Room that is left for a summary."""


class Memory:
    """Remembers the conversations of agents; see `Recall`.

    Args:
        store: Has the conversations, and the journals of their turns.
        models: Opens models, for summaries.
    """

    def __init__(self, store: Store, models: Models) -> None:
        self._store = store
        self._models = models

    async def begun_with(self, context: RunContext) -> Begun:
        """The first message of the conversation, and what was found in it; see `Recall`."""
        if not context.request.conversation_id or context.request.turn in {None, 1}:
            return Begun()
        past = Past(self._store.journal, context)
        return Begun(message_of((await past.turn(1)).asked), await past.found())

    async def __call__(self, context: RunContext, agent: AgentImplementation, room: int | None) -> Recalled:
        """What the agent of a run remembers; nothing in a run that is no turn of a conversation.

        Args:
            context: The run.
            agent: Its agent.
            room: Tokens that are left for what is remembered; null for any number.
        """
        if context.request.turn is None or context.request.conversation_id is None:
            return Recalled()
        past = Past(self._store.journal, context)

        async def look() -> Json:
            return await self._look(context, agent, past, room)

        noted: JsonObject = await context.once(RECALLED, "recalled", look)
        if "first" not in noted:
            return Recalled(variables=noted["variables"])
        if noted["tainted"] and context.tainted_by is None:
            context.tainted_by = "what was said before in the conversation"
        window = Window(noted["first"], noted["short"])
        summary = await self._summary(context, agent, past, window)
        return Recalled(messages=(*summary, *await _shown(past, window)), variables=noted["variables"])

    async def _look(self, context: RunContext, agent: AgentImplementation, past: Past, room: int | None) -> Json:
        """The window, and the variables that nothing in it tells."""
        shared = await self._shared(context)
        noted: JsonObject = {"turn": past.upcoming, "found": list(await past.found())}
        if agent.memory.strategy == "none":
            return {**noted, "variables": _untold(shared, {}, context)}
        before = await past.window()
        turns = {place: await past.turn(place) for place in range(before.first, past.upcoming)}
        window = moved(
            before,
            {place: turn.size for place, turn in turns.items()},
            past.upcoming,
            most_turns=None if agent.memory.strategy == "full" else agent.memory.max_conversation_turns,
            room=_room(agent, room, shared),
        )
        told: JsonObject = {}
        for place in range(window.first, past.upcoming):
            told |= turns[place].told
        return {
            **noted,
            "first": window.first,
            "short": window.short,
            "tainted": await past.tainted(window.first),
            "variables": _untold(shared, told, context),
        }

    async def _shared(self, context: RunContext) -> JsonObject:
        found = await self._store.conversations.get(context.run.realm, context.request.conversation_id or "")
        return found.shared_context if found is not None else {}

    async def _summary(
        self, context: RunContext, agent: AgentImplementation, past: Past, window: Window
    ) -> tuple[Message, ...]:
        """The message with the summary of what has fallen out, if there is any."""
        if agent.memory.strategy != "summary" or window.first == 1:
            return ()
        summary = await past.summary()
        old = (await context.kept(summary.digest)).decode() if summary is not None else ""
        done, wanted = summary.turns if summary is not None else 0, window.first - 1
        if done < wanted:
            fallen = [message for place in range(done + 1, window.first) for message in (await past.turn(place)).short]
            made = await summarize(context, agent, self._models(agent.llm), old, fallen)
            if made is not None:
                summary, old = Summary(wanted, await context.keep(made.encode())), made
        if summary is None:
            return ()
        await context.emit(SUMMARIZED, "summarized", {"turns": summary.turns, "summary": summary.digest})
        return (user(f"Summary of the first {summary.turns} turns of this conversation:\n{old}"),)


async def _shown(past: Past, window: Window) -> tuple[Message, ...]:
    messages: tuple[Message, ...] = ()
    for place in range(window.first, past.upcoming):
        turn = await past.turn(place)
        messages = (*messages, *(turn.short if place < window.short else turn.messages))
    return messages


def _room(agent: AgentImplementation, room: int | None, shared: JsonObject) -> int | None:
    """The tokens that turns may have, of those that are left for all that is remembered."""
    memory = agent.memory
    if room is not None:
        room -= estimated_tokens((user(str(shared)),)) + (_SUMMARY_TOKENS if memory.strategy == "summary" else 0)
    known = [most for most in (room, memory.max_context_tokens) if most is not None]
    return min(known, default=None)


def _untold(shared: JsonObject, told: Mapping[str, Json], context: RunContext) -> JsonObject:
    """The variables of the conversation that the model has not been told in what it is shown."""
    own = variables_of(context.request.input)
    return {
        name: value for name, value in shared.items() if name not in own and (name not in told or told[name] != value)
    }
