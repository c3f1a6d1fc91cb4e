"""A model that calls every tool once, with arguments made from the tools' schemas."""

from collections.abc import Collection, Mapping

from toolcrib.contracts import InvalidInput, Json, JsonObject
from toolcrib.llm import Message, NamedTool, Request, ScriptedModel, Tool
from toolcrib.testing.answers import calls, says, says_json, together
from toolcrib.testing.example_values import example_value


class CallsEachTool(ScriptedModel):
    """A model that calls each tool that it is offered once, with valid arguments, and then answers.

    It shows that an agent's tools can be called as the model sees them, without a script for each. The arguments are
    made from the input schemas, the same ones for the same seed. Where the answer must be structured, it is a valid
    value of that schema.

    Args:
        answer: What it says in the end, where any text will do.
        arguments: Arguments to use instead, by tool: for those whose values must exist, such as ids.
        only: Tools to call; all if null.
        seed: Makes other arguments.

    Example:
        from toolcrib.testing import CallsEachTool, override_models

        with override_models(crib, CallsEachTool(arguments={"search_deals": {"company": "Acme"}})) as model:
            answer = await desk("Try your tools.")
        print(answer.output, len(model.requests))
    """

    def __init__(
        self,
        answer: str = "Done.",
        *,
        arguments: Mapping[str, JsonObject] | None = None,
        only: Collection[str] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(self._answer, name="calls-each-tool")
        self._text = answer
        self._arguments = arguments or {}
        self._only = only
        self._seed = seed

    def _answer(self, request: Request) -> Message:
        left = self._left(request)
        if left:
            count = len(left) if request.parallel_tool_calls else 1
            return together(*(self._call(tool) for tool in left[:count]))
        if request.output_schema is not None:
            return says_json(self._value(request.output_schema, "the answer"))
        return says(self._text)

    def _left(self, request: Request) -> list[Tool]:
        """The tools that are still to be called."""
        if request.tool_choice == "none":
            return []
        called = {call.name for message in request.messages for call in message.calls}
        offered = [tool for tool in request.tools.tools if self._only is None or tool.name in self._only]
        if isinstance(request.tool_choice, NamedTool):
            offered = [tool for tool in offered if tool.name == request.tool_choice.name]
        return [tool for tool in offered if tool.name not in called]

    def _call(self, tool: Tool) -> Message:
        arguments = self._arguments.get(tool.name)
        if arguments is None:
            arguments = self._value(tool.schema, f"the arguments of {tool.name!r}")
        return calls(tool.name, **arguments)  # pyright: ignore[reportCallIssue] - a tool's arguments are an object

    def _value(self, schema: JsonObject, what: str) -> Json:
        try:
            return example_value(schema, seed=self._seed)
        except InvalidInput as problem:
            msg = f"{what} cannot be made: {problem}; give them: CallsEachTool(arguments={{tool: {{...}}}})"
            raise InvalidInput(msg) from None
