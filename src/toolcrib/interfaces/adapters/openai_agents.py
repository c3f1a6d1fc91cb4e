"""OpenAI Agents SDK: tools of a crib as `FunctionTool`s, and its function tools in a crib.

from toolcrib import openai_agents

agent = Agent("desk", tools=await openai_agents.load(crib.acting_as(ann), "search_deals"))
crib.add(*openai_agents.tools(exchange_rate, side_effects="reads"))
"""

from typing import Any, Unpack

import orjson

from toolcrib.contracts import InvalidSettings, Json
from toolcrib.contracts.base.errors import missing_extra
from toolcrib.core.export import describe, translate_schema
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.adapters.calling import HomeLoop, OfferedTool, call_offered, find_offered
from toolcrib.interfaces.adapters.inward import adopt
from toolcrib.kinds.python.functions import FunctionTool as CribTool
from toolcrib.kinds.python.functions import ToolOptions
from toolcrib.llm.base.json_values import obj

try:
    from agents import FunctionTool
    from agents.tool_context import ToolContext
except ModuleNotFoundError as problem:
    raise InvalidSettings(
        missing_extra("the adapter for the OpenAI Agents SDK", problem.name, "openai-agents")
    ) from problem


async def load(crib: ActingCrib, *names: str) -> list[FunctionTool]:
    """The tools of a crib as function tools of the OpenAI Agents SDK, each call of which is a run of the principal.

    A tool is strict if its schema has a strict form that loses nothing. A failed call is told to the model as
    `CODE: message`.

    Args:
        crib: A crib, or `crib.acting_as(principal)`.
        *names: `name` or `name@range`; if none is given, every tool that the principal may execute.

    Raises:
        NotFound: There is no such tool, or the principal may not execute it.

    Example:
        from toolcrib import openai_agents

        [search] = await openai_agents.load(crib, "search_deals")
        print(search.params_json_schema)
    """
    home = HomeLoop()
    return [_outward(crib, home, offered) for offered in await find_offered(crib, names)]


def _outward(crib: ActingCrib, home: HomeLoop, offered: OfferedTool) -> FunctionTool:
    definition = offered.tool.definition
    strict = translate_schema(definition.input_schema, "openai_strict")
    is_strict = not (strict.lost or strict.refused)
    schema = strict.schema if is_strict else translate_schema(definition.input_schema, "openai").schema

    async def invoke(context: ToolContext[Any], arguments: str) -> Any:
        try:
            given: Json = orjson.loads(arguments or "{}")
        except orjson.JSONDecodeError as error:
            return f"VALIDATION_ERROR: the arguments of {offered.name!r} are not JSON: {error}. Correct them"
        if not isinstance(given, dict):
            return f"VALIDATION_ERROR: the arguments of {offered.name!r} must be a JSON object. Correct them"
        answer = await home.run(lambda: call_offered(crib, offered, obj(given)))
        return answer.message if answer.ok else answer.explanation

    return FunctionTool(
        name=offered.name,
        description=describe(definition),
        params_json_schema=schema,
        on_invoke_tool=invoke,
        strict_json_schema=is_strict,
    )


def tools(*originals: FunctionTool, **options: Unpack[ToolOptions]) -> list[CribTool[..., Any]]:
    """Function tools of the OpenAI Agents SDK as tools of a crib, governed like all others.

    The SDK tells a model of most failures by a text, which is then the output of the call. Make the tool with
    `failure_error_function=None` to have them as errors. Its guardrails and approvals belong to the SDK's own agents;
    a crib has its own.

    Args:
        *originals: As `@function_tool` makes them.
        **options: As for `toolcrib.tool`, for each of them.

    Example:
        from agents import function_tool
        from toolcrib import openai_agents

        @function_tool
        def exchange_rate(currency: str) -> float:
            "Look up a rate."
            return 1.1

        crib.add(*openai_agents.tools(exchange_rate, side_effects="reads"))
        print((await crib.call("exchange_rate", currency="USD")).output)
    """
    return [_inward(original, options) for original in originals]


def _inward(original: FunctionTool, options: ToolOptions) -> CribTool[..., Any]:
    schema = original.params_json_schema

    async def call(**arguments: Any) -> Any:
        text = orjson.dumps(arguments).decode()
        context = ToolContext[Any](context=None, tool_name=original.name, tool_call_id="call", tool_arguments=text)
        return await original.on_invoke_tool(context, text)

    description = original.description.strip()
    return adopt(call, original, name=original.name, description=description, schema=schema, options=options)
