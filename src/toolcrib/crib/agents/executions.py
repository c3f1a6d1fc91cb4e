"""Executions of agents and agentic tools: start one, send client results, and read its state.

An execution is a run, and each response is derived from its journal. No state is kept between requests, so each may
reach a different process.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from toolcrib.contracts import (
    AgenticImplementation,
    AgentRequest,
    AgentResponse,
    Attachment,
    Conflict,
    FileInput,
    InvalidInput,
    Json,
    JsonObject,
    NotFound,
    Principal,
    ReturnedCall,
    Run,
    RunFinished,
    RunRequest,
    RunResult,
    ToolDefinition,
    Unavailable,
)
from toolcrib.core.engines import DriveResult, new_run_id
from toolcrib.core.runs import (
    BEGINNING,
    CallTraceback,
    Result,
    StreamMessage,
    calls_of,
    listen,
    read_response,
    read_tree,
    result_of,
    signals_for,
    tracebacks_of,
    turn_run_id,
)
from toolcrib.crib.agents.conversations import Conversations
from toolcrib.crib.agents.message_files import MessageFiles
from toolcrib.crib.agents.questions import Questions
from toolcrib.crib.container.access import Actor, RunVerb, run_for
from toolcrib.crib.container.container import CribServices
from toolcrib.crib.container.requests import refusal_of_run, request_of


class Executions:
    """The executions of a crib.

    Args:
        parts: The parts of the crib.
        conversations: The conversations of the crib.
        actor: The actor of the crib.
        questions: Takes messages that answer what a run asks.
    """

    def __init__(self, parts: CribServices, conversations: Conversations, actor: Actor, questions: Questions) -> None:
        self._parts = parts
        self._journal = parts.outside.store.journal
        self._conversations = conversations
        self._actor = actor
        self._questions = questions
        self._files = MessageFiles(parts.outside.store.blobs, self.read_attachment)

    async def execute(self, agent: str, request: AgentRequest) -> AgentResponse:
        """As `ask`, with the answer as REST shows it: ask an agent, or send it results of client calls, and wait.

        A run for which this process lacks a Python function is driven by a worker on the same store. Without a worker,
        or if this process lacks something else, it stays queued, and the answer says for what.

        Args:
            agent: `name` or `name@range` of an agent or an agentic tool.
            request: A message (or params), or results of calls that wait for the client.

        Raises:
            NotFound: No such agent or conversation, or no such run.
            InvalidInput: The request holds neither a message nor results, or both, or a file that is refused.
            Conflict: A turn of the conversation is not over; or the results fit no calls that wait, and none was taken.
            PermissionDenied: The run belongs to another principal.

        Example:
            from toolcrib.contracts import AgentRequest

            answer = await crib.executions.execute("desk", AgentRequest(message="Which deals has Acme?"))
            print(answer.status, answer.response)
        """
        who = await self._actor.authorize()
        run_id = await self._take(agent, request, who)
        try:
            driven = await self._parts.resume(run_id)
        except Unavailable as lack:
            return await self._respond_with(run_id, (str(lack),))
        await self._conversations.settle(await self._journal.run(run_id))
        return await self._respond_with(run_id, driven.result.warnings)

    async def submit(self, agent: str, request: AgentRequest) -> AgentResponse:
        """The same, but executed by a serving engine: returns at once, and `respond` returns the state later.

        Raises:
            NotFound: As `execute`, like all that follow.
            InvalidInput: See there.
            Conflict: See there.
            PermissionDenied: See there.

        Example:
            from toolcrib.contracts import AgentRequest

            queued = await crib.executions.submit("desk", AgentRequest(message="Which deals has Acme?"))
            print(queued.run_id, queued.status)
        """
        who = await self._actor.authorize()
        return await self.respond(await self._take(agent, request, who))

    async def ask(self, agent: str, request: AgentRequest) -> Result[Json]:
        """As `execute`, with the result that everything in Python has; raises the same.

        Example:
            from toolcrib.contracts import AgentRequest

            result = await crib.executions.ask("desk", AgentRequest(message="Which deals has Acme?"))
            print(result.status, result.output)
        """
        run_id = await self._take(agent, request, await self._actor.authorize())
        try:
            driven = await self._parts.resume(run_id)
        except Unavailable as lack:
            events = await self._journal.events(run_id)
            return Result(RunResult(run_id=run_id, status="queued", warnings=(str(lack),)), events)
        await self._conversations.settle(await self._journal.run(run_id))
        return await self._parts.result(driven)

    async def begin(self, agent: str, request: AgentRequest) -> str:
        """As `submit`, and return the id of the run; raises the same.

        Example:
            from toolcrib.contracts import AgentRequest

            run_id = await crib.executions.begin("desk", AgentRequest(message="Which deals has Acme?"))
            result = await crib.resume(run_id)
        """
        return await self._take(agent, request, await self._actor.authorize())

    async def result(self, run_id: str) -> Result[Json]:
        """How a run of any kind stands, whether it is active, waits or has ended. Nothing is driven.

        Raises:
            NotFound: The realm has no such run.
            PermissionDenied: It belongs to another principal, and the principal has no grant to read it.

        Example:
            answer = await desk("Which deals has Acme?")
            again = await crib.executions.result(answer.run_id)
            print(again.status, again.output)
        """
        run = await self.run_for(run_id, await self._actor.authorize(), "read")
        await self._conversations.settle(run)
        events = await self._journal.events(run_id)
        last = events[-1].event
        state = (
            result_of(run_id, last) if isinstance(last, RunFinished) else RunResult(run_id=run_id, status=run.status)
        )
        return await self._parts.result(DriveResult(state, events))

    async def continue_(
        self,
        conversation_id: str,
        message: str,
        *,
        context: JsonObject | None = None,
        files: Sequence[FileInput] = (),
    ) -> Result[Json]:
        """Send a conversation its next message, and wait as `ask` does.

        Args:
            conversation_id: The conversation.
            message: What the agent is asked.
            context: Variables that it is told with the message, and that stay for all later turns; 64 KB of JSON.
            files: What the model is shown with it.

        Raises:
            InvalidInput: A file is refused, or the variables are too many.
            NotFound: There is no such conversation, or it is another's.
            Conflict: Its last turn is not over, or it is closed.

        Example:
            answer = await desk("Which deals has Acme?")
            more = await crib.executions.continue_(
                answer.conversation_id, "And who owns them?", context={"region": "EU"}
            )
        """
        conversation = await self._conversations.own(conversation_id)
        request = AgentRequest(
            message=message, conversation_id=conversation_id, context=context or {}, files=tuple(files)
        )
        return await self.ask(conversation.agent, request)

    async def respond(self, run_id: str) -> AgentResponse:
        """The state of an execution, whether it is active, waits or has ended.

        Raises:
            NotFound: The realm has no such run.
            PermissionDenied: It belongs to another principal, and the principal has no grant to read it.

        Example:
            answer = await desk("Which deals has Acme?")
            again = await crib.executions.respond(answer.run_id)
            print(again.status, again.response)
        """
        who = await self._actor.authorize()
        run = await self.run_for(run_id, who, "read")
        tool = await self._parts.registry.get_revision(run.realm, run.request.content_hash)
        return await read_response(self._journal, run_id, tool)

    async def _respond_with(self, run_id: str, warnings: Sequence[str]) -> AgentResponse:
        """The state of an execution, with warnings that its journal may not have."""
        answer = await self.respond(run_id)
        more = [each for each in warnings if each not in answer.warnings]
        return answer.model_copy(update={"warnings": (*answer.warnings, *more)}) if more else answer

    async def tracebacks(self, run_id: str) -> Sequence[CallTraceback]:
        """The tracebacks of exceptions that tools of a run and of its nested runs raised, for the tools' authors.

        Raises:
            NotFound: The realm has no such run.
            PermissionDenied: It belongs to another principal, and the principal has no grant to read it.

        Example:
            result = await crib.invoke("search_deals", {"company": "Acme"})
            for found in await crib.executions.tracebacks(result.run_id):
                print(found.name, found.position)
                print(found.text)
        """
        await self.run_for(run_id, await self._actor.authorize(), "read")
        tree = await read_tree(self._journal, run_id, ended=True)
        return [found for branch in tree for found in tracebacks_of(branch.events, branch.run.run_id)]

    async def attachments(self, run_id: str) -> Sequence[Attachment]:
        """The files of a run's message, and what accompanies the outputs of its calls; each once.

        Those are whole outputs that were cut, tables, images and other files.

        Raises:
            NotFound: The realm has no such run.
            PermissionDenied: It belongs to another principal, and the principal has no grant to read it.

        Example:
            answer = await desk("Which deals has Acme?")
            for kept in await crib.executions.attachments(answer.run_id):
                print(kept.kind, kept.content_type, kept.bytes, "bytes", kept.digest)
        """
        run = await self.run_for(run_id, await self._actor.authorize(), "read")
        calls = calls_of(await self._journal.events(run_id))
        returned = (kept for call in calls for kept in call.attachments)
        return list(dict.fromkeys((*run.request.files, *returned)))

    async def read_attachment(self, run_id: str, digest: str) -> tuple[Attachment, bytes]:
        """An attachment of a run, with the whole of its payload.

        Args:
            run_id: The run, whose calls have the attachment.
            digest: Its `digest`, or its `url`.

        Raises:
            NotFound: The realm has no such run, no call of it has such an attachment, or the payload was deleted.
            PermissionDenied: The run belongs to another principal, and the principal has no grant to read it.

        Example:
            answer = await desk("Which deals has Acme?")
            for kept in await crib.executions.attachments(answer.run_id):
                described, payload = await crib.executions.read_attachment(answer.run_id, kept.digest)
                print(described.content_type, len(payload))
        """
        wanted = digest.rpartition(":")[2]
        found = [kept for kept in await self.attachments(run_id) if kept.digest == wanted]
        if not found:
            msg = f"run {run_id} has no attachment {digest[:100]!r}; its attachments are in the envelopes of its calls"
            raise NotFound(msg)
        store = self._parts.outside.store
        return found[0], await store.blobs.get((await self._journal.run(run_id)).realm, wanted)

    async def follow(
        self, run_id: str, *, after: str = BEGINNING, drive: bool = False
    ) -> AsyncGenerator[StreamMessage]:
        """The text and calls of a run while it is active, until it has ended or waits.

        Args:
            run_id: The run.
            after: The place of the last message that was received; the beginning if there was none.
            drive: Whether this process drives the run if no other does, also after the last listener has left.

        Raises:
            NotFound: As `respond`, like the next.
            PermissionDenied: See there.
            InvalidInput: The run has no such place.

        Example:
            run_id = await crib.submit("desk", {"message": "Which deals has Acme?"})
            async for message in crib.executions.follow(run_id, drive=True):
                print(message.place, message.event)
        """
        async with aclosing(self.follow_closely(run_id, after=after, drive=drive)) as stream:
            async for news in stream:
                if news is not None:
                    yield news

    async def follow_closely(
        self, run_id: str, *, after: str = BEGINNING, drive: bool = False
    ) -> AsyncGenerator[StreamMessage | None]:
        """The same as `follow`, and null at moments without news, for who must keep a connection open."""
        who = await self._actor.authorize()
        await self.run_for(run_id, who, "read")
        engine = self._parts.engine
        with engine.live.watch(run_id):
            if drive:
                engine.begin(run_id)
            async with aclosing(listen(self._journal, engine.live, self._parts.outside.clock, run_id, after)) as stream:
                async for news in stream:
                    yield news

    # Beginning --------------------------------------------------------------------------------------------------------

    async def _take(self, agent: str, request: AgentRequest, who: Principal) -> str:
        """Store a request; returns the id of the run that executes it."""
        earlier = await self._actor.earlier_run()
        if earlier is not None:
            return earlier
        asking = await self._asking(agent, request, who) if request.message is not None else None
        if request.files and (asking is not None or request.tool_results):
            msg = "an answer or results bring no files; send them with the message that begins the next turn"
            raise InvalidInput(msg)
        if asking is not None and request.message is not None:
            await self._questions.leave(asking, request.message)
            return asking
        if not request.tool_results:
            return await self._begin(agent, request, who)
        if request.message is not None or request.params is not None:
            msg = "a request brings tool_results or a message, not both; send the message when the run has ended"
            raise InvalidInput(msg)
        run = await self._waiting_run(agent, request, who)
        await self._deliver(run.run_id, request.tool_results, who)
        return run.run_id

    async def _begin(self, agent: str, request: AgentRequest, who: Principal) -> str:
        """Create a run, queued. One that is refused is ended at once, and no turn of a conversation."""
        parts = self._parts
        tool = await parts.catalogue.require(who.realm, agent)
        wanted = request_of(
            tool,
            _arguments(tool.definition, request),
            who,
            parts.registry,
            conversation_id=request.conversation_id,
            session_id=request.session_id,
            dry_run=request.dry_run,
        )
        refusal = refusal_of_run(parts.executor, tool, wanted, registry=parts.registry)
        if refusal is not None:
            return (await parts.engine.refuse(wanted, refusal)).result.run_id
        if request.files:
            wanted = await self.with_files(wanted, tool.definition, request.files)
        if wanted.kind != "agent":
            return await parts.engine.create(wanted, run_id=await self._actor.begin_run(new_run_id()))
        turn = await self._conversations.begin(tool, request, who)
        await self._actor.begin_run(turn.run_id)
        return await self._conversations.create(turn, wanted)

    async def with_files(self, request: RunRequest, tool: ToolDefinition, files: Sequence[FileInput]) -> RunRequest:
        """The request of a run with files, which are kept.

        Raises:
            InvalidInput: What it executes reads no files, or one of them is refused.
            NotFound: There is no such run or attachment.
            PermissionDenied: The run of an attachment is another principal's.
        """
        if not tool.has_model:
            msg = f"{tool.name!r} is neither an agent nor an agentic tool, and reads no files"
            raise InvalidInput(msg)
        _require_reader_of_files(tool)
        return request.model_copy(update={"files": await self._files.keep(files, request.principal)})

    async def _asking(self, agent: str, request: AgentRequest, who: Principal) -> str | None:
        """The outermost run that waits for an answer, which a message gives it; null if a message begins a turn."""
        run_id = request.run_id
        try:
            if run_id is None and request.conversation_id is not None:
                conversation = await self._conversations.own(request.conversation_id)
                run_id = turn_run_id(conversation.conversation_id, conversation.turn_count)
            if run_id is None:
                return None
            run = await self.run_for(run_id, who, "execute")
        except NotFound:
            if request.run_id is not None:
                raise
            return None  # a turn without a run is free for this message; what else is missing is said when it begins
        if run.status != "awaiting_answer":
            return None
        if agent.partition("@")[0] != run.request.tool_name:
            msg = f"run {run.run_id} is of {run.request.tool_name!r}, which has asked; answer it, not {agent!r}"
            raise Conflict(msg)
        return run.run_id

    # Results of clients -----------------------------------------------------------------------------------------------

    async def _waiting_run(self, agent: str, request: AgentRequest, who: Principal) -> Run:
        """The outermost run of the run that the results are for."""
        run = await self.run_for(await self._run_id(request), who, "execute")
        while run.request.parent_run_id is not None:
            run = await self.run_for(run.request.parent_run_id, who, "execute")
        name, conversation_id = run.request.tool_name, run.request.conversation_id
        if agent.partition("@")[0] != name or request.conversation_id not in {None, conversation_id}:
            msg = (
                f"run {run.run_id} is of {name!r}, in conversation {conversation_id!r}; bring the results to the agent "
                "and the conversation that handed the calls over"
            )
            raise Conflict(msg)
        return run

    async def _run_id(self, request: AgentRequest) -> str:
        if request.run_id is not None:
            return request.run_id
        if request.conversation_id is None:
            msg = "tool_results need the run_id of the run that waits for them, or its conversation_id"
            raise InvalidInput(msg)
        conversation = await self._conversations.get(request.conversation_id)
        return turn_run_id(conversation.conversation_id, conversation.turn_count)

    async def _deliver(self, run_id: str, results: Sequence[ReturnedCall], who: Principal) -> None:
        delivered = False
        while not delivered:  # again if other clients were faster, to see their results
            tree = await read_tree(self._journal, run_id, ended=True)
            signals = signals_for(tree, results, made_by=who.id, at=self._parts.outside.clock.now())
            delivered = await self._parts.engine.signal_all(signals)

    async def run_for(self, run_id: str, who: Principal, verb: RunVerb) -> Run:
        """A run of the realm that is the principal's own, or that it has a grant for.

        Raises:
            NotFound: The realm has no such run.
            PermissionDenied: It belongs to another principal.
        """
        return await run_for(self._journal, run_id, who, verb)


def _require_reader_of_files(definition: ToolDefinition) -> None:
    """Refuse files for what shows a model no message.

    Raises:
        InvalidInput: It is an agentic tool whose steps are fixed.
    """
    implementation = definition.implementation
    if isinstance(implementation, AgenticImplementation) and implementation.mode == "deterministic":
        msg = f"{definition.name!r} reads no files, because its steps are fixed; send them to an agent"
        raise InvalidInput(msg)


def _arguments(definition: ToolDefinition, request: AgentRequest) -> JsonObject:
    """The input of a run, validated by the schema of the agent or agentic tool."""
    if not definition.has_model:
        msg = f"{definition.name!r} is neither an agent nor an agentic tool; call it as a tool"
        raise InvalidInput(msg)
    if (request.message is None) == (request.params is None):
        given = "neither" if request.message is None else "both"
        msg = f"{definition.name!r} takes a message or params, and the request has {given}; send one of them"
        raise InvalidInput(msg)
    takes_context = definition.run_kind == "agent" and request.params is None
    if request.context and not takes_context:
        msg = f"{definition.name!r} is told variables with a message to an agent only; put them into params"
        raise InvalidInput(msg)
    if request.params is not None:
        return request.params
    if not takes_context:
        return {"task": request.message}
    return {"message": request.message, **({"context": request.context} if request.context else {})}
