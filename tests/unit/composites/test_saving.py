"""What is refused when a definition that names other tools is saved, and what is derived from them."""

from typing import Any

import pytest

from tests.twins import make_definition
from toolcrib import CompositeRoute, Crib, ScriptedModel, code_tool
from toolcrib.contracts import (
    AgenticImplementation,
    AllocatedTool,
    ErrorRule,
    InvalidDefinition,
    JsonSchema,
    LLMConfig,
    NotFound,
    SideEffects,
    ToolDefinition,
)
from toolcrib.kinds.composite.shape import CompositeImplementation

TEXT: JsonSchema = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "limit": {"$ref": "#/$defs/count"}},
    "required": ["text"],
    "additionalProperties": False,
    "$defs": {"count": {"type": "integer", "maximum": 9}},
}
ASKED: JsonSchema = {"type": "object", "properties": {"text": {"type": "string"}, "kind": {}}, "required": ["text"]}


def route(**changes: Any) -> CompositeRoute:
    return CompositeRoute.model_validate({"id": "only", "tool": "search", **changes})


def composite(*routes: CompositeRoute, name: str = "find", **changes: Any) -> ToolDefinition:
    implementation = CompositeImplementation(routes=routes or (route(),))
    return ToolDefinition(name=name, input_schema=ASKED, implementation=implementation, **changes)


async def save(*definitions: ToolDefinition) -> Any:
    """Save a search, an update and these; the last revision."""
    async with Crib("memory://") as crib:
        crib.add(make_definition("search", input_schema=TEXT), make_definition("update", side_effects="writes"))
        for definition in definitions[:-1]:
            await crib.save(definition)
        return await crib.save(definitions[-1])


@pytest.mark.requirement("composites.saved")
@pytest.mark.parametrize(
    ("routes", "said"),
    [
        ((route(), route(tool="update")), "route id 'only' stands twice"),
        ((route(), route(id="later")), "'later' is never taken, because 'only' before it has no condition"),
        ((route(when="input.kind == 'x'"),), "is not an expression; write it as"),
        ((route(when="is ${input.kind}"),), "is not an expression; write it as"),
        ((route(when="${input.knid == 1}"),), "route 'only': when: .*did you mean 'input.kind'"),
        ((route(when="${input.kind ==}"),), "route 'only': when: "),
        ((route(output="${result}"),), "route 'only': output: unknown placeholder"),
        ((route(output="found"),), "output 'found' is not an expression"),
        ((route(input={"text": "${input.txt}"}),), "input: unknown placeholder .*did you mean 'input.text'"),
        ((route(input={"text": "${input.text"}),), "input: .*never closed"),
        ((route(input={"query": "${input.text}"}),), "'search' does not take 'query'; it takes limit, text"),
        ((route(input={"text": "x", "limt": 1}),), "does not take 'limt'; it takes limit"),
        ((route(input={}),), "'search' needs 'text', which is not given"),
        ((route(input={"text": 5}),), "text: 5 is not of type"),
        ((route(defaults={"limit": 10}),), "limit: 10 is greater than the maximum of 9"),
    ],
)
async def test_routes_that_could_not_work_are_refused_with_what_to_do(routes: tuple[CompositeRoute, ...], said: str):
    with pytest.raises(InvalidDefinition, match=said):
        await save(composite(*routes))


@pytest.mark.requirement("composites.saved")
async def test_an_operation_that_does_not_exist_is_not_found():
    with pytest.raises(NotFound, match=r"no tool 'serch'.*search"):
        await save(composite(route(tool="serch")))


@pytest.mark.requirement("composites.saved")
async def test_a_composite_of_no_declared_parameters_may_read_any_and_gives_all_to_one_that_declares_none():
    free = composite(route(tool="update", when="${input.whatever}"), route(id="two", input={"text": "${input.a.b}"}))

    assert (await save(free.model_copy(update={"input_schema": {"type": "object"}}))).name == "find"


@pytest.mark.requirement("composites.effects")
@pytest.mark.parametrize(("operation", "effects"), [("search", "reads"), ("update", "writes")])
async def test_side_effects_that_nobody_gave_are_those_of_the_operations(operation: str, effects: SideEffects):
    assert (await save(composite(route(tool=operation)))).definition.side_effects == effects


@pytest.mark.requirement("composites.effects")
async def test_a_composite_that_says_less_than_its_operations_do_is_refused():
    assert (await save(composite(side_effects="writes"))).definition.side_effects == "writes"
    with pytest.raises(InvalidDefinition, match=r"says side_effects 'reads', and its operation 'update' writes"):
        await save(composite(route(tool="update"), side_effects="reads"))


@pytest.mark.requirement("callees.cycles")
async def test_a_tool_that_would_call_itself_is_refused_with_the_circle():
    with pytest.raises(InvalidDefinition, match="'find' would call itself: find -> find; take one"):
        await save(composite(route(tool="find")))

    first = composite(name="a")
    agent = ToolDefinition(
        name="b",
        implementation=AgenticImplementation(
            mode="agentic", llm=LLMConfig(model="scripted:x"), system_prompt="x", tools=(AllocatedTool(tool="a"),)
        ),
    )
    async with Crib("memory://", models={"scripted:x": ScriptedModel([])}) as crib:
        crib.add(make_definition("search", input_schema=TEXT), first, agent, composite(route(tool="b"), name="c"))
        with pytest.raises(InvalidDefinition, match="'a' would call itself: a -> c -> b -> a"):
            await crib.save(composite(route(tool="c"), name="a", version="1.1.0"))


@pytest.mark.requirement("callees.cycles")
async def test_a_new_version_may_call_an_older_one_of_itself_by_its_range():
    first, other = composite(name="a"), composite(route(tool="a@1.0.0"), name="c")
    newer = composite(route(tool="c"), name="a", version="2.0.0")

    assert (await save(first, other, newer)).ref == "a@2.0.0"
    with pytest.raises(InvalidDefinition, match="a -> a"):
        await save(first, composite(route(tool="a@>=1.0.0"), name="a", version="2.0.0"))


@pytest.mark.requirement("callees.cycles", "callees.fallbacks_saved")
async def test_a_fallback_that_leads_back_is_refused():
    first = make_definition("first", input_schema=TEXT)
    second = make_definition("second", input_schema=TEXT, error_handling=(_falls_back("first"),))

    with pytest.raises(InvalidDefinition, match="first -> second -> first"):
        await save(first, second, first.model_copy(update={"error_handling": (_falls_back("second"),)}))


@pytest.mark.requirement("callees.fallbacks_saved")
@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (ErrorRule(when="5xx", action="fallback"), "has action 'fallback' and tool None; name the tool"),
        (ErrorRule(when="5xx", action="fail", tool="search"), "has action 'fail' and tool 'search'"),
        (ErrorRule(when="5xx", action="fallback", tool="update"), "fallback 'update' after '5xx' writes"),
        (ErrorRule(when="5xx", action="fallback", tool="search"), "gets the same arguments, and 'search' does not"),
        (ErrorRule(when="5xx", action="fallback", tool="serch"), "no tool 'serch'"),
    ],
)
async def test_a_fallback_that_could_not_stand_in_is_refused(rule: ErrorRule, said: str):
    with pytest.raises((InvalidDefinition, NotFound), match=said):
        await save(make_definition("first", input_schema=ASKED, error_handling=(rule,)))


def _falls_back(tool: str) -> ErrorRule:
    return ErrorRule(when="TIMEOUT", action="fallback", tool=tool)


@pytest.mark.requirement("callees.exist")
async def test_code_and_composites_that_name_a_tool_which_is_not_there_are_refused():
    async with Crib("memory://") as crib:
        for definition in (composite(), code_tool("late", "def main():\n    return search()", tools=["search"])):
            with pytest.raises(NotFound, match="no tool 'search'"):
                await crib.save(definition)
