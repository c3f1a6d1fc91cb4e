"""LangChain: tools of a crib as `StructuredTool`s, and LangChain's tools in a crib.

from toolcrib import langchain

agent = create_agent(model, await langchain.load(crib.acting_as(ann), "search_deals"))
crib.add(*langchain.tools(DuckDuckGoSearchRun(), side_effects="reads"))
"""

from collections.abc import Mapping
from typing import Any, Unpack

from pydantic import BaseModel

from toolcrib.contracts import InvalidDefinition, InvalidSettings, JsonObject, JsonSchema
from toolcrib.contracts.base.errors import missing_extra
from toolcrib.core.export import describe
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.adapters.calling import CallAnswer, HomeLoop, OfferedTool, call_offered, find_offered
from toolcrib.interfaces.adapters.inward import adopt, schema_of_model
from toolcrib.kinds.python.functions import FunctionTool, ToolOptions

try:
    from langchain_core.messages import ToolCall, ToolMessage
    from langchain_core.tools import BaseTool, StructuredTool, ToolException
except ModuleNotFoundError as problem:
    raise InvalidSettings(missing_extra("the adapter for LangChain", problem.name, "langchain")) from problem

_TAKEN = frozenset({"config", "run_manager"})
"""Arguments that LangChain replaces by its own."""


class ToolCallFailed(ToolException):
    """A call that failed, was denied, or waits.

    Attributes:
        code: Of the error (`VALIDATION_ERROR`, `POLICY_DENIED`, ...), or the status of a run that waits.
        run_id: The run, which `crib.trace` explains.
        envelope: The call's envelope as JSON; only its `run_id` if it waits.
    """

    def __init__(self, answer: CallAnswer) -> None:
        super().__init__(answer.explanation)
        self.code = answer.code
        self.run_id = answer.run_id
        self.envelope = answer.envelope


async def load(crib: ActingCrib, *names: str, raise_errors: bool = False) -> list[StructuredTool]:
    """The tools of a crib as LangChain's, each call of which is a run of the crib's principal.

    They have the synchronous and the asynchronous form, and can be called from other threads and event loops than that
    of the crib. The `artifact` of a `ToolMessage` is the call's envelope as JSON.

    Args:
        crib: A crib, or `crib.acting_as(principal)`.
        *names: `name` or `name@range`; if none is given, every tool that the principal may execute.
        raise_errors: Whether a failed call raises `ToolCallFailed`, which is a `ToolException`. Else the model reads
            `CODE: message`, in a `ToolMessage` whose `status` is `error`.

    Raises:
        NotFound: There is no such tool, or the principal may not execute it.
        InvalidDefinition: A tool has an argument with a name that LangChain keeps for itself.

    Example:
        from toolcrib import langchain

        [search] = await langchain.load(crib, "search_deals")
        print(await search.ainvoke({"company": "Acme"}))
    """
    home = HomeLoop()
    return [_outward(crib, home, offered, raise_errors=raise_errors) for offered in await find_offered(crib, names)]


def _outward(crib: ActingCrib, home: HomeLoop, offered: OfferedTool, *, raise_errors: bool) -> StructuredTool:
    definition = offered.tool.definition
    schema: JsonSchema = {"title": offered.name, "type": "object", "properties": {}, **definition.input_schema}
    if taken := sorted(_TAKEN & schema["properties"].keys()):
        msg = f"tool {definition.name!r}: LangChain keeps the argument {taken[0]!r} for itself; rename it"
        raise InvalidDefinition(msg)

    async def call(**arguments: Any) -> tuple[str, JsonObject]:
        return _result(await home.run(lambda: call_offered(crib, offered, arguments)))

    def call_blocking(**arguments: Any) -> tuple[str, JsonObject]:
        return _result(home.run_blocking(lambda: call_offered(crib, offered, arguments)))

    return StructuredTool.from_function(
        func=call_blocking,
        coroutine=call,
        name=offered.name,
        description=describe(definition),
        args_schema=schema,
        infer_schema=False,
        response_format="content_and_artifact",
        handle_tool_error=not raise_errors,
        metadata={"toolcrib": offered.tool.ref},
    )


def _result(answer: CallAnswer) -> tuple[str, JsonObject]:
    if not answer.ok:
        raise ToolCallFailed(answer)
    return answer.message, answer.envelope


def tools(*originals: BaseTool, **options: Unpack[ToolOptions]) -> list[FunctionTool[..., Any]]:
    """LangChain's tools as tools of a crib, governed like all others: `crib.add(*langchain.tools(search))`.

    The output is what the tool returns; of a tool with artifacts it is `{"content": ..., "artifact": ...}`. What a tool
    raises is the error of its call. Without `side_effects` a tool is taken to write.

    Args:
        *originals: The tools.
        **options: As for `toolcrib.tool`, for each of them.

    Raises:
        InvalidDefinition: A tool takes something that only LangChain's own runtime can give.

    Example:
        from langchain_core.tools import StructuredTool
        from toolcrib import langchain

        def exchange_rate(currency: str) -> float:
            "Look up a rate."
            return 1.1

        crib.add(*langchain.tools(StructuredTool.from_function(exchange_rate), side_effects="reads"))
        print((await crib.call("exchange_rate", currency="USD")).output)
    """
    return [_inward(original, options) for original in originals]


def _inward(original: BaseTool, options: ToolOptions) -> FunctionTool[..., Any]:
    schema = _schema_of(original)
    raising = original.model_copy(update={"handle_tool_error": False, "handle_validation_error": False})

    async def call(**arguments: Any) -> Any:
        if original.response_format == "content":
            return await raising.ainvoke(arguments)
        asked = ToolCall(name=original.name, args=arguments, id="call", type="tool_call")
        message: ToolMessage = await raising.ainvoke(asked)
        return {"content": message.content, "artifact": message.artifact}  # pyright: ignore[reportUnknownMemberType]

    description = original.description.strip()
    return adopt(call, original, name=original.name, description=description, schema=schema, options=options)


def _schema_of(original: BaseTool) -> JsonSchema:
    shown, whole = original.tool_call_schema, original.get_input_schema()
    if isinstance(shown, Mapping):
        schema: JsonSchema = dict(shown)
        return {keyword: value for keyword, value in schema.items() if keyword not in {"description", "title"}}
    if not issubclass(shown, BaseModel) or not issubclass(whole, BaseModel):
        msg = f"tool {original.name!r} has a schema of pydantic 1; define it with pydantic 2"
        raise InvalidDefinition(msg)
    fields = whole.model_fields.items()
    hidden = [name for name, field in fields if field.is_required() and name not in shown.model_fields]
    if hidden:
        msg = (
            f"tool {original.name!r} takes {hidden[0]!r} from LangChain's runtime, which a crib has not; wrap the tool"
        )
        raise InvalidDefinition(msg)
    return schema_of_model(shown)
