"""Authors at work: default prompts, proposals, the history of a prompt, and a prompt's test."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from tests.unit.agents.crm import MODEL, Crm, PricedModel, asks, read_plan
from toolcrib import AgenticContext, AgenticStep, Crib, LLMConfig, ReferenceSource, ScriptedModel, tool
from toolcrib.agents import agentic_definition, default_prompt
from toolcrib.contracts import (
    AgenticImplementation,
    Conflict,
    InvalidDefinition,
    ModelError,
    NotFound,
    ToolDefinition,
    Unavailable,
)

STAGES = AgenticContext(reference_data=(ReferenceSource(name="stages", tool="list_stages", applies_to=("stage",)),))
STEPS = [
    AgenticStep(id="search_deals", tool="search_deals", purpose="Find the deals"),
    AgenticStep(id="update_deals", tool="update_deals", purpose="Move them"),
]
SAMPLE = {"task": "Move Acme's deals to Negotiation"}


def deals(**changes: Any) -> ToolDefinition:
    settings: dict[str, Any] = {
        "mode": "deterministic",
        "llm": LLMConfig(model=MODEL),
        "steps": STEPS,
        "context": STAGES,
        "description": "Manage deals in the CRM.",
        **changes,
    }
    return agentic_definition("deals", **settings)


def prompt(definition: ToolDefinition) -> str:
    assert isinstance(definition.implementation, AgenticImplementation)
    return definition.implementation.system_prompt


def written(text: str, reason: str = "clearer") -> str:
    return orjson.dumps({"text": text, "reason": reason}).decode()


@asynccontextmanager
async def crib_with(model: ScriptedModel, crm: Crm | None = None, **changes: Any) -> AsyncGenerator[Crib]:
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(*(crm or Crm()).tools, deals(**changes))
        yield crib


def test_the_default_prompt_says_what_an_author_would_say():
    said = prompt(deals(result_schema={"type": "object", "properties": {"moved": {"type": "integer"}}}))

    assert said.startswith("Manage deals in the CRM.")
    assert "1. search_deals: Find the deals\n2. update_deals: Move them" in said
    assert "{{integration_schema}}" in said
    assert "## stages\n{{reference_data.stages}}" in said
    assert "{{user_task}}" in said
    assert '{"moved": integer}' in said
    assert "ask a question instead of guessing" in said


async def test_a_tool_that_was_just_defined_in_python_has_nothing_to_regenerate():
    async with Crib("memory://", models={MODEL: ScriptedModel([])}) as crib:
        crib.add(*Crm().tools)
        crib.agentic_tool("plain", mode="deterministic", model=MODEL, steps=["search_deals"], description="Find deals.")
        proposal = await crib.prompts.regenerate("plain")

    assert proposal.diff == ""
    assert proposal.reason == "the prompt is the default one and nothing has changed since"


def test_the_default_prompt_of_a_choice_lists_the_tools_at_run_time():
    said = prompt(deals(mode="agentic", steps=(), tools=["search_deals"], context=None))

    assert "{{available_tools}}" in said
    assert "valid values" not in said.lower()


def test_equal_definitions_have_equal_default_prompts():
    assert prompt(deals()) == prompt(deals())


def test_a_step_without_a_purpose_says_what_its_tool_does():
    definition = deals(steps=["search_deals"])
    assert isinstance(definition.implementation, AgenticImplementation)
    tools = {"search_deals": Crm().tools[0].definition}

    assert "1. search_deals: Deals whose company name contains the text\n" in default_prompt(
        definition.implementation, tools=tools
    )


async def test_a_regenerated_prompt_is_a_proposal_and_stores_nothing():
    async with crib_with(ScriptedModel([]), system_prompt="Do {{user_task}}.") as crib:
        proposal = await crib.prompts.regenerate("deals")

        assert (proposal.current, proposal.source) == ("Do {{user_task}}.", "generator")
        assert (proposal.cost_usd, proposal.usage.total_tokens) == (0, 0)
        assert "-Do {{user_task}}." in proposal.diff
        assert "+# Operations, in this order" in proposal.diff
        assert prompt(crib.registry.require("default", "deals").definition) == "Do {{user_task}}."


async def test_an_accepted_proposal_is_a_new_revision():
    async with crib_with(ScriptedModel([]), system_prompt="Do {{user_task}}.") as crib:
        saved = await crib.prompts.accept(await crib.prompts.regenerate("deals"))

        assert saved.revision == 2
        assert prompt(saved.definition) == prompt(deals())
        assert (await crib.prompts.regenerate("deals")).diff == ""


async def test_a_proposal_says_what_has_changed_since_the_prompt_was_made():
    async with crib_with(ScriptedModel([]), system_prompt="Do {{user_task}}.") as crib:
        await crib.open()

        @tool(name="search_deals", side_effects="reads")
        async def search_by_company(company: str, owner: str) -> None:
            """Deals of a company and an owner."""

        crib.add(search_by_company)
        proposal = await crib.prompts.regenerate("deals")

        assert "owner (string) was added, and it is required" in proposal.reason


async def test_a_proposal_for_a_revision_that_is_not_current_any_more_is_refused():
    async with crib_with(ScriptedModel([]), system_prompt="Do {{user_task}}.") as crib:
        proposal = await crib.prompts.regenerate("deals")
        await crib.save(deals(system_prompt="Do it: {{user_task}}."))

        with pytest.raises(Conflict, match="read it again"):
            await crib.prompts.accept(proposal)


async def test_a_proposal_that_was_edited_into_nonsense_is_refused():
    async with crib_with(ScriptedModel([])) as crib:
        proposal = (await crib.prompts.regenerate("deals")).model_copy(update={"proposed": "{{user_tsk}}"})

        with pytest.raises(InvalidDefinition, match="user_task"):
            await crib.prompts.accept(proposal)


async def test_the_tool_s_own_model_writes_a_prompt_when_it_is_asked_to():
    model = PricedModel([written("Move deals: {{user_task}} {{reference_data.stages}}")])
    async with crib_with(model) as crib:
        proposal = await crib.prompts.regenerate("deals", source="model")

    assert (proposal.source, proposal.reason) == ("model", "clearer")
    assert proposal.proposed.startswith("Move deals")
    assert proposal.usage.total_tokens > 0
    assert str(proposal.cost_usd) == "0.10"
    assert "Move them" in model.requests[0].messages[0].text


async def test_a_model_is_told_once_what_is_wrong_with_its_text():
    model = ScriptedModel([written("{{user_tsk}}"), written("Do {{user_task}}.")])
    async with crib_with(model) as crib:
        proposal = await crib.prompts.regenerate("deals", source="model")

    assert proposal.proposed == "Do {{user_task}}."
    assert "user_task" in model.requests[1].messages[-1].text


@pytest.mark.parametrize("answers", [["prose", "more prose"], [ModelError("auth", "no key", status=401)]], ids=str)
async def test_a_model_that_writes_nothing_usable_is_reported(answers: list[Any]):
    async with crib_with(ScriptedModel(answers)) as crib:
        with pytest.raises(Unavailable, match="wrote no usable system_prompt"):
            await crib.prompts.regenerate("deals", source="model")


async def test_a_description_for_parents_is_proposed_and_accepted():
    async with crib_with(ScriptedModel([])) as crib:
        proposal = await crib.prompts.describe("deals")
        saved = await crib.prompts.accept(proposal)

    assert proposal.proposed.startswith("Use this tool to manage deals in the CRM.")
    assert saved.definition.long_description == proposal.proposed


async def test_a_description_that_forgets_an_input_is_refused():
    async with crib_with(ScriptedModel([written("Use it."), written("Use it, please.")])) as crib:
        proposal = (await crib.prompts.describe("deals")).model_copy(update={"proposed": "Use it."})

        with pytest.raises(InvalidDefinition, match="required input 'task'"):
            await crib.prompts.accept(proposal)
        with pytest.raises(Unavailable, match="must begin with 'Use this tool'"):
            await crib.prompts.describe("deals", source="model")


async def test_the_history_of_a_prompt_is_that_of_the_tool():
    async with crib_with(ScriptedModel([]), system_prompt="One {{user_task}}") as crib:
        await crib.save(deals(system_prompt="Two {{user_task}}"))
        await crib.save(deals(system_prompt="Two {{user_task}}", description="Other."))
        history = await crib.prompts.history("deals")
        difference = await crib.prompts.compare("deals", 1, 2)

    assert [(entry.revision, entry.changed, entry.current) for entry in history] == [
        (1, True, False),
        (2, True, False),
        (3, False, True),
    ]
    assert difference.diff.splitlines() == [
        "--- revision 1",
        "+++ revision 2",
        "@@ -1 +1 @@",
        "-One {{user_task}}",
        "+Two {{user_task}}",
    ]


async def test_a_prompt_is_rolled_back_by_a_new_revision():
    async with crib_with(ScriptedModel([]), system_prompt="One {{user_task}}") as crib:
        await crib.save(deals(system_prompt="Two {{user_task}}"))
        await crib.prompts.roll_back("deals", 1, after=2)

        assert prompt(crib.registry.require("default", "deals").definition) == "One {{user_task}}"
        assert [entry.revision for entry in await crib.prompts.history("deals")] == [1, 2, 3]
        with pytest.raises(Conflict):
            await crib.prompts.roll_back("deals", 2, after=2)


async def test_a_roll_back_across_versions_is_what_a_call_gets():
    async with crib_with(ScriptedModel([]), system_prompt="One {{user_task}}") as crib:
        await crib.save(deals(system_prompt="Two {{user_task}}", version="2.0.0"))
        saved = await crib.prompts.roll_back("deals", 1)

        assert saved.version == "2.0.0"
        assert prompt(crib.registry.require("default", "deals").definition) == "One {{user_task}}"


async def test_a_revision_that_there_is_not_is_named():
    async with crib_with(ScriptedModel([])) as crib:
        for attempt in (crib.prompts.compare("deals", 1, 9), crib.prompts.roll_back("deals", 9)):
            with pytest.raises(NotFound, match="no revision 9; it has 1"):
                await attempt


async def test_a_tool_without_a_model_has_no_prompt():
    async with crib_with(ScriptedModel([])) as crib:
        for attempt in (
            crib.prompts.regenerate("search_deals"),
            crib.prompts.history("search_deals"),
            crib.prompts.describe("search_deals", source="model"),
            crib.prompts.test(Crm().tools[0].definition, {}),
        ):
            with pytest.raises(InvalidDefinition, match="has no prompt; name an agentic one"):
                await attempt
        assert (await crib.prompts.describe("search_deals")).proposed.startswith("Use this tool")


async def test_the_test_of_a_sequence_shows_the_plan_and_calls_nothing():
    crm, model = Crm(), PricedModel([orjson.dumps(read_plan()).decode()])
    async with crib_with(model, crm) as crib:
        tested = await crib.prompts.test(deals(), SAMPLE)
        runs = await crib.store.journal.runs("default")

    assert tested.problems == ()
    assert tested.ok
    assert "Negotiation" in (tested.system_prompt or "")
    assert tested.reasoning == "Find the deals, then move them."
    assert [(call.step, call.tool, call.for_each) for call in tested.calls] == [
        ("search_deals", "search_deals", None),
        ("update_deals", "update_deals", "${search_deals.results}"),
    ]
    assert (crm.searches, crm.updates, runs) == ([], [], [])
    assert str(tested.cost_usd) == "0.10"
    assert tested.usage.total_tokens > 0


async def test_the_test_of_a_choice_shows_the_first_calls_and_makes_none():
    crm = Crm()
    first = asks(("search_deals", {"company": "Acme"}), ("update_deals", {"ids": [], "stage": "none"}), text="Look.")
    changes: dict[str, Any] = {"mode": "agentic", "steps": (), "tools": ["search_deals", "update_deals"]}
    async with crib_with(ScriptedModel([first]), crm) as crib:
        tested = await crib.prompts.test(deals(**changes), SAMPLE)

    assert tested.answer == "Look."
    assert [call.tool for call in tested.calls] == ["search_deals", "update_deals"]
    assert "'update_deals' do not fit" in tested.problems[0]
    assert (crm.searches, crm.updates) == ([], [])


@pytest.mark.parametrize(
    ("call", "said"),
    [(("forget", "{}"), "'forget', which is not among its tools"), (("search_deals", "{oops"), "are not JSON")],
    ids=str,
)
async def test_a_call_that_could_not_be_made_is_a_problem(call: tuple[str, Any], said: str):
    changes: dict[str, Any] = {"mode": "agentic", "steps": (), "tools": ["search_deals"], "context": None}
    async with crib_with(ScriptedModel([asks(call)])) as crib:
        tested = await crib.prompts.test(deals(**changes), SAMPLE)

    assert said in tested.problems[0]


async def test_an_unknown_placeholder_is_a_problem_and_the_model_is_not_asked():
    model = ScriptedModel([])
    async with crib_with(model) as crib:
        implementation = deals().implementation.model_copy(update={"system_prompt": "{{user_tsk}}"})
        tested = await crib.prompts.test(deals().model_copy(update={"implementation": implementation}), SAMPLE)

    assert "did you mean" in tested.problems[0] or "user_task" in tested.problems[0]
    assert (tested.system_prompt, model.requests) == (None, [])


async def test_a_model_that_fails_is_a_problem_beside_the_prompt_that_it_got():
    async with crib_with(ScriptedModel([ModelError("auth", "no key", status=401)])) as crib:
        tested = await crib.prompts.test(deals(), SAMPLE)

    assert "no key" in tested.problems[0]
    assert "Negotiation" in (tested.system_prompt or "")


async def test_a_limit_that_leaves_no_room_for_the_first_question_is_a_problem():
    limits = {"max_total_tokens": 10}
    async with crib_with(ScriptedModel([])) as crib:
        implementation = deals().implementation
        assert isinstance(implementation, AgenticImplementation)
        tight = implementation.model_copy(update={"limits": implementation.limits.model_copy(update=limits)})
        tested = await crib.prompts.test(deals().model_copy(update={"implementation": tight}), SAMPLE)

    assert "max_total_tokens" in tested.problems[0]


pytestmark = pytest.mark.requirement("authoring.prompts")
