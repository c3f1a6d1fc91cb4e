"""Synchronous forms of the classes of several modules.

`toolcrib.crib.agents.agents`,
`toolcrib.crib.agents.executions`.

Written by `python -m tools.sync_facade`; not to be edited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.core.runs import BEGINNING
from toolcrib.sync.event_loop import EventLoopThread, Facade

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolcrib.contracts import (
        AgentDefinition,
        AgentRequest,
        AgentResponse,
        Attachment,
        FileInput,
        Json,
        JsonObject,
        ResolvedTool,
        ToolRevision,
    )
    from toolcrib.core.runs import CallTraceback, Result, StreamMessage
    from toolcrib.crib.agents.agents import Agents as AsynchronousAgents
    from toolcrib.crib.agents.executions import Executions as AsynchronousExecutions
    from toolcrib.crib.tools.listing import ToolsPage


class Agents(Facade):
    """The agents of a crib.

    Args:
        parts: The parts of the crib.
        listing: The crib's listing, which knows what a principal may see.
        actor: The actor of the crib.
    """

    def __init__(self, asynchronous: AsynchronousAgents, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._agents = asynchronous

    def save(self, agent: AgentDefinition | JsonObject, *, after: int | None = None) -> ToolRevision:
        """Check a definition and store it as a revision, whose warnings say what its author should know.

        Args:
            agent: The definition, or a document that may be one.
            after: Number of the revision that the author has changed; 0 for a new agent; null to save over anything.

        Raises:
            InvalidDefinition: It is not well formed; `problems` has all that is wrong, in its form and its names.
            NotFound: Only one thing is wrong: it names a tool, an agent or an account that does not exist.
            PermissionDenied: It acts as an account that its author may not use.
            Conflict: Another revision has been saved since `after`.

        Example:
            llm = LLMConfig(model="anthropic:claude-sonnet-4")
            clerk = AgentDefinition(name="clerk", llm=llm, tools=(AllocatedTool(tool="search_deals"),))
            saved = crib.agents.save(clerk)
            print(saved.ref, saved.warnings)
        """
        return self._loop.run(self._agents.save, agent, after=after)

    def read(self, document: JsonObject) -> AgentDefinition:
        """The definition that a document is; it may still name what there is not.

        Raises:
            InvalidDefinition: It has not the shape of one. `problems` has all that is wrong, also with its names.

        Example:
            desk = crib.agents.read({"name": "desk", "llm": {"model": "anthropic:claude-sonnet-4"}})
            print(desk.tools)
        """
        return self._loop.run(self._agents.read, document)

    def get(self, ref: str) -> ToolRevision:
        """The revision of an agent.

        Args:
            ref: `name` or `name@range`.

        Raises:
            NotFound: There is no such agent; it may be a tool of another kind.

        Example:
            saved = crib.agents.get("desk")
            print(saved.ref, AgentDefinition.of(saved.definition).llm.model)
        """
        return self._loop.run(self._agents.get, ref)

    def page(self, *, after: str = "", limit: int = 50, text: str | None = None) -> ToolsPage:
        """The agents that come after a name and that the principal may see; `AgentDefinition.of` reads each.

        Args:
            after: A name; empty for the beginning.
            limit: At most so many.
            text: Text to find in name, title, description or tags.

        Example:
            page = crib.agents.page(text="desk")
            print([each.name for each in page.items])
        """
        return self._loop.run(self._agents.page, after=after, limit=limit, text=text)

    def remove(self, name: str) -> None:
        """Remove an agent from the catalogue; its runs continue, and its conversations remain readable.

        Raises:
            NotFound: There is no such agent.

        Example:
            crib.agents.remove("desk")
        """
        return self._loop.run(self._agents.remove, name)

    def tools(self, ref: str, *, message: str | None = None) -> Sequence[ResolvedTool]:
        """Which tools an agent would have now: those that its model sees, those that it can find, and what is left out.

        Args:
            ref: `name` or `name@range`.
            message: What it would be asked, which decides what is shown if there are too many tools.

        Raises:
            NotFound: There is no such agent.
            PermissionDenied: Its service account does not exist or is disabled.

        Example:
            for each in crib.agents.tools("desk", message="Which deals has Acme?"):
                print(each.tool, each.availability, each.reason)
        """
        return self._loop.run(self._agents.tools, ref, message=message)


class Executions(Facade):
    """The executions of a crib.

    Args:
        parts: The parts of the crib.
        conversations: The conversations of the crib.
        actor: The actor of the crib.
        questions: Takes messages that answer what a run asks.
    """

    def __init__(self, asynchronous: AsynchronousExecutions, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._executions = asynchronous

    def execute(self, agent: str, request: AgentRequest) -> AgentResponse:
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

            answer = crib.executions.execute("desk", AgentRequest(message="Which deals has Acme?"))
            print(answer.status, answer.response)
        """
        return self._loop.run(self._executions.execute, agent, request)

    def submit(self, agent: str, request: AgentRequest) -> AgentResponse:
        """The same, but executed by a serving engine: returns at once, and `respond` returns the state later.

        Raises:
            NotFound: As `execute`, like all that follow.
            InvalidInput: See there.
            Conflict: See there.
            PermissionDenied: See there.

        Example:
            from toolcrib.contracts import AgentRequest

            queued = crib.executions.submit("desk", AgentRequest(message="Which deals has Acme?"))
            print(queued.run_id, queued.status)
        """
        return self._loop.run(self._executions.submit, agent, request)

    def ask(self, agent: str, request: AgentRequest) -> Result[Json]:
        """As `execute`, with the result that everything in Python has; raises the same.

        Example:
            from toolcrib.contracts import AgentRequest

            result = crib.executions.ask("desk", AgentRequest(message="Which deals has Acme?"))
            print(result.status, result.output)
        """
        return self._loop.run(self._executions.ask, agent, request)

    def begin(self, agent: str, request: AgentRequest) -> str:
        """As `submit`, and return the id of the run; raises the same.

        Example:
            from toolcrib.contracts import AgentRequest

            run_id = crib.executions.begin("desk", AgentRequest(message="Which deals has Acme?"))
            result = crib.resume(run_id)
        """
        return self._loop.run(self._executions.begin, agent, request)

    def result(self, run_id: str) -> Result[Json]:
        """How a run of any kind stands, whether it is active, waits or has ended. Nothing is driven.

        Raises:
            NotFound: The realm has no such run.
            PermissionDenied: It belongs to another principal, and the principal has no grant to read it.

        Example:
            answer = desk("Which deals has Acme?")
            again = crib.executions.result(answer.run_id)
            print(again.status, again.output)
        """
        return self._loop.run(self._executions.result, run_id)

    def continue_(
        self, conversation_id: str, message: str, *, context: JsonObject | None = None, files: Sequence[FileInput] = ()
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
            answer = desk("Which deals has Acme?")
            more = crib.executions.continue_(
                answer.conversation_id, "And who owns them?", context={"region": "EU"}
            )
        """
        return self._loop.run(self._executions.continue_, conversation_id, message, context=context, files=files)

    def respond(self, run_id: str) -> AgentResponse:
        """The state of an execution, whether it is active, waits or has ended.

        Raises:
            NotFound: The realm has no such run.
            PermissionDenied: It belongs to another principal, and the principal has no grant to read it.

        Example:
            answer = desk("Which deals has Acme?")
            again = crib.executions.respond(answer.run_id)
            print(again.status, again.response)
        """
        return self._loop.run(self._executions.respond, run_id)

    def tracebacks(self, run_id: str) -> Sequence[CallTraceback]:
        """The tracebacks of exceptions that tools of a run and of its nested runs raised, for the tools' authors.

        Raises:
            NotFound: The realm has no such run.
            PermissionDenied: It belongs to another principal, and the principal has no grant to read it.

        Example:
            result = crib.invoke("search_deals", {"company": "Acme"})
            for found in crib.executions.tracebacks(result.run_id):
                print(found.name, found.position)
                print(found.text)
        """
        return self._loop.run(self._executions.tracebacks, run_id)

    def attachments(self, run_id: str) -> Sequence[Attachment]:
        """The files of a run's message, and what accompanies the outputs of its calls; each once.

        Those are whole outputs that were cut, tables, images and other files.

        Raises:
            NotFound: The realm has no such run.
            PermissionDenied: It belongs to another principal, and the principal has no grant to read it.

        Example:
            answer = desk("Which deals has Acme?")
            for kept in crib.executions.attachments(answer.run_id):
                print(kept.kind, kept.content_type, kept.bytes, "bytes", kept.digest)
        """
        return self._loop.run(self._executions.attachments, run_id)

    def read_attachment(self, run_id: str, digest: str) -> tuple[Attachment, bytes]:
        """An attachment of a run, with the whole of its payload.

        Args:
            run_id: The run, whose calls have the attachment.
            digest: Its `digest`, or its `url`.

        Raises:
            NotFound: The realm has no such run, no call of it has such an attachment, or the payload was deleted.
            PermissionDenied: The run belongs to another principal, and the principal has no grant to read it.

        Example:
            answer = desk("Which deals has Acme?")
            for kept in crib.executions.attachments(answer.run_id):
                described, payload = crib.executions.read_attachment(answer.run_id, kept.digest)
                print(described.content_type, len(payload))
        """
        return self._loop.run(self._executions.read_attachment, run_id, digest)

    def follow(self, run_id: str, *, after: str = BEGINNING, drive: bool = False) -> Iterator[StreamMessage]:
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
            run_id = crib.submit("desk", {"message": "Which deals has Acme?"})
            for message in crib.executions.follow(run_id, drive=True):
                print(message.place, message.event)
        """
        return self._loop.iterate(self._executions.follow, run_id, after=after, drive=drive)
