"""Handles to what a program defines: call it, stream it, or leave it to a worker.

All of them give the same `Result`. A handle with an output type gives results whose `output` is an instance of it;
results that are asked for by name or by run id have JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, cast

from typing_extensions import TypeVar

from toolcrib import contracts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcrib.contracts import AgentDefinition, Json, JsonObject, ToolDefinition
    from toolcrib.contracts.workflows import WorkflowDefinition
    from toolcrib.core.runs import Result
    from toolcrib.crib.api.output_types import OutputType
    from toolcrib.crib.api.run_streams import HandleCrib, RunStream
    from toolcrib.kinds.python.files import File

OutputT_co = TypeVar("OutputT_co", covariant=True, default=Any)


class Handle(Generic[OutputT_co]):
    """What all handles can do with the runs that they have started."""

    def __init__(
        self,
        crib: HandleCrib,
        definition: AgentDefinition | ToolDefinition | WorkflowDefinition,
        output_type: OutputType[OutputT_co] | None = None,
    ) -> None:
        self._crib = crib
        self._output_type = output_type
        self._ref = f"{definition.name}@{definition.version}"

    async def result(self, run_id: str) -> Result[OutputT_co]:
        """How a run that `submit` has started stands; nothing is driven.

        Raises:
            NotFound: There is no such run.
            PermissionDenied: It belongs to another principal.

        Example:
            run_id = await desk.submit("Which deals has Acme?")
            print((await desk.result(run_id)).status)
        """
        return self._typed(await self._crib.executions.result(run_id))

    async def resume(self, run_id: str) -> Result[OutputT_co]:
        """Carry a run on until it ends or waits: after a decision, or one that `submit` has started.

        Raises:
            NotFound: There is no such run.
            PermissionDenied: It belongs to another principal.

        Example:
            run_id = await desk.submit("Which deals has Acme?")
            result = await desk.resume(run_id)
        """
        return self._typed(await self._crib.resume(run_id))

    def read(self, result: Result[Json]) -> Result[OutputT_co]:
        """A result of a run of this tool that was asked for by name or id, with an output of the handle's type.

        Example:
            result = await crib.invoke("desk", {"message": "Which deals has Acme?"})
            print(desk.read(result).output)
        """
        return self._typed(result)

    async def _invoke(self, arguments: JsonObject) -> Result[OutputT_co]:
        return self._typed(await self._crib.invoke(self._ref, arguments))

    def _stream(self, arguments: JsonObject) -> RunStream[OutputT_co]:
        from toolcrib.crib.api.run_streams import RunStream

        return RunStream(self._crib, lambda: self._crib.submit(self._ref, arguments), self._typed)

    def _typed(self, result: Result[Json]) -> Result[OutputT_co]:
        if self._output_type is None:
            return cast("Result[OutputT_co]", result)
        return result.read_as(self._output_type.read)

    def __repr__(self) -> str:
        """The class and the reference."""
        typed = "" if self._output_type is None else f", output_type={self._output_type.name}"
        return f"{type(self).__name__}({self._ref!r}{typed})"


class Agent(Handle[OutputT_co]):
    """A handle to an agent: await it with a message.

    Example:
        desk = crib.agent("desk", model="anthropic:claude-sonnet-4", tools=[search_deals])
        answer = await desk("Which deals has Acme?")
        print(answer.output, answer.cost_usd)
    """

    def __init__(
        self, crib: HandleCrib, definition: AgentDefinition, output_type: OutputType[OutputT_co] | None = None
    ) -> None:
        super().__init__(crib, definition, output_type)
        self.definition = definition

    async def __call__(
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
            answer = await desk("Which deals has Acme?")
            more = await desk("And who owns them?", conversation_id=answer.conversation_id)
            read = await desk("What is in this table?", files=[File("company,deals", name="deals.csv")])
        """
        request = _request(message, conversation_id, session_id, context, files)
        return self._typed(await self._crib.executions.ask(self._ref, request))

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
            async with desk.stream("Which deals has Acme?") as stream:
                async for piece in stream.text():
                    print(piece, end="", flush=True)
                result = await stream.result()
        """
        request = _request(message, conversation_id, session_id, context, files)
        from toolcrib.crib.api.run_streams import RunStream

        return RunStream(self._crib, lambda: self._crib.executions.begin(self._ref, request), self._typed)

    async def submit(
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
            run_id = await desk.submit("Which deals has Acme?")
            result = await desk.resume(run_id)
        """
        request = _request(message, conversation_id, session_id, context, files)
        return await self._crib.executions.begin(self._ref, request)


class CompositeTool(Handle[OutputT_co]):
    """A handle to a composite tool: await it with its arguments.

    Example:
        schema = {"type": "object", "properties": {"company": {"type": "string"}}, "required": ["company"]}
        routes = [CompositeRoute(id="deals", tool="search_deals", input={"company": "${input.company}"})]
        find = crib.composite_tool("find", input_schema=schema, routes=routes)
        print((await find(company="Acme")).output)
    """

    def __init__(self, crib: HandleCrib, definition: ToolDefinition) -> None:
        super().__init__(crib, definition)
        self.definition = definition

    async def __call__(self, **arguments: Json) -> Result[OutputT_co]:
        """Run the tool and wait until the run ends or suspends.

        Example:
            routes = [CompositeRoute(id="acme", tool="search_deals", input={"company": "Acme"})]
            find_acme = crib.composite_tool("find_acme", input_schema={"type": "object"}, routes=routes)
            result = await find_acme()
        """
        return await self._invoke(arguments)

    def stream(self, **arguments: Json) -> RunStream[OutputT_co]:
        """Run the tool, and follow the run; see `RunStream`.

        Example:
            routes = [CompositeRoute(id="acme", tool="search_deals", input={"company": "Acme"})]
            find_acme = crib.composite_tool("find_acme", input_schema={"type": "object"}, routes=routes)
            async with find_acme.stream() as stream:
                print((await stream.result()).output)
        """
        return self._stream(arguments)

    async def submit(self, **arguments: Json) -> str:
        """Leave the run to a serving engine or worker, and return its id at once.

        Example:
            routes = [CompositeRoute(id="acme", tool="search_deals", input={"company": "Acme"})]
            find_acme = crib.composite_tool("find_acme", input_schema={"type": "object"}, routes=routes)
            run_id = await find_acme.submit()
        """
        return await self._crib.submit(self._ref, arguments)


class WorkflowHandle(Handle[OutputT_co]):
    """A handle to a workflow: await it with its arguments.

    Example:
        steps = [{"name": "deals", "tool": "search_deals", "input": {"company": "Acme"}}]
        list_acme = crib.workflow("list_acme", steps=steps)
        print((await list_acme()).output)
    """

    def __init__(
        self, crib: HandleCrib, definition: WorkflowDefinition, output_type: OutputType[OutputT_co] | None = None
    ) -> None:
        super().__init__(crib, definition, output_type)
        self.definition = definition

    async def __call__(self, **arguments: Json) -> Result[OutputT_co]:
        """Run the workflow and wait until the run ends or suspends.

        Example:
            result = await move(company="Acme")
            print(result.error or result.output)
        """
        return await self._invoke(arguments)

    def stream(self, **arguments: Json) -> RunStream[OutputT_co]:
        """Run the workflow, and follow its calls and steps; see `RunStream`.

        Example:
            async with move.stream(company="Acme") as stream:
                async for event in stream:
                    print(event.type)
        """
        return self._stream(arguments)

    async def submit(self, **arguments: Json) -> str:
        """Leave the run to a serving engine or worker, and return its id at once.

        Example:
            run_id = await move.submit(company="Acme")
            print((await move.result(run_id)).status)
        """
        return await self._crib.submit(self._ref, arguments)

    def _typed(self, result: Result[Json]) -> Result[OutputT_co]:
        if self._output_type is None:
            return cast("Result[OutputT_co]", result)
        return result.read_as(self._output_type.read_value)


class AgenticTool(Handle[OutputT_co]):
    """A handle to an agentic tool: await it with a task.

    Example:
        deals = crib.agentic_tool(
            "deals", mode="deterministic", model="anthropic:claude-sonnet-4", steps=["search_deals", "update_deals"]
        )
        result = await deals("Update all Acme Corp deals to Negotiation")
    """

    def __init__(
        self, crib: HandleCrib, definition: ToolDefinition, output_type: OutputType[OutputT_co] | None = None
    ) -> None:
        super().__init__(crib, definition, output_type)
        self.definition = definition

    async def __call__(self, task: str | None = None, **parameters: Json) -> Result[OutputT_co]:
        """Run the tool and wait until the run ends or suspends; `crib.questions.answer` answers what it asks.

        Example:
            result = await deals("Update all Acme Corp deals to Negotiation")
            if result.question:
                result = await crib.questions.answer(result.run_id, "Acme Corp")
        """
        return await self._invoke(_arguments(task, parameters))

    def stream(self, task: str | None = None, **parameters: Json) -> RunStream[OutputT_co]:
        """Run the tool, and follow the run; see `RunStream`.

        Example:
            async with deals.stream("Update all Acme Corp deals to Negotiation") as stream:
                async for event in stream:
                    print(event.type)
        """
        return self._stream(_arguments(task, parameters))

    async def submit(self, task: str | None = None, **parameters: Json) -> str:
        """Leave the run to a serving engine or worker, and return its id at once.

        Example:
            run_id = await deals.submit("Update all Acme Corp deals to Negotiation")
            result = await deals.resume(run_id)
        """
        return await self._crib.submit(self._ref, _arguments(task, parameters))


def _arguments(task: str | None, parameters: JsonObject) -> JsonObject:
    return parameters if task is None else {"task": task, **parameters}


def _request(
    message: str,
    conversation_id: str | None,
    session_id: str | None,
    context: JsonObject | None,
    files: Sequence[File],
) -> contracts.AgentRequest:
    return contracts.AgentRequest(
        message=message,
        conversation_id=conversation_id,
        session_id=session_id,
        context=context or {},
        files=tuple(file.as_input() for file in files),
    )
