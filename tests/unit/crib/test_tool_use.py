"""A model, some tools and two prompts: `use_tools_with_ai`."""

from typing import Any

import pytest

import toolcrib
from tests.unit.agents.crm import MODEL, Crm, positions
from toolcrib import Crib, LLMConfig, ScriptedModel, use_tools_with_ai
from toolcrib.contracts import InvalidInput, Limits, NotFound

pytestmark = pytest.mark.requirement("text.one_way_in")

SCHEMA: Any = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
SEARCH = '```tool\nreturn search_deals("Acme");\n```'
READY = "```tool\nreturn finalResponse();\n```"


def double(number: int) -> int:
    """Twice the number."""
    return 2 * number


async def test_a_model_uses_functions_and_gives_json():
    model = ScriptedModel(["```tool\nreturn double(21);\n```", READY, '{"n": 42}'])
    used = await use_tools_with_ai(model, [double], "Be exact.", "Double 21.", response_format=SCHEMA)

    assert used.output == {"n": 42}
    assert used.ok
    assert [(envelope.name, envelope.output) for envelope in used.envelopes] == [("double", 42)]
    assert positions(used) == ["t1.c1"]
    assert len({request.system for request in model.requests}) == 1
    assert model.requests[0].system.startswith("Be exact.")


async def test_without_a_format_the_answer_is_its_text():
    used = await use_tools_with_ai(ScriptedModel(["Hello."]), [], "", "Hi.")

    assert (used.output, used.summary.stop_reason) == ("Hello.", "final_answer")


async def test_a_run_in_a_crib_stands_in_its_journal_and_is_repeatable():
    crm = Crm(2)
    model = ScriptedModel([SEARCH, "Two.", SEARCH, "Two.", "None."])
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(*crm.tools)
        used = [
            await use_tools_with_ai(MODEL, ["search_deals", double], "Be brief.", "How many?", crib=crib)
            for _ in range(2)
        ]
        other = await use_tools_with_ai(LLMConfig(model=MODEL), [], "Be long.", "How many?", crib=crib)
        traces = [await crib.trace(one.run_id) for one in (*used, other)]
        agents = await crib.agents.page()

    assert [one.output for one in (*used, other)] == ["Two.", "Two.", "None."]
    assert crm.searches == ["Acme", "Acme"]
    assert all(trace.run_id for trace in traces)
    assert len(agents.items) == 2


async def test_malformed_calls_are_skipped_if_that_is_wanted():
    model = ScriptedModel([f"{SEARCH}\n```tool\nsearch_deals(X)\n```", "Two."])
    crm = Crm(2)
    used = await use_tools_with_ai(model, crm.tools, "", "How many?", on_malformed="skip")

    assert (used.output, crm.searches) == ("Two.", ["Acme"])


async def test_a_run_that_does_not_end_with_an_answer_has_no_output_and_says_why():
    limits = Limits(max_iterations=1)
    used = await use_tools_with_ai(ScriptedModel([SEARCH, "Two."]), Crm(2).tools, "", "How many?", limits=limits)
    assert (used.output, used.summary.stop_reason) == (None, "max_iterations")

    model = ScriptedModel([READY, "no", "no", "no"])
    used = await use_tools_with_ai(model, [double], "", "Double.", response_format=SCHEMA)
    assert used.output is None
    assert used.error is not None


async def test_a_model_itself_needs_a_crib_that_knows_it():
    async with Crib("memory://") as crib:
        with pytest.raises(InvalidInput, match="must know the model"):
            await use_tools_with_ai(ScriptedModel([]), [], "", "Hi.", crib=crib)


async def test_a_tool_that_does_not_exist_is_reported():
    with pytest.raises(NotFound, match="nowhere"):
        await use_tools_with_ai(ScriptedModel(["Hi."]), ["nowhere"], "", "Hi.")


def test_it_is_offered_at_the_top():
    assert toolcrib.use_tools_with_ai is use_tools_with_ai
    assert toolcrib.use_tools_with_ai is use_tools_with_ai
