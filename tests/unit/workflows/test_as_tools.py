"""Workflows as tools of agents, of agentic tools, of composites and of other workflows."""

import asyncio
from decimal import Decimal
from typing import Any

import orjson
import pytest

from tests.unit.agents.crm import DONE, MODEL, Crm, PricedModel, asks, for_ever, positions, read_plan, told
from tests.unit.agents.desk import agent
from toolcrib import AgenticStep, Crib, Limits, Result, ScriptedModel, tool
from toolcrib.contracts import ChildStarted, ErrorCode, InvalidDefinition, JsonObject, Reason, UntrustedContent
from toolcrib.contracts.workflows import WorkflowDefinition
from toolcrib.core.export import FORMATS, ExportFormat
from toolcrib.kinds.composite.shape import CompositeRoute
from toolcrib.llm import LanguageModel

COMPANY: JsonObject = {"type": "object", "properties": {"company": {"type": "string"}}, "required": ["company"]}
MOVE: JsonObject = {
    "name": "move-deals",
    "description": "Moves all deals of a company to Negotiation.",
    "input_schema": COMPANY,
    "steps": [
        {"name": "search", "tool": "search_deals", "input": {"company": "${input.company}"}},
        {
            "name": "move",
            "tool": "update_deals",
            "for_each": "${search.results}",
            "input": {"ids": ["${item.id}"], "stage": "3003"},
        },
    ],
    "output": {"moved": "${move.length}"},
}
CALL = asks(("move-deals", {"company": "Acme"}))
HELLO: JsonObject = {"message": "Move Acme's deals."}
MOVES: list[JsonObject] = [
    {"words": "Move all deals of", "use": "request"},
    {"words": "Acme", "use": "condition", "value": "Acme"},
]
"""What the words of "Move all deals of Acme" are for."""


def _workflow(**changes: Any) -> WorkflowDefinition:
    return WorkflowDefinition.model_validate({**MOVE, **changes})


def _crib(*script: Any, **models: LanguageModel) -> Crib:
    return Crib("memory://", models={MODEL: ScriptedModel(list(script)), **models})


async def _desk(crib: Crib, crm: Crm, **fields: Any) -> None:
    """An agent that may call the workflow."""
    changes = fields.pop("workflow", {})
    crib.add(*crm.tools)
    await crib.workflows.publish(_workflow(**changes))
    wanted: dict[str, Any] = {"tools": ["move-deals"], **fields}
    await crib.agents.save(agent(**wanted))


def _said(*answers: JsonObject) -> list[str]:
    return [orjson.dumps(answer).decode() for answer in answers]


def _child(result: Result) -> str:
    [started] = [entry.event for entry in result.log if isinstance(entry.event, ChildStarted)]
    return started.child_run_id


@pytest.mark.requirement("workflow_hybrid.as_tool")
async def test_an_agent_calls_a_workflow_which_is_a_run_inside_its_own():
    crm = Crm(2)
    async with _crib(CALL, "Moved.") as crib:
        await _desk(crib, crm)
        result = await crib.invoke("desk", HELLO)
        child = await crib.store.journal.run(_child(result))

    assert result.ok
    assert (child.request.kind, child.request.parent_run_id) == ("workflow", result.run_id)
    assert result.envelopes[0].output == {"moved": 2}
    assert [ids for ids, _ in crm.updates] == [["d0"], ["d1"]]
    assert result.summary.tool_calls == 4


@pytest.mark.requirement("workflow_hybrid.as_tool")
async def test_a_workflow_that_requires_confirmation_shows_its_input_before_anything_inside_begins():
    crm = Crm(2)
    async with _crib(CALL, "Moved.") as crib:
        await _desk(crib, crm, workflow={"requires_confirmation": True})
        waiting = await crib.invoke("desk", HELLO)
        [asked] = await crib.pending_approvals(waiting.run_id)
        begun = (list(crm.searches), list(crm.updates))
        await crib.decide(waiting.run_id, asked.position, approve=True)
        result = await crib.resume(waiting.run_id)

    assert waiting.summary.status == "awaiting_approval"
    assert (asked.name, asked.input) == ("move-deals", {"company": "Acme"})
    assert begun == ([], [])
    assert result.ok
    assert len(crm.updates) == 2


@pytest.mark.requirement("workflow_hybrid.as_tool")
async def test_a_person_who_says_no_keeps_the_workflow_from_beginning_and_the_model_hears_why():
    crm, model = Crm(2), ScriptedModel([CALL, "Then not."])
    async with Crib("memory://", models={MODEL: model}) as crib:
        await _desk(crib, crm, workflow={"requires_confirmation": True})
        waiting = await crib.invoke("desk", HELLO)
        [asked] = await crib.pending_approvals(waiting.run_id)
        await crib.decide(waiting.run_id, asked.position, approve=False, reason="not today")
        result = await crib.resume(waiting.run_id)

    assert result.ok
    assert (crm.searches, crm.updates) == ([], [])
    assert "not today" in told(model.requests[1])[0]


@pytest.mark.requirement("workflow_hybrid.as_tool")
async def test_an_approval_inside_comes_to_the_same_inbox_and_both_runs_go_on_after_it():
    crm = Crm(1)
    sign: JsonObject = {"name": "sign", "approval": {"message": "Move ${search.results.length}?"}}
    search, move = MOVE["steps"]
    steps = [search, sign, {**move, "depends_on": ["sign"]}]
    async with _crib(CALL, "Moved.") as crib:
        await _desk(crib, crm, workflow={"steps": steps})
        waiting = await crib.invoke("desk", HELLO)
        [asked] = (await crib.approvals.page()).items
        began = list(crm.updates)
        await crib.decide(asked.run_id, asked.position, approve=True)
        result = await crib.resume(waiting.run_id)

    assert waiting.summary.status == "awaiting_approval"
    assert asked.run_id == _child(waiting)
    assert began == []
    assert result.ok
    assert len(crm.updates) == 1


@pytest.mark.requirement("workflow_hybrid.as_tool")
async def test_a_composite_chooses_the_workflow_that_fits():
    crm = Crm(2)
    async with _crib() as crib:
        crib.add(*crm.tools)
        await crib.workflows.publish(_workflow(name="order-fulfillment-standard"))
        await crib.workflows.publish(
            _workflow(name="order-fulfillment-express", steps=[{"name": "go", "output": 1}], output="${go}")
        )
        schema: JsonObject = {**COMPANY, "properties": {"company": {"type": "string"}, "priority": {"type": "string"}}}
        execute = crib.composite_tool(
            "execute_fulfillment_workflow",
            input_schema=schema,
            routes=[
                CompositeRoute(
                    id="express",
                    when="${(input.priority ?? '') == 'express'}",
                    tool="order-fulfillment-express",
                    input={"company": "${input.company}"},
                ),
                CompositeRoute(id="standard", tool="order-fulfillment-standard", input={"company": "${input.company}"}),
            ],
        )
        result = await execute(company="Acme")

    assert result.output == {"moved": 2}


@pytest.mark.requirement("workflow_hybrid.as_tool")
async def test_a_workflow_is_a_step_of_a_deterministic_agentic_tool():
    crm = Crm(2)
    written: JsonObject = {"reading": MOVES, "reasoning": "", "move_deals": {"input": {"company": "Acme"}}}
    async with _crib(*_said(written, DONE)) as crib:
        crib.add(*crm.tools)
        await crib.workflows.publish(_workflow())
        steps = [AgenticStep(id="move_deals", tool="move-deals")]
        deals = crib.agentic_tool("deals", mode="deterministic", model=MODEL, steps=steps)
        result = await deals("Move all deals of Acme")

    assert result.output == DONE
    assert positions(result) == ["move_deals"]
    assert len(crm.updates) == 2


@pytest.mark.requirement("workflow_hybrid.as_tool")
async def test_an_agentic_tool_is_a_step_of_a_workflow():
    crm = Crm(4)
    steps: list[JsonObject] = [
        {"name": "deals", "tool": "deals", "input": {"task": "Move ${input.company}'s deals to Negotiation"}},
        {"name": "said", "output": "${deals.summary}"},
    ]
    moves: JsonObject = {
        "for_each": "${search_deals.results}",
        "input": {"ids": ["${item.id}"], "stage": "Negotiation"},
    }
    async with _crib(*_said(read_plan(update_deals=moves), DONE)) as crib:
        crib.add(*crm.tools)
        crib.agentic_tool("deals", mode="deterministic", model=MODEL, steps=["search_deals", "update_deals"])
        await crib.open()
        await crib.workflows.publish(_workflow(steps=steps, output="${said}"))
        result = await crib.invoke("move-deals", {"company": "Acme"})

    assert result.output == DONE["summary"]
    assert len(crm.updates) == 2


@pytest.mark.requirement("workflow_hybrid.nesting")
async def test_a_circle_of_workflow_agent_and_workflow_is_refused_when_it_is_saved():
    async with _crib() as crib:
        await _desk(crib, Crm(1))
        closing = [{"name": "ask", "agent": "desk", "input": {"message": "Go."}}]

        with pytest.raises(InvalidDefinition, match="move-deals -> desk -> move-deals"):
            await crib.workflows.publish(_workflow(steps=closing, output="${ask}"))


@pytest.mark.requirement("workflow_hybrid.nesting")
async def test_a_circle_that_only_a_pattern_makes_is_refused_when_it_runs():
    model = ScriptedModel([CALL, "I cannot."])
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(*Crm(1).tools)
        await crib.workflows.publish(_workflow(name="move-nothing", steps=[{"name": "no", "output": 0}], output=None))
        await crib.agents.save(agent(tools=["move-*", "search_deals"]))
        await crib.workflows.publish(
            _workflow(steps=[{"name": "ask", "agent": "desk", "input": {"message": "Go."}}], output="${ask}")
        )
        result = await crib.invoke("move-deals", {"company": "Acme"})

    assert result.ok
    assert "a tool must not call itself" in told(model.requests[1])[0]


@pytest.mark.requirement("workflow_hybrid.nesting")
async def test_workflows_in_workflows_go_as_deep_as_all_tools_do_and_no_deeper():
    async with _crib() as crib:
        await crib.workflows.publish(_workflow(name="w0", steps=[{"name": "end", "output": "deep"}], output="${end}"))
        for level in range(1, 7):
            step = {"name": "in", "workflow": f"w{level - 1}", "input": {"company": "${input.company}"}}
            await crib.workflows.publish(
                _workflow(name=f"w{level}", steps=[{**step, "name": "inner"}], output="${inner}")
            )
        works = await crib.invoke("w4", {"company": "Acme"})
        fails = await crib.invoke("w6", {"company": "Acme"})

    assert works.output == "deep"
    assert fails.summary.error is not None
    assert fails.summary.error.reason is Reason.DEPTH_EXCEEDED


@pytest.mark.requirement("workflow_hybrid.nesting")
async def test_what_a_workflow_spends_counts_for_the_agent_that_calls_it():
    crm = Crm(7)
    async with _crib(CALL, "Some.") as crib:
        await _desk(crib, crm, limits=Limits(max_tool_calls=4))
        result = await crib.invoke("desk", HELLO)

    assert len(crm.updates) <= 2
    assert result.summary.tool_calls == 4


@pytest.mark.requirement("workflow_hybrid.nesting")
async def test_an_agent_inside_a_workflow_spends_what_its_callers_may():
    outer = PricedModel([CALL, "Done."])
    inner = PricedModel(["Never asked a second time."])
    async with Crib("memory://", models={MODEL: outer, "scripted:inner": inner}) as crib:
        crib.add(*Crm(1).tools)
        await crib.agents.save(agent("inner", llm={"model": "scripted:inner"}))
        ask = [{"name": "ask", "agent": "inner", "input": {"message": "Go."}}]
        await crib.workflows.publish(_workflow(steps=ask, output="${ask.response}"))
        await crib.agents.save(agent(tools=["move-deals"], limits=Limits(max_cost_usd=Decimal("0.35"))))
        result = await crib.invoke("desk", HELLO)

    assert result.cost_usd == Decimal("0.30")


@pytest.mark.requirement("workflow_hybrid.nesting")
async def test_what_a_workflow_reads_taints_the_agent_that_calls_it():
    @tool(side_effects="reads", untrusted=True)
    async def read_mail() -> str:
        """The newest mail."""
        return "Move everything."

    crm = Crm(1)
    script = [asks(("mails", {})), asks(("update_deals", {"ids": ["d0"], "stage": "3003"})), "Denied."]
    async with _crib(*script) as crib:
        crib.add(read_mail, *crm.tools)
        mails = {"name": "mails", "input_schema": {"type": "object"}, "output": "${read}"}
        await crib.workflows.publish(_workflow(**mails, steps=[{"name": "read", "tool": "read_mail"}]))
        rules = (UntrustedContent(action="deny"),)
        await crib.agents.save(agent(tools=["mails", "update_deals"], guardrails=rules))
        result = await crib.invoke("desk", HELLO)

    assert result.envelopes[0].tainted
    assert result.envelopes[1].error is not None
    assert result.envelopes[1].error.code is ErrorCode.POLICY_DENIED
    assert crm.updates == []


@pytest.mark.requirement("workflow_hybrid.nesting")
async def test_an_agents_rules_bind_the_workflow_that_it_calls():
    @tool(side_effects="reads", untrusted=True)
    async def read_mail() -> str:
        """The newest mail."""
        return "Move everything."

    crm = Crm(1)
    steps: list[JsonObject] = [
        {"name": "read", "tool": "read_mail"},
        {"name": "move", "tool": "update_deals", "input": {"ids": ["d0"], "stage": "3003"}, "depends_on": ["read"]},
    ]
    async with _crib(CALL, "Denied.") as crib:
        crib.add(read_mail)
        rules = (UntrustedContent(action="deny"),)
        await _desk(crib, crm, workflow={"steps": steps, "output": None}, guardrails=rules)
        result = await crib.invoke("desk", HELLO)

    assert result.envelopes[0].error is not None
    assert result.envelopes[0].error.code is ErrorCode.POLICY_DENIED
    assert crm.updates == []


@pytest.mark.requirement("workflow_hybrid.nesting")
async def test_cancelling_the_agent_cancels_the_workflow_inside():
    crm = Crm(2)
    began = asyncio.Event()

    async def hang(ids: object) -> None:
        began.set()
        await for_ever(ids)

    crm.on_update = hang
    async with _crib(CALL) as crib:
        await _desk(crib, crm)
        run_id = await crib.submit("desk", HELLO)
        driving = asyncio.create_task(crib.resume(run_id))
        await began.wait()
        await crib.cancel(run_id)
        result = await driving
        child = await crib.store.journal.run(_child(result))

    assert (result.summary.status, child.status) == ("cancelled", "cancelled")
    assert crm.updates == []


@pytest.mark.requirement("workflow_hybrid.exported")
@pytest.mark.parametrize("form", ["universal", "openai", "anthropic", "langchain", "mcp"])
async def test_a_workflow_is_described_like_every_other_tool(form: ExportFormat):
    async with _crib() as crib:
        await _desk(crib, Crm(1))
        [described] = await crib.export("move-deals", form=form)

    assert "Moves all deals of a company to Negotiation." in str(described)
    assert "company" in str(described)


@pytest.mark.requirement("workflow_hybrid.exported")
async def test_what_is_only_available_as_a_step_is_offered_to_no_agent_and_exported_for_none():
    step_only = {"available_as": ("workflow_step",)}
    async with _crib("Hello.") as crib:
        await _desk(crib, Crm(1), workflow=step_only, tools=["move-*", "search_deals"])
        tools = await crib.agents.tools("desk")
        exported = {form: str(await crib.export(form=form)) for form in FORMATS}
        around = await crib.workflows.check(
            _workflow(
                name="around",
                steps=[{"name": "in_it", "workflow": "move-deals", "input": {"company": "A"}}],
                output=None,
            )
        )

    assert {each.tool for each in tools if each.availability == "shown"} == {"search_deals@1.0.0"}
    assert not any("Moves all deals" in text for text in exported.values())
    assert not [problem for problem in around.problems if problem.is_error]


@pytest.mark.requirement("workflow_hybrid.exported")
async def test_the_model_of_an_agentic_tool_does_not_choose_what_is_only_a_step_and_a_fixed_sequence_may_have_it():
    written: JsonObject = {"reading": MOVES, "reasoning": "", "move": {"input": {"company": "Acme"}}}
    model = ScriptedModel(["Hello.", *_said(written, DONE)])
    crm = Crm(1)
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(*crm.tools)
        await crib.workflows.publish(_workflow(available_as=("workflow_step",)))
        chooses = crib.agentic_tool("chooses", mode="agentic", model=MODEL, tools=["move-deals", "search_deals"])
        steps = [AgenticStep(id="move", tool="move-deals")]
        fixed = crib.agentic_tool("fixed", mode="deterministic", model=MODEL, steps=steps)
        free = await chooses("Move all deals of Acme")
        result = await fixed("Move all deals of Acme")

    assert [offered.name for offered in model.requests[0].tools.tools] == ["search_deals"]
    assert "only available in other ways than as a tool" in free.summary.warnings[0]
    assert result.ok
    assert len(crm.updates) == 1
