"""Agents and agentic tools whose models write their calls: the loop of the text protocol from the outside."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.unit.agents.crm import MODEL, Crm, Found, asks, positions, purposes
from tests.unit.agents.desk import agent, ask
from toolcrib import AgenticTool, Crib, LLMConfig, Result, ScriptedModel, tool
from toolcrib.contracts import AgentDefinition, AgentRequest, Example
from toolcrib.llm import Request, Tool, ToolSet
from toolcrib.llm.text import toolkit_of
from toolcrib.llm.text.examples import write_call

TEXT = {"model": MODEL, "tool_calling": "text"}
SCHEMA: Any = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
READY = "```tool\nreturn finalResponse();\n```"
SEARCH = 'I look.\n```tool\nreturn search_deals("Acme");\n```'


def words(request: Request) -> list[str]:
    return [message.text for message in request.messages]


@pytest.mark.requirement("text.same_as_native", "text.native_calls")
async def test_an_agent_calls_by_text_and_answers():
    result, model = await ask([SEARCH, "Two."], llm=TEXT)

    assert result.ok
    assert result.output == "Two."
    assert positions(result) == ["t1.c1"]
    assert purposes(result) == ["tool_selection", "result_review"]
    asked, told = model.requests[1].messages[1:]
    assert asked.text == SEARCH
    assert told.text.startswith("Call 1, search_deals, returned:\n```result\n")
    assert len(model.requests[0].tools) == 0
    assert model.requests[0].system == model.requests[1].system


@pytest.mark.requirement("text.final_response")
@pytest.mark.parametrize("schema", [None, SCHEMA])
async def test_the_final_answer_is_asked_for_in_its_format_under_the_same_system_prompt(schema: Any):
    final = "Two." if schema is None else '```json\n{"n": 2}\n```'
    fields: dict[str, Any] = {} if schema is None else {"response_format": "structured", "response_schema": schema}
    result, model = await ask([SEARCH, READY, final], llm=TEXT, **fields)

    assert result.ok
    assert purposes(result) == ["tool_selection", "result_review", "formatting"]
    assert result.output == ("Two." if schema is None else {"n": 2})
    assert len({request.system for request in model.requests}) == 1
    assert words(model.requests[2])[:-1] == [*words(model.requests[1]), READY]
    assert '"n"' not in model.requests[0].system
    assert ('"required":["n"]' in words(model.requests[2])[-1]) is (schema is not None)


@pytest.mark.requirement("text.final_response")
async def test_a_final_answer_that_is_none_is_asked_for_again_under_the_same_prompt():
    answers = [SEARCH, READY, "Two.", '{"n": 2}']
    result, model = await ask(answers, llm=TEXT, response_format="structured", response_schema=SCHEMA)

    assert result.output == {"n": 2}
    assert words(model.requests[3])[: len(words(model.requests[2]))] == words(model.requests[2])
    assert len({request.system for request in model.requests}) == 1


@pytest.mark.requirement("text.all_or_none")
async def test_of_an_answer_with_a_malformed_block_nothing_runs_and_the_model_is_told_all_problems():
    crm = Crm(2)
    bad = SEARCH + '\n```tool\nupdate_deals(["d1"], STAGE)\nreturn search_deals(NAME);\n```\n```tool\nfind()\n```'
    result, model = await ask([bad, SEARCH, "Two."], crm=crm, llm=TEXT)

    assert result.output == "Two."
    assert crm.searches == ["Acme"]
    asked, told = words(model.requests[1])[1:]
    assert asked == bad
    assert told.startswith("Nothing was called, because your answer could not be read.")
    assert "\nline 6, column 22: 'STAGE' is not a literal value" in told
    assert "\nline 10, column 1: there is no function 'find'" in told


@pytest.mark.requirement("text.all_or_none")
async def test_skip_makes_the_well_formed_calls_and_tells_the_rest():
    crm = Crm(2)
    bad = SEARCH + "\n```tool\nsearch_deals(NAME)\n```"
    result, model = await ask([bad, "Two."], crm=crm, llm={**TEXT, "on_malformed": "skip"})

    assert result.output == "Two."
    assert crm.searches == ["Acme"]
    told = "\n".join(words(model.requests[1])[2:])
    assert "returned:\n```result" in told
    assert "left out:\nline 6, column 14: 'NAME' is not a literal value" in told


@pytest.mark.requirement("text.all_or_none")
async def test_a_model_that_never_writes_a_call_right_is_given_up():
    result, model = await ask(["```tool\nsearch_deals(NAME)\n```"] * 9, llm=TEXT)

    assert (result.summary.status, result.summary.stop_reason) == ("failed", "error")
    assert result.error is not None
    assert "'NAME' is not a literal value" in result.error.message
    assert len(model.requests) == 3


@pytest.mark.requirement("text.prompt")
async def test_only_a_model_that_writes_its_calls_is_shown_examples_and_results_of_tools():
    example = Example(scenario="Deals of Globex", input={"company": "Globex", "limit": 3})

    @tool(side_effects="reads", examples=(example,))
    async def search(company: str, limit: int | None = None) -> Found:
        """Deals by company."""
        return Found(results=[])

    offered: dict[str, Request] = {}
    for way in ("text", "native"):
        model = ScriptedModel(["Done."])
        async with Crib("memory://", models={MODEL: model}) as crib:
            crib.add(search)
            agent = crib.agent("desk", model=LLMConfig(model=MODEL, tool_calling=way), tools=["search"])
            await agent("Hello?")
        offered[way] = model.requests[0]

    assert '@example Deals of Globex: return search("Globex", 3);' in offered["text"].system
    assert "limit?: number | null): {results: {id: string, name: string, amount: number}[]};" in offered["text"].system
    [shown] = offered["native"].tools.tools
    assert (shown.examples, shown.returns) == ((), None)


def as_text(tools: ToolSet, calls: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """The answer in which a model writes these calls."""
    toolkit = toolkit_of(tools)
    lines = (write_call(toolkit.by_tool[name], arguments) for name, arguments in calls)
    return "\n".join(f"```tool\nreturn {line};\n```" for line in lines)


TASKS: dict[str, list[list[tuple[str, dict[str, Any]]]]] = {
    "one call": [[("search_deals", {"company": "Acme"})]],
    "one after the other": [
        [("search_deals", {"company": "Acme"})],
        [("update_deals", {"ids": ["1", "2"], "stage": "Won"})],
    ],
    "several at once": [
        [("search_deals", {"company": "Acme"}), ("search_deals", {"company": 'It\'s "B"\n```\n`${x}` é'})],
        [("update_deals", {"ids": ["1"], "stage": "Won"}), ("update_deals", {"ids": ["2"], "stage": "Lost"})],
    ],
    "invalid arguments": [[("search_deals", {"company": 5})], [("search_deals", {"company": "Acme"})]],
    "unknown argument": [[("search_deals", {"company": "Acme", "colour": "red"})]],
}


async def played(task: list[list[tuple[str, dict[str, Any]]]], *, by_text: bool) -> tuple[Result, Crm]:
    """A task in agentic mode, by text or by native calls."""
    crm = Crm(3)
    tools = ToolSet([Tool(tool.definition.name, "", tool.definition.input_schema) for tool in crm.tools])
    turns = [as_text(tools, calls) if by_text else asks(*calls) for calls in task]
    async with Crib("memory://", models={MODEL: ScriptedModel([*turns, "All done."])}) as crib:
        crib.add(*crm.tools)
        llm = LLMConfig(model=MODEL, tool_calling="text" if by_text else "native")
        deals: AgenticTool = crib.agentic_tool(
            "deals", mode="agentic", model=llm, tools=["search_deals", "update_deals"]
        )
        return await deals("Do it."), crm


@pytest.mark.requirement("text.same_as_native")
@pytest.mark.parametrize("task", TASKS)
async def test_the_same_task_by_text_and_by_native_calls_has_the_same_calls_and_the_same_end(task: str):
    native, native_crm = await played(TASKS[task], by_text=False)
    text, text_crm = await played(TASKS[task], by_text=True)

    def receipts(result: Result) -> list[Any]:
        left_out = {"t_start", "t_end", "timings", "run_id"}
        return [orjson.loads(one.model_dump_json(exclude=left_out)) for one in result.envelopes]

    assert native.ok
    assert text.output == native.output
    assert positions(text) == positions(native)
    assert receipts(text) == receipts(native)
    assert (text_crm.searches, text_crm.updates) == (native_crm.searches, native_crm.updates)


@pytest.mark.requirement("text.final_response")
async def test_an_agentic_tool_puts_its_answer_into_the_schema_where_the_conversation_stands():
    model = ScriptedModel([SEARCH, READY, '{"n": 2}'])
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(*Crm(2).tools)
        llm = LLMConfig.model_validate(TEXT)
        deals = crib.agentic_tool("deals", mode="agentic", model=llm, tools=["search_deals"], result_schema=SCHEMA)
        result = await deals("How many?")

    assert result.output == {"n": 2}
    assert len({request.system for request in model.requests}) == 1
    assert words(model.requests[2])[: len(words(model.requests[1]))] == words(model.requests[1])


@pytest.mark.requirement("text.native_calls")
async def test_who_follows_a_run_sees_the_words_and_the_calls_and_no_block():
    model = ScriptedModel([SEARCH, READY, "Two."])
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(*Crm(2).tools)
        crib.agent("desk", model=LLMConfig.model_validate(TEXT), tools=["search_deals"])
        begun = await crib.executions.submit("desk", AgentRequest(message="How many?"))
        told = [news.event async for news in crib.executions.follow(begun.run_id, drive=True)]

    said = "".join(event.text for event in told if event.type == "text_delta")
    assert said == "I look.\nTwo."
    assert [event.name for event in told if event.type == "tool_call_start"] == ["search_deals"]
    assert told[-1].type == "done"


@pytest.mark.requirement("text.native_calls")
def test_the_configuration_of_an_agent_names_the_protocol():
    agent = AgentDefinition.model_validate({"name": "desk", "llm": {**TEXT, "on_malformed": "skip"}})
    assert (agent.llm.tool_calling, agent.llm.on_malformed) == ("text", "skip")


@pytest.mark.requirement("text.final_response")
@pytest.mark.parametrize(
    ("given", "schema", "output", "asked"),
    [
        ('"Two."', None, {"response": "Two."}, 2),
        ("{n: 2}", None, {"response": '{"n": 2}'}, 2),
        ("{n: 2}", SCHEMA, {"response": '{"n":2}', "output": {"n": 2}}, 2),
        ('{n: "two"}', SCHEMA, {"response": '{"n":3}', "output": {"n": 3}}, 3),
        ('""', None, {"response": '{"n": 3}'}, 3),
    ],
)
async def test_the_arguments_of_final_response_are_the_answer(given: str, schema: Any, output: Any, asked: int):
    fields: dict[str, Any] = {} if schema is None else {"response_format": "structured", "response_schema": schema}
    ready = f"```tool\nreturn finalResponse({given});\n```"
    result, model = await ask([SEARCH, ready, '{"n": 3}'], llm=TEXT, **fields)

    assert (result.ok, result.summary.output, len(model.requests)) == (True, output, asked)


@pytest.mark.requirement("text.final_response")
@pytest.mark.parametrize(("schema", "output"), [(None, {"summary": '{"n": 2}'}), (SCHEMA, {"n": 2})])
async def test_an_agentic_tool_takes_the_arguments_of_final_response_too(schema: Any, output: Any):
    model = ScriptedModel([SEARCH, "```tool\nreturn finalResponse({n: 2});\n```"])
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(*Crm(2).tools)
        count = crib.agentic_tool(
            "count", mode="agentic", model=LLMConfig.model_validate(TEXT), tools=["search_deals"], result_schema=schema
        )
        result = await count("How many?")

    assert (result.ok, result.output, len(model.requests)) == (True, output, 2)


HERMES = '<tool_call>\n{"name": "search_deals", "arguments": {"company": "Acme"}}\n</tool_call>'
FOREIGN = [
    (HERMES, "<tool_call>"),
    (f"I look.\n\n{HERMES}", "<tool_call>"),
    (f"<think>\nAcme it is.\n</think>\n{HERMES}", "<tool_call>"),
    ('```tool_call\n{"name": "search_deals"}\n```', "```tool_call"),
    ('[TOOL_CALLS] [{"name": "search_deals"}]', "[TOOL_CALLS]"),
    ("<function=search_deals>{}</function>", "<function=search_deals>"),
    ('<invoke name="search_deals">\n</invoke>', '<invoke name="search_deals">'),
    ("<|python_tag|>search_deals()", "<|python_tag|>"),
]


@pytest.mark.requirement("text.foreign_calls")
@pytest.mark.parametrize("calling", ["text", "native"])
@pytest.mark.parametrize(("written", "mark"), FOREIGN)
async def test_a_tool_call_in_words_is_told_and_not_taken_for_the_answer(
    tmp_path: Path, calling: str, written: str, mark: str
):
    call = SEARCH if calling == "text" else asks(("search_deals", {"company": "Acme"}))
    model = ScriptedModel([written, call, "Two."])
    async with Crib(f"sqlite:///{tmp_path}/crib.db", models={MODEL: model}) as crib:
        crib.add(*Crm(2).tools)
        await crib.agents.save(
            agent(llm=LLMConfig.model_validate({**TEXT, "tool_calling": calling}), tools=["search_deals"])
        )
        result = await crib.invoke("desk", {"message": "How many?"})
        replayed = await crib.replay(result.run_id)

    assert (result.output, positions(result)) == ("Two.", ["t2.c1"])
    assert words(model.requests[1])[-2].strip() == written
    assert words(model.requests[1])[-1].startswith(f"Nothing was called: you wrote a call as text ({mark})")
    [warning] = result.summary.warnings
    assert warning.startswith(f"the model {model.name!r} wrote a call as text ({mark}), which was not made;")
    assert (replayed.same, replayed.divergence) == (True, None)


@pytest.mark.requirement("text.foreign_calls")
async def test_a_model_that_writes_such_a_call_again_has_it_taken_for_its_answer_and_the_run_says_so():
    result, model = await ask([HERMES, HERMES], llm=TEXT)

    assert (result.output, len(model.requests)) == (HERMES, 2)
    assert [" and is taken for its answer" in warning for warning in result.summary.warnings] == [False, True]


@pytest.mark.requirement("text.foreign_calls")
@pytest.mark.parametrize(
    "text",
    [
        "It writes <tool_call> and ends with </tool_call>.",
        f"This is what Hermes writes:\n```xml\n{HERMES}\n```\nThat is all.",
        "```python\n[TOOL_CALLS]\n```",
        "<think>\n<tool_call>\n</think>\nTwo.",
    ],
)
async def test_what_is_said_of_such_calls_is_an_answer(text: str):
    result, model = await ask([text], llm=TEXT)

    assert (result.output, len(model.requests), result.summary.warnings) == (text, 1, ())
