"""Synchronous forms of the classes of several modules.

`toolcrib.crib.api.handles`,
`toolcrib.crib.api.run_streams`.

Written by `python -m tools.sync_facade`; not to be edited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic

from toolcrib.crib.api.run_streams import OutputT_co
from toolcrib.sync.event_loop import EventLoopThread, Facade

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType
    from typing import Self

    from toolcrib.contracts import AgentDefinition, Json, JsonObject, StreamEvent, ToolDefinition
    from toolcrib.contracts.workflows import WorkflowDefinition
    from toolcrib.core.runs import Result
    from toolcrib.crib.api.handles import Agent as AsynchronousAgent
    from toolcrib.crib.api.handles import AgenticTool as AsynchronousAgenticTool
    from toolcrib.crib.api.handles import CompositeTool as AsynchronousCompositeTool
    from toolcrib.crib.api.handles import Handle as AsynchronousHandle
    from toolcrib.crib.api.handles import WorkflowHandle as AsynchronousWorkflowHandle
    from toolcrib.crib.api.run_streams import RunStream as AsynchronousRunStream
    from toolcrib.kinds.python.files import File


class Handle(Facade, Generic[OutputT_co]):
    """What all handles can do with the runs that they have started."""

    def __init__(self, asynchronous: AsynchronousHandle[OutputT_co], loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._handle = asynchronous

    def result(self, run_id: str) -> Result[OutputT_co]:
        """How a run that `submit` has started stands; nothing is driven.

        Raises:
            NotFound: There is no such run.
            PermissionDenied: It belongs to another principal.

        Example:
            run_id = desk.submit("Which deals has Acme?")
            print(desk.result(run_id).status)
        """
        return self._loop.run(self._handle.result, run_id)

    def resume(self, run_id: str) -> Result[OutputT_co]:
        """Carry a run on until it ends or waits: after a decision, or one that `submit` has started.

        Raises:
            NotFound: There is no such run.
            PermissionDenied: It belongs to another principal.

        Example:
            run_id = desk.submit("Which deals has Acme?")
            result = desk.resume(run_id)
        """
        return self._loop.run(self._handle.resume, run_id)

    def read(self, result: Result[Json]) -> Result[OutputT_co]:
        """A result of a run of this tool that was asked for by name or id, with an output of the handle's type.

        Example:
            result = crib.invoke("desk", {"message": "Which deals has Acme?"})
            print(desk.read(result).output)
        """
        return self._loop.call(self._handle.read, result)


class Agent(Handle[OutputT_co]):
    """A handle to an agent: call it with a message.

    Example:
        desk = crib.agent("desk", model="anthropic:claude-sonnet-4", tools=[search_deals])
        answer = desk("Which deals has Acme?")
        print(answer.output, answer.cost_usd)
    """

    def __init__(self, asynchronous: AsynchronousAgent[OutputT_co], loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._agent = asynchronous

    @property
    def definition(self) -> AgentDefinition:
        """The definition."""
        return self._agent.definition

    def __call__(
        self,
        message: str,
        *,
        conversation_id: str | None = None,
        session_id: str | None = None,
        context: JsonObject | None = None,
        files: Sequence[File] = (),
    ) -> Result[OutputT_co]:
        """Ask the agent, and wait until it has answered or waits for a person.

        Args:
            message: What it is asked.
            conversation_id: The conversation to continue; null starts a new one.
            session_id: The session that the run belongs to.
            context: Facts that it needs to know, by name.
            files: Images, PDF files, audio or texts that the model is shown with the message.

        Raises:
            InvalidInput: A file is too large, is not what its type says, or is of a type that no model reads.

        Example:
            answer = desk("Which deals has Acme?")
            more = desk("And who owns them?", conversation_id=answer.conversation_id)
            read = desk("What is in this table?", files=[File("company,deals", name="deals.csv")])
        """
        return self._loop.run(
            self._agent, message, conversation_id=conversation_id, session_id=session_id, context=context, files=files
        )

    def stream(
        self,
        message: str,
        *,
        conversation_id: str | None = None,
        session_id: str | None = None,
        context: JsonObject | None = None,
        files: Sequence[File] = (),
    ) -> RunStream[OutputT_co]:
        """Ask the agent, and follow its answer; see `RunStream`. The arguments are those of a call.

        Example:
            with desk.stream("Which deals has Acme?") as stream:
                for piece in stream.text():
                    print(piece, end="", flush=True)
                result = stream.result()
        """
        return RunStream(
            self._loop.call(
                self._agent.stream,
                message,
                conversation_id=conversation_id,
                session_id=session_id,
                context=context,
                files=files,
            ),
            self._loop,
        )

    def submit(
        self,
        message: str,
        *,
        conversation_id: str | None = None,
        session_id: str | None = None,
        context: JsonObject | None = None,
        files: Sequence[File] = (),
    ) -> str:
        """Leave the question to a serving engine or worker, and return the id of its run at once.

        Example:
            run_id = desk.submit("Which deals has Acme?")
            result = desk.resume(run_id)
        """
        return self._loop.run(
            self._agent.submit,
            message,
            conversation_id=conversation_id,
            session_id=session_id,
            context=context,
            files=files,
        )


class CompositeTool(Handle[OutputT_co]):
    """A handle to a composite tool: call it with its arguments.

    Example:
        schema = {"type": "object", "properties": {"company": {"type": "string"}}, "required": ["company"]}
        routes = [CompositeRoute(id="deals", tool="search_deals", input={"company": "${input.company}"})]
        find = crib.composite_tool("find", input_schema=schema, routes=routes)
        print(find(company="Acme").output)
    """

    def __init__(self, asynchronous: AsynchronousCompositeTool[OutputT_co], loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._composite_tool = asynchronous

    @property
    def definition(self) -> ToolDefinition:
        """The definition."""
        return self._composite_tool.definition

    def __call__(self, **arguments: Json) -> Result[OutputT_co]:
        """Run the tool and wait until the run ends or suspends.

        Example:
            routes = [CompositeRoute(id="acme", tool="search_deals", input={"company": "Acme"})]
            find_acme = crib.composite_tool("find_acme", input_schema={"type": "object"}, routes=routes)
            result = find_acme()
        """
        return self._loop.run(self._composite_tool, **arguments)

    def stream(self, **arguments: Json) -> RunStream[OutputT_co]:
        """Run the tool, and follow the run; see `RunStream`.

        Example:
            routes = [CompositeRoute(id="acme", tool="search_deals", input={"company": "Acme"})]
            find_acme = crib.composite_tool("find_acme", input_schema={"type": "object"}, routes=routes)
            with find_acme.stream() as stream:
                print(stream.result().output)
        """
        return RunStream(self._loop.call(self._composite_tool.stream, **arguments), self._loop)

    def submit(self, **arguments: Json) -> str:
        """Leave the run to a serving engine or worker, and return its id at once.

        Example:
            routes = [CompositeRoute(id="acme", tool="search_deals", input={"company": "Acme"})]
            find_acme = crib.composite_tool("find_acme", input_schema={"type": "object"}, routes=routes)
            run_id = find_acme.submit()
        """
        return self._loop.run(self._composite_tool.submit, **arguments)


class WorkflowHandle(Handle[OutputT_co]):
    """A handle to a workflow: call it with its arguments.

    Example:
        steps = [{"name": "deals", "tool": "search_deals", "input": {"company": "Acme"}}]
        list_acme = crib.workflow("list_acme", steps=steps)
        print(list_acme().output)
    """

    def __init__(self, asynchronous: AsynchronousWorkflowHandle[OutputT_co], loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._workflow_handle = asynchronous

    @property
    def definition(self) -> WorkflowDefinition:
        """The definition."""
        return self._workflow_handle.definition

    def __call__(self, **arguments: Json) -> Result[OutputT_co]:
        """Run the workflow and wait until the run ends or suspends.

        Example:
            result = move(company="Acme")
            print(result.error or result.output)
        """
        return self._loop.run(self._workflow_handle, **arguments)

    def stream(self, **arguments: Json) -> RunStream[OutputT_co]:
        """Run the workflow, and follow its calls and steps; see `RunStream`.

        Example:
            with move.stream(company="Acme") as stream:
                for event in stream:
                    print(event.type)
        """
        return RunStream(self._loop.call(self._workflow_handle.stream, **arguments), self._loop)

    def submit(self, **arguments: Json) -> str:
        """Leave the run to a serving engine or worker, and return its id at once.

        Example:
            run_id = move.submit(company="Acme")
            print(move.result(run_id).status)
        """
        return self._loop.run(self._workflow_handle.submit, **arguments)


class AgenticTool(Handle[OutputT_co]):
    """A handle to an agentic tool: call it with a task.

    Example:
        deals = crib.agentic_tool(
            "deals", mode="deterministic", model="anthropic:claude-sonnet-4", steps=["search_deals", "update_deals"]
        )
        result = deals("Update all Acme Corp deals to Negotiation")
    """

    def __init__(self, asynchronous: AsynchronousAgenticTool[OutputT_co], loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._agentic_tool = asynchronous

    @property
    def definition(self) -> ToolDefinition:
        """The definition."""
        return self._agentic_tool.definition

    def __call__(self, task: str | None = None, **parameters: Json) -> Result[OutputT_co]:
        """Run the tool and wait until the run ends or suspends; `crib.questions.answer` answers what it asks.

        Example:
            result = deals("Update all Acme Corp deals to Negotiation")
            if result.question:
                result = crib.questions.answer(result.run_id, "Acme Corp")
        """
        return self._loop.run(self._agentic_tool, task, **parameters)

    def stream(self, task: str | None = None, **parameters: Json) -> RunStream[OutputT_co]:
        """Run the tool, and follow the run; see `RunStream`.

        Example:
            with deals.stream("Update all Acme Corp deals to Negotiation") as stream:
                for event in stream:
                    print(event.type)
        """
        return RunStream(self._loop.call(self._agentic_tool.stream, task, **parameters), self._loop)

    def submit(self, task: str | None = None, **parameters: Json) -> str:
        """Leave the run to a serving engine or worker, and return its id at once.

        Example:
            run_id = deals.submit("Update all Acme Corp deals to Negotiation")
            result = deals.resume(run_id)
        """
        return self._loop.run(self._agentic_tool.submit, task, **parameters)


class RunStream(Facade, Generic[OutputT_co]):
    """A run while it is active: iterate over its events, over the text of its answer, or wait for its result.

    The block owns the run: leaving it early, by `break`, `return` or an exception, cancels the run. A run that has
    ended, or that waits for a person or a client, stays as it is. To follow a run without owning it, `submit` it and
    use `crib.stream(run_id)`. Nothing is received twice: a second loop continues where the first one stopped.

    Example:
        with desk.stream("Which deals has Acme?") as stream:
            for piece in stream.text():
                print(piece, end="", flush=True)
            result = stream.result()
        print(result.cost_usd)
    """

    def __init__(self, asynchronous: AsynchronousRunStream[OutputT_co], loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._run_stream = asynchronous

    @property
    def run_id(self) -> str:
        """The id of the run, inside of the block.

        Raises:
            InvalidInput: The block was not entered.
        """
        return self._run_stream.run_id

    def __enter__(self) -> Self:
        """Create the run; it is driven as soon as it is followed."""
        self._loop.run(self._run_stream.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Cancel the run if it is still active."""
        return self._loop.run(self._run_stream.__aexit__, kind, error, traceback)

    def __iter__(self) -> Iterator[StreamEvent]:
        """The events that were not received yet, until the run has ended or waits."""
        return self._loop.iterate(
            self._run_stream.__aiter__,
        )

    def text(self, *, whole: bool = False) -> Iterator[str]:
        """The text of the answer in pieces, as the model writes it.

        Thinking, plans and nested runs are left out. What the model says before its calls is told too, because only the
        whole answer shows that calls follow: a paragraph for each turn. If an attempt breaks off and the next one says
        the same, it is not told twice.

        Args:
            whole: Yield the whole text of the last turn so far, each time, instead of pieces: text of attempts that
                broke off and of turns that made calls is replaced.

        Example:
            with desk.stream("Which deals has Acme?") as stream:
                for piece in stream.text():
                    print(piece, end="", flush=True)
        """
        return self._loop.iterate(self._run_stream.text, whole=whole)

    def result(self) -> Result[OutputT_co]:
        """The result, when the run has ended or waits; events that were not received are passed over.

        Example:
            with desk.stream("Which deals has Acme?") as stream:
                result = stream.result()
            print(result.output)
        """
        return self._loop.run(
            self._run_stream.result,
        )
