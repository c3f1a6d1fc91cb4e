"""The five acceptance criteria of the specification of agentic tools (000, section 2.4), each a test by its name."""

import json
import re
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.agents.crm import MODEL, Crm, Deal, PricedModel, asks, plan, told
from toolcrib import AgenticContext, AllocatedTool, Crib, ReferenceSource, ScriptedModel, tool
from toolcrib.contracts import JsonObject, LLMStep, ToolStep
from toolcrib.core.runs import Result
from toolcrib.llm import Message, Request

pytestmark = pytest.mark.requirement("agentic.acceptance")

TASK = "Update all Acme Corp deals to Negotiation"
LIVE = AgenticContext(reference_data=(ReferenceSource(name="deal_stages", tool="list_stages", applies_to=("stage",)),))
PROMPT = "Schema:\n{{integration_schema}}\nStages: {{reference_data.deal_stages}}\nTask: {{user_task}}"
SUMMARY: JsonObject = {"summary": "Updated 7 deals to Negotiation", "deals_affected": 7}
READING: list[JsonObject] = [
    {"words": "Update all", "use": "request"},
    {"words": "Acme Corp", "use": "condition", "value": "Acme Corp"},
    {"words": "deals", "use": "request"},
    {"words": "to Negotiation", "use": "change", "value": "Negotiation"},
]
RESULT: JsonObject = {
    "type": "object",
    "properties": {"summary": {"type": "string"}, "deals_affected": {"type": "integer"}},
    "required": ["summary", "deals_affected"],
    "additionalProperties": False,
}


def acme(deals: int) -> Crm:
    """The CRM with so many deals of Acme Corp."""
    crm = Crm(0)
    crm.deals = [Deal(id=f"d{number}", name="Acme Corp", amount=100 * number) for number in range(deals)]
    return crm


def moving(**changes: Any) -> JsonObject:
    """The plan that follows from the task; a step may be replaced."""
    return {"reading": READING, **plan(search_deals={"input": {"company": "Acme Corp"}}), **changes}


async def manage_deals(crm: Crm, model: ScriptedModel) -> Result:
    """The deal manager of the specification, invoked once."""
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(*crm.tools)
        deals = crib.agentic_tool(
            "deal-manager",
            mode="deterministic",
            model=MODEL,
            steps=["search_deals", "update_deals"],
            context=LIVE,
            system_prompt=PROMPT,
            result_schema=RESULT,
        )
        result = await deals(TASK)
        assert (await crib.trace(result.run_id)) == result.trace
        return result


def follows(request: Request) -> str:
    """Plans and answers from nothing but what it was shown: the names, and the id that stands beside a label."""
    if request.output_name == "answer":
        affected = sum(map(int, re.findall(r'"updated":\s*(\d+)', request.messages[-1].text)))
        return json.dumps({"summary": f"Updated {affected} deals to Negotiation", "deals_affected": affected})
    stage = re.search(r"(\w+) = Negotiation", request.system)
    fields = re.findall(r"\b(company|stage|ids)\??: ", request.system)
    assert stage is not None
    assert sorted(set(fields)) == ["company", "ids", "stage"]
    update: Any = {"for_each": "${search_deals.results}", "input": {"ids": ["${item.id}"], "stage": stage[1]}}
    return json.dumps(moving(update_deals=update))


async def test_a_deterministic_crm_tool_generates_the_correct_search_and_executes_the_batch_update():
    crm = acme(7)

    result = await manage_deals(crm, ScriptedModel(follows))

    assert result.ok
    assert crm.searches == ["Acme Corp"]
    assert crm.updates == [
        (["d0", "d1", "d2"], "3003"),
        (["d3", "d4", "d5"], "3003"),
        (["d6"], "3003"),
    ]
    assert result.output == SUMMARY


PAGES = {
    "https://alpha.example/pricing": "Alpha costs 49 USD a month.",
    "https://beta.example/pricing": "Beta costs 79 USD a month.",
}


class Researcher:
    """Decides for itself: it searches, scrapes what was found, and puts together what it has read."""

    def __call__(self, request: Request) -> Message | str:
        results = "\n".join(told(request)) if len(request.messages) > 1 else ""
        if not results:
            return asks(("web_search", {"query": "competitor pricing"}), text="I need to know who they are.")
        urls = re.findall(r"https://[a-z.]+/pricing", results)
        if urls:
            return asks(*(("web_scrape", {"url": url}) for url in urls))
        prices = re.findall(r"(\w+) costs (\d+) USD", results)
        return "; ".join(f"{name}: {price} USD a month" for name, price in prices)


async def test_an_agentic_research_tool_decides_to_search_and_scrape_and_aggregates_the_results():
    @tool(name="web.search", side_effects="reads")
    def search(query: str) -> list[dict[str, str]]:
        """Search the web."""
        return [{"url": url, "title": query} for url in PAGES]

    @tool(name="web.scrape", side_effects="reads")
    def scrape(url: str) -> str:
        """The text of a page."""
        return PAGES[url]

    @tool(name="pdf.extract", side_effects="reads")
    def extract(url: str) -> str:
        """The text of a PDF file."""
        raise AssertionError(url)

    tools = [AllocatedTool(tool="web.search", priority=2), "web.scrape", "pdf.extract"]
    async with Crib("memory://", models={MODEL: ScriptedModel(Researcher())}) as crib:
        crib.add(search, scrape, extract)
        research = crib.agentic_tool("research", mode="agentic", model=MODEL, tools=tools)
        result = await research("Find competitor pricing")

    assert result.output == {"summary": "Alpha: 49 USD a month; Beta: 79 USD a month"}
    assert [envelope.name for envelope in result.envelopes] == ["web.search", "web.scrape", "web.scrape"]
    purposes = [step.purpose for step in result.trace.steps if isinstance(step, LLMStep)]
    assert purposes == ["tool_selection", "result_review", "result_review"]


async def test_with_the_schema_as_context_a_query_has_correct_field_names_and_valid_values_or_does_not_run():
    crm = acme(1)
    unknown_field = moving(search_deals={"input": {"company_name": "Acme Corp"}})
    invalid_value = moving(update_deals={"input": {"ids": ["d0"], "stage": "Negotiation stage"}})
    answers = [json.dumps(answer) for answer in (unknown_field, invalid_value, moving(), SUMMARY)]
    model = ScriptedModel(answers)

    result = await manage_deals(crm, model)

    assert result.ok
    first, second, third, _ = model.requests
    assert '"company"' in first.system
    assert "3003 = Negotiation" in first.system
    assert "'company_name' is not a property here; known: company" in second.messages[-1].text
    assert "nearest: '3003' (Negotiation)" in third.messages[-1].text
    assert crm.searches == ["Acme Corp"]
    assert crm.updates == [(["d0"], "3003")]


async def test_the_trace_goes_from_the_request_by_reasoning_and_each_call_to_the_final_response():
    trace = (await manage_deals(acme(7), ScriptedModel(follows))).trace

    assert (trace.task, trace.status, trace.mode) == (TASK, "completed", "deterministic")
    told_of: list[tuple[str, str]] = []
    for step in trace.steps:
        if isinstance(step, LLMStep):
            told_of.append(("llm_call", step.purpose))
        elif isinstance(step, ToolStep):
            told_of.append(("tool_call", step.action))
    assert told_of == [
        ("tool_call", "list_stages"),
        ("llm_call", "planning"),
        ("tool_call", "search_deals"),
        *[("tool_call", "update_deals")] * 3,
        ("llm_call", "formatting"),
    ]
    [planning] = [step for step in trace.steps if isinstance(step, LLMStep) and step.purpose == "planning"]
    assert TASK in planning.input
    assert planning.reasoning == "Find the deals, then move them."
    [search] = [step for step in trace.steps if isinstance(step, ToolStep) and step.action == "search_deals"]
    assert search.parameters == {"company": "Acme Corp", "limit": None}
    assert len(search.result["results"]) == 7
    assert trace.output == SUMMARY


async def test_the_logs_show_the_tokens_and_the_cost_of_the_embedded_model():
    answers = [json.dumps(moving()), json.dumps(SUMMARY)]

    result = await manage_deals(acme(7), PricedModel(answers, usd="0.002"))

    costs = result.trace.cost_breakdown
    assert [(call.purpose, call.cost_usd) for call in costs.llm_calls] == [
        ("planning", Decimal("0.002")),
        ("formatting", Decimal("0.002")),
    ]
    assert all(call.input_tokens > 0 and call.output_tokens > 0 for call in costs.llm_calls)
    assert costs.total_tokens == result.summary.usage.total_tokens > 0
    assert costs.total_cost_usd == result.cost_usd == Decimal("0.004")
