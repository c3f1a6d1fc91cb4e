"""OpenAI's definitions of functions with the Python callables that do them, as tools of a crib.

from toolcrib.interfaces.adapters.openai_functions import function_tool

crib.add(function_tool(definition, exchange_rate, side_effects="reads"))
"""

from asyncio import to_thread
from collections.abc import Callable, Mapping
from inspect import isawaitable, iscoroutinefunction
from typing import Any, Unpack

from toolcrib.contracts import InvalidDefinition, Json
from toolcrib.interfaces.adapters.inward import adopt
from toolcrib.kinds.python.functions import FunctionTool, ToolOptions
from toolcrib.llm.base.json_values import obj, text


def function_tool(
    definition: Mapping[str, Json], function: Callable[..., Any], **options: Unpack[ToolOptions]
) -> FunctionTool[..., Any]:
    """A tool with the name, the description and the schema of a definition, done by a function.

    Args:
        definition: A tool of Chat Completions (`{"type": "function", "function": {...}}`) or of the Responses API
            (`{"type": "function", "name": ...}`), or a function alone (`{"name": ..., "parameters": ...}`).
        function: Takes the arguments by name; synchronous or asynchronous.
        **options: As for `toolcrib.tool`.

    Raises:
        InvalidDefinition: It is no definition of a function, or its name or schema is not valid.

    Example:
        from toolcrib.interfaces.adapters.openai_functions import function_tool

        parameters = {"type": "object", "properties": {"currency": {"type": "string"}}, "required": ["currency"]}
        definition = {"type": "function", "function": {"name": "exchange_rate", "parameters": parameters}}
        crib.add(function_tool(definition, lambda currency: 1.1, side_effects="reads"))
        print((await crib.call("exchange_rate", currency="USD")).output)
    """
    described = obj(definition.get("function", definition))
    name, parameters = described.get("name"), described.get("parameters")
    schema: Json = {} if parameters is None else parameters
    if not isinstance(name, str) or not isinstance(schema, dict) or definition.get("type", "function") != "function":
        msg = f"{dict(definition)!r:.200} is not a definition of a function; give it a 'name' and 'parameters'"
        raise InvalidDefinition(msg)

    async def call(**arguments: Any) -> Any:
        if iscoroutinefunction(function):
            return await function(**arguments)
        returned = await to_thread(function, **arguments)
        return await returned if isawaitable(returned) else returned

    description = text(described.get("description")).strip()
    return adopt(call, function, name=name, description=description, schema=obj(schema), options=options)
