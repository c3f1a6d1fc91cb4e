"""A world whose tools do what their definitions say, so that a changed definition is a changed tool.

What a tool puts out follows from its output schema, its arguments, and everything in its definition that has an effect.
Nothing is reached outside of the process, and nothing depends on time.
"""

import json
from typing import Any, cast

from toolcrib import Crib, DefinitionOptions, ScriptedModel
from toolcrib.contracts import (
    AgentImplementation,
    AllocatedTool,
    ErrorCode,
    ErrorRule,
    Json,
    JsonObject,
    JsonSchema,
    LLMConfig,
    PinnedHandle,
    PinSelector,
    Reason,
    ToolDefinition,
    content_hash,
)
from toolcrib.contracts.workflows import ConditionBinding, StepRegistration
from toolcrib.core.executor import CallFailed, Dispatch, Outcome, error
from toolcrib.crib.container.plugins import Plugins
from toolcrib.kinds.composite.shape import CompositeImplementation, CompositeRoute
from toolcrib.kinds.plugin.shape import PluginImplementation
from toolcrib.llm import Message, Request, ScriptedAnswer, ToolCall, ToolResult

MODEL = "scripted:reader"

_SAID = {"title", "description", "long_description", "usage", "examples", "tags", "cost_hint", "estimated_latency_s"}
_SHAPES = {"version", "source", "input_schema", "output_schema", "timeout_s", "max_output_bytes"}
_RULES = {
    "category",
    "confirmation_expires_s",
    "cost_from",
    "cost_usd_per_call",
    "deletes",
    "rate_limit",
    "requires_confirmation",
    "security_uri",
    "untrusted",
}

STOCK: JsonSchema = {
    "type": "object",
    "properties": {
        "sku": {"type": "string"},
        "count": {"type": "integer", "default": 1},
        "unit": {"enum": ["piece", "box"]},
        "note": {"type": ["string", "null"]},
    },
    "required": ["sku"],
    "additionalProperties": False,
}
LEFT: JsonSchema = {
    "type": "object",
    "properties": {
        "by": {"type": "string"},
        "total": {"type": "integer"},
        "lines": {
            "type": "array",
            "items": {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]},
        },
        "hint": {"type": ["string", "null"]},
    },
    "required": ["by", "total", "lines", "hint"],
}


class World:
    """The runtime of all tools."""

    @property
    def config_schema(self) -> JsonSchema:
        """Anything."""
        return {"type": "object"}

    async def run(self, dispatch: Dispatch) -> Outcome:
        """Do what the definition says."""
        definition = dispatch.tool.definition
        if cast("PluginImplementation", definition.implementation).config.get("fails"):
            raise CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED, f"{definition.name!r} is down"))
        return Outcome(_sample(definition.output_schema or True, _effect_of(definition), dispatch.input))


def tool(name: str, *, input_schema: JsonSchema = STOCK, **fields: Any) -> ToolDefinition:
    """A tool of the world."""
    config = fields.pop("config", {})
    given: dict[str, Any] = {"side_effects": "reads", "output_schema": LEFT, "description": f"{name}."} | fields
    return ToolDefinition(
        name=name,
        input_schema=input_schema,
        implementation=PluginImplementation(runtime="world", config=config),
        **given,
    )


def crib(url: str = "memory://") -> Crib:
    """A crib with the world's runtime, and a model that reads what its tools take."""
    plugins = Plugins(makers={"world": lambda _host: World()})
    return Crib(
        url, definitions=DefinitionOptions(plugins=plugins), models={MODEL: ScriptedModel(_answer, name="reader")}
    )


async def furnish(crib: Crib) -> None:
    """Save the tools, and the vocabulary."""
    down = {"fails": True}
    rule = ErrorRule(when="PROVIDER_ERROR", action="fallback", tool="stock")
    for definition in (
        tool("stock"),
        tool("price"),
        tool("book", side_effects="writes"),
        tool("refund", side_effects="writes"),
        tool("flaky", config=down),
        tool("shaky", config=down, error_handling=(rule,)),
        composite("lookup", "stock"),
        composite("outer_lookup", "lookup"),
        agent("scout", "stock"),
        agent("pricer", "price"),
    ):
        await crib.save(definition)
    await crib.steps.save(StepRegistration(name="shop.stock", tool="stock", input_mapping={"sku": "${input.sku}"}))
    await crib.conditions.save(ConditionBinding(name="enough", parameters=("n",), expression="${n > 0}"))


def composite(name: str, operation: str, **fields: Any) -> ToolDefinition:
    """A tool in front of one operation."""
    route = CompositeRoute(id="only", tool=operation, input={"sku": "${input.sku}"})
    return ToolDefinition(
        name=name,
        input_schema=STOCK,
        output_schema=LEFT,
        side_effects="reads",
        implementation=CompositeImplementation(routes=(route,)),
        **fields,
    )


def agent(name: str, allotted: str, **fields: Any) -> ToolDefinition:
    """An agent that calls its one tool and tells what came of it."""
    pin = PinnedHandle(name="seen", selector=PinSelector(tool=allotted), on_missing="null")
    return ToolDefinition(
        name=name,
        category="agent",
        description=f"{name}.",
        input_schema={"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
        implementation=AgentImplementation(
            llm=LLMConfig(model=MODEL),
            tools=(AllocatedTool(tool=allotted),),
            pins=(pin,),
            side_effects="writes",
        ),
        **fields,
    )


def _answer(request: Request) -> ScriptedAnswer:
    """Call each tool once with what it needs, and then say what came of it."""
    said = [part for message in request.messages for part in message.parts if isinstance(part, ToolResult)]
    if said or not request.tools.tools:
        return " | ".join(result.text for result in said) or "there is nothing to call"
    calls = tuple(
        ToolCall(str(number), offered.name, json.dumps(_sample(_needed(offered.schema), "", {})))
        for number, offered in enumerate(request.tools.tools)
    )
    return Message("assistant", calls)


def _needed(schema: JsonSchema) -> JsonSchema:
    """The arguments that must be given."""
    required = schema.get("required", [])
    return {**schema, "properties": {name: schema["properties"][name] for name in required}}


def _effect_of(definition: ToolDefinition) -> str:
    """A name for what a call does: another one if anything that has an effect is different."""
    effect = definition.model_dump(mode="json", exclude=_SAID | _SHAPES | _RULES)
    return content_hash(effect)[-8:]


def _sample(schema: Json, effect: str, given: JsonObject) -> Json:
    """A value that meets a schema: the same for the same effect and arguments."""
    if not isinstance(schema, dict):
        return {"by": effect}
    known = cast("JsonSchema", schema)
    if "enum" in known:
        return known["enum"][0]
    match _first(known.get("type")):
        case "object":
            return {name: _member(name, part, effect, given) for name, part in known.get("properties", {}).items()}
        case "array":
            return [_sample(known.get("items", True), effect, given)]
        case "integer" | "number":
            return 3
        case "boolean":
            return True
        case "string":
            return effect or "a"
        case _:
            return None


def _first(types: Json) -> Json:
    names = cast("list[Json]", types) if isinstance(types, list) else [types]
    return None if "null" in names else names[0]


def _member(name: str, schema: Json, effect: str, given: JsonObject) -> Json:
    declared = cast("JsonSchema", schema).get("type") if isinstance(schema, dict) else None
    if name in given and declared == "string":
        return given[name]
    return _sample(schema, effect, given)
