"""Deterministic agentic tools as workflows: run both ways with one script, they cannot be told apart."""

from collections.abc import Sequence
from typing import Any, cast

import orjson
import pytest

from tests.unit.agents.crm import DONE, MODEL, Crm, plan, positions, purposes
from toolcrib import AgenticContext, AgenticStep, Crib, Limits, Result, ScriptedModel, tool
from toolcrib.agents import workflow_of
from toolcrib.contracts import (
    PLAN_FORMAT,
    ErrorCode,
    InvalidDefinition,
    Json,
    JsonObject,
    Principal,
    Reason,
    ReferenceSource,
    RunRequest,
    ServiceAccount,
    ToolDefinition,
    ToolRevision,
    UntrustedContent,
)
from toolcrib.contracts.workflows import WorkflowDefinition, WorkflowImplementation, WorkflowStep
from toolcrib.core.engines import DriveResult
from toolcrib.core.registry import pins_of
from toolcrib.workflows.values.graph import plan_of

TASK: JsonObject = {"task": "Move Acme's deals to Negotiation"}
ASKED: JsonObject = {"task": "How many deals has Acme?"}
STEPS = ("search_deals", "update_deals")
Answer = JsonObject | str


async def _start(crib: Crib, tool: ToolRevision, arguments: JsonObject, principal: Principal | None = None) -> Result:
    """Run a tool that is a run of its own."""
    request = RunRequest(
        kind=tool.definition.run_kind,
        tool=tool.ref,
        content_hash=tool.content_hash,
        pins=pins_of(tool, crib.registry),
        input=arguments,
        plan_format=PLAN_FORMAT,
        principal=principal or crib.principal,
    )
    driven: DriveResult = await crib.engine.start(request)
    return Result(driven.result, driven.log)


async def _agentic(crib: Crib, crm: Crm, **options: Any) -> ToolRevision:
    crib.add(*crm.tools)
    settings: dict[str, Any] = {"mode": "deterministic", "model": MODEL, "steps": STEPS, "grounding": "off", **options}
    tool = crib.agentic_tool("deals", **settings).definition
    return await crib.save(tool)


async def _compiled(crib: Crib, crm: Crm, **options: Any) -> ToolRevision:
    return await crib.save(workflow_of(await _agentic(crib, crm, **options)).tool())


def _model(answers: Sequence[Answer]) -> ScriptedModel:
    return ScriptedModel([each if isinstance(each, str) else orjson.dumps(each).decode() for each in answers])


async def _both(
    *answers: Answer, task: JsonObject | None = None, broken: str = "", deals: int = 7, **options: Any
) -> tuple[Result, Result]:
    """Run the tool and the workflow; all that the model was asked and all that the CRM was told must be the same."""
    results: list[Result] = []
    models: list[ScriptedModel] = []
    crms: list[Crm] = []

    async def fail(ids: object) -> None:
        if broken in cast("list[str]", ids):
            message = "the CRM is closed"
            raise RuntimeError(message)

    for prepare in (_agentic, _compiled):
        crm, model = Crm(deals), _model(answers)
        crm.on_update = fail
        async with Crib("memory://", models={MODEL: model}) as crib:
            tool = await prepare(crib, crm, **options)
            results.append(await _start(crib, tool, task or TASK))
        models.append(model)
        crms.append(crm)
    agentic, compiled = results
    assert [(one.system, one.messages) for one in models[0].requests] == [
        (one.system, one.messages) for one in models[1].requests
    ]
    assert (crms[0].searches, crms[0].updates) == (crms[1].searches, crms[1].updates)
    assert positions(agentic) == positions(compiled)
    assert purposes(agentic) == purposes(compiled)
    assert [one.input for one in agentic.envelopes] == [one.input for one in compiled.envelopes]
    assert agentic.summary.warnings == compiled.summary.warnings
    assert agentic.summary.tool_calls == compiled.summary.tool_calls
    return agentic, compiled


def _steps_of(result: Result) -> dict[str, JsonObject]:
    """What became of the steps, as a run that has failed puts it out."""
    return cast("dict[str, Any]", result.partial)["steps"]


@pytest.mark.requirement("workflow_hybrid.same_run")
async def test_a_plan_that_fans_out_makes_the_same_calls_and_gives_the_same_answer():
    agentic, compiled = await _both(plan(), DONE)

    assert compiled.output == agentic.output == DONE
    assert positions(compiled) == ["search_deals", "update_deals[0]", "update_deals[1]", "update_deals[2]"]


@pytest.mark.requirement("workflow_hybrid.same_run")
async def test_a_step_that_the_task_does_not_need_is_skipped_in_both():
    agentic, compiled = await _both(plan(update_deals={"skip": True}), DONE, task=ASKED)

    assert compiled.output == agentic.output == DONE
    assert positions(compiled) == ["search_deals"]


@pytest.mark.requirement("workflow_hybrid.same_run")
async def test_only_a_reference_that_cannot_be_resolved_is_reviewed_in_both():
    wrong = plan(update_deals={"input": {"ids": ["${search_deals.results[99].id}"], "stage": "3003"}})
    agentic, compiled = await _both(wrong, {"input": {"ids": ["d1"], "stage": "3003"}}, DONE)

    assert compiled.output == agentic.output == DONE
    assert purposes(compiled) == ["planning", "result_review", "formatting"]
    assert positions(compiled) == ["search_deals", "update_deals.again"]


@pytest.mark.requirement("workflow_hybrid.same_run")
async def test_a_call_that_is_refused_as_invalid_is_corrected_in_both():
    wrong = plan(update_deals={"input": {"ids": "${search_deals.results[*].id}", "stage": "3003"}})
    right: JsonObject = {"for_each": "${search_deals.results}", "input": {"ids": ["${item.id}"], "stage": "3003"}}
    agentic, compiled = await _both(wrong, right, DONE)

    assert compiled.output == agentic.output == DONE
    assert purposes(compiled) == ["planning", "error_recovery", "formatting"]


@pytest.mark.requirement("workflow_hybrid.same_run")
async def test_a_step_that_a_review_leaves_out_is_skipped_in_both():
    wrong = plan(update_deals={"input": {"ids": ["${search_deals.results[99].id}"], "stage": "3003"}})
    agentic, compiled = await _both(wrong, {"skip": True}, DONE)

    assert compiled.output == agentic.output == DONE


@pytest.mark.requirement("workflow_hybrid.same_run")
async def test_some_calls_that_fail_are_the_end_of_both():
    agentic, compiled = await _both(plan(), DONE, broken="d4")

    assert agentic.partial == _steps_of(compiled)["format"]["output"] == DONE
    assert (agentic.status, compiled.status) == ("failed", "failed")
    assert any("1 of 3 calls failed" in warning for warning in compiled.summary.warnings)


@pytest.mark.requirement("workflow_hybrid.same_run")
async def test_a_step_whose_calls_all_fail_fails_both_with_its_error_and_what_was_done_is_told():
    agentic, compiled = await _both(plan(), DONE, broken="d0", deals=1)

    assert agentic.summary.error == compiled.summary.error
    assert (agentic.summary.status, compiled.summary.status) == ("failed", "failed")
    assert agentic.partial == DONE
    assert _steps_of(compiled)["format"]["output"] == DONE


@pytest.mark.requirement("workflow_hybrid.same_run")
async def test_no_step_follows_one_that_has_failed_in_both():
    answers = [
        {
            "reasoning": "",
            "search_deals": {"input": {"company": "Acme"}},
            "update_deals": {"input": {"ids": ["d0"], "stage": "3001"}},
            "search_deals_2": {"input": {"company": "Acme"}},
        },
        DONE,
    ]
    agentic, compiled = await _both(*answers, broken="d0", steps=[*STEPS, "search_deals"])

    assert agentic.summary.error == compiled.summary.error
    assert positions(compiled) == ["search_deals", "update_deals"]
    assert _steps_of(compiled)["search_deals_2"]["status"] == "cut_off"


@pytest.mark.requirement("workflow_hybrid.same_run")
async def test_a_step_that_cannot_be_carried_out_at_all_fails_both():
    wrong = {"input": {"ids": ["${search_deals.results[99].id}"], "stage": "3003"}}
    agentic, compiled = await _both(plan(update_deals=wrong), wrong, DONE)

    assert agentic.summary.error == compiled.summary.error
    assert compiled.summary.error is not None
    assert compiled.summary.error.reason is Reason.REFERENCE_UNRESOLVED


@pytest.mark.requirement("workflow_hybrid.same_run")
async def test_with_a_task_that_cannot_be_done_as_asked_both_wait_with_the_question():
    unclear = plan(question="Which stage?", search_deals={"skip": True}, update_deals={"skip": True})
    agentic, compiled = await _both(unclear)

    assert (agentic.summary.status, compiled.summary.status) == ("awaiting_answer", "awaiting_answer")
    assert agentic.question is not None
    assert compiled.question is not None
    assert compiled.question.question == agentic.question.question == "Which stage?"
    assert positions(compiled) == []


@pytest.mark.requirement("workflow_hybrid.same_run")
async def test_an_empty_list_is_no_call_and_no_failure_in_both():
    agentic, compiled = await _both(plan(), deals=0)

    assert compiled.output == agentic.output
    assert cast("JsonObject", compiled.output)["summary"].startswith("Nothing was changed: ")
    assert compiled.summary.status == agentic.summary.status == "completed"
    assert positions(compiled) == ["search_deals"]


@pytest.mark.requirement("workflow_hybrid.same_run")
async def test_live_values_close_the_schemas_in_both():
    stages = ReferenceSource(name="stages", tool="list_stages", applies_to=("stage",), value="id", label="label")
    context = AgenticContext(reference_data=(stages,))
    agentic, compiled = await _both(plan(), DONE, context=context)

    assert compiled.output == agentic.output == DONE
    assert positions(compiled)[0] == "reference.stages"


@pytest.mark.requirement("workflow_hybrid.same_run")
async def test_an_answer_that_cannot_be_used_fails_both_for_the_same_reason():
    agentic, compiled = await _both("no plan", "no plan", "no plan")

    assert agentic.summary.error == compiled.summary.error
    assert compiled.summary.status == "failed"


@pytest.mark.requirement("workflow_hybrid.same_run")
async def test_an_answer_that_cannot_be_put_into_words_is_the_facts_in_both():
    agentic, compiled = await _both(plan(), "words", "words", "words")

    assert compiled.output == agentic.output
    assert "steps" in cast("dict[str, Json]", compiled.output)


@pytest.mark.requirement("workflow_hybrid.same_run")
async def test_a_limit_ends_both_with_what_was_done():
    agentic, compiled = await _both(plan(), DONE, limits=Limits(max_tool_calls=2))

    assert agentic.partial == _steps_of(compiled)["format"]["output"] == DONE
    assert (agentic.status, agentic.stop_reason) == ("incomplete", "max_tool_calls")
    assert (compiled.status, compiled.stop_reason) == ("incomplete", "max_tool_calls")


@pytest.mark.requirement("workflow_hybrid.compiled")
async def test_the_graph_goes_from_the_plan_over_each_step_to_the_answer():
    async with Crib("memory://", models={MODEL: _model([])}) as crib:
        found = workflow_of(await _agentic(crib, Crm()))

    assert [(step.name, step.handler_ref) for step in found.steps] == [
        ("plan", "agentic.plan"),
        ("search_deals", "agentic.step"),
        ("update_deals", "agentic.step"),
        ("format", "agentic.format"),
    ]
    made = cast("WorkflowImplementation", found.tool().implementation)
    edges = {(edge.source, edge.target, edge.kind) for edge in plan_of(made).edges}
    assert edges == {
        ("plan", "search_deals", "data"),
        ("plan", "update_deals", "data"),
        ("search_deals", "update_deals", "data"),
        ("plan", "format", "data"),
        ("search_deals", "format", "data"),
        ("update_deals", "format", "data"),
        ("format", "output", "data"),
    }


@pytest.mark.requirement("workflow_hybrid.compiled")
async def test_the_document_goes_through_json_and_names_the_version_that_it_was_made_of():
    async with Crib("memory://", models={MODEL: _model([])}) as crib:
        found = workflow_of(await _agentic(crib, Crm(), limits=Limits(max_tool_calls=3)))

    assert WorkflowDefinition.model_validate_json(found.model_dump_json(exclude_defaults=True)) == found
    assert {step.input["tool"] for step in found.steps} == {"deals@1.0.0"}
    assert (found.limits.max_tool_calls, found.source) == (3, "auto_generated")


@pytest.mark.requirement("workflow_hybrid.compiled")
async def test_a_step_whose_id_means_something_else_to_expressions_gets_another_name():
    answers: list[Answer] = [{"reasoning": "", "steps": {"input": {"company": "Acme"}}}, DONE]

    agentic, compiled = await _both_named(answers, AgenticStep(id="steps", tool="search_deals"))

    assert agentic.output == compiled.output == DONE
    assert positions(compiled) == ["steps_2"]


async def _both_named(answers: Sequence[Answer], step: AgenticStep) -> tuple[Result, Result]:
    found: list[Result] = []
    for prepare in (_agentic, _compiled):
        async with Crib("memory://", models={MODEL: _model(answers)}) as crib:
            found.append(await _start(crib, await prepare(crib, Crm(), steps=[step]), ASKED))
    return found[0], found[1]


@pytest.mark.requirement("workflow_hybrid.compiled")
async def test_what_has_no_fixed_sequence_is_not_compiled():
    async with Crib("memory://", models={MODEL: _model([])}) as crib:
        agentic = await _agentic(crib, Crm(), mode="agentic", steps=(), tools=["search_deals"])
        plain = crib.registry.require("default", "search_deals")

    with pytest.raises(InvalidDefinition, match="in mode 'agentic' its model decides"):
        workflow_of(agentic)
    with pytest.raises(InvalidDefinition, match="of kind 'python'"):
        workflow_of(plain)


# What a stage refuses, used by hand -------------------------------------------------------------------------------


def _by_hand(*steps: JsonObject, **fields: Any) -> ToolDefinition:
    """A workflow that somebody has written with the handlers of compiled ones, as it would stand in the store."""
    return WorkflowDefinition.model_validate({"name": "by-hand", "steps": steps, **fields}).tool()


def _plan_step(**fields: Any) -> JsonObject:
    return {"name": "plan", "handler_ref": "agentic.plan", "input": {"tool": "deals", "input": "${input}"}, **fields}


def _search_step(**given: Json) -> JsonObject:
    shared: JsonObject = {"tool": "deals", "step": "search_deals", "input": "${input}", "plan": "${plan}", "done": {}}
    return {"name": "search", "handler_ref": "agentic.step", "input": {**shared, **given}}


async def _run_by_hand(
    *steps: JsonObject, answers: Sequence[Answer] = (), principal: Principal | None = None, **options: Any
) -> tuple[Result, Crm]:
    crm = Crm(2)
    async with Crib("memory://", models={MODEL: _model(answers)}) as crib:
        tool = await _agentic(crib, crm)
        if options:
            await crib.save(tool.definition.model_copy(update=options))
        saved = await crib.registry.save(_by_hand(*steps), realm="default", made_by="older", at=crib.clock.now())
        return await _start(crib, saved, TASK, principal), crm


@pytest.mark.requirement("workflow_hybrid.stages_guarded")
async def test_a_stage_of_a_tool_that_the_principal_may_not_execute_is_denied():
    who = Principal(id="u", realm="default", grants=("ai://workflows/*/execute",))

    result, _ = await _run_by_hand(_plan_step(), principal=who)

    assert result.summary.error is not None
    assert (result.summary.error.code, result.summary.error.reason) == (
        ErrorCode.POLICY_DENIED,
        Reason.PERMISSION_MISSING,
    )


@pytest.mark.requirement("workflow_hybrid.stages_guarded")
async def test_a_stage_of_a_tool_that_is_out_of_service_is_denied():
    async with Crib("memory://", models={MODEL: _model(())}) as crib:
        tool = await _agentic(crib, Crm(2))
        workflow = await crib.save(_by_hand(_plan_step()))
        await crib.lifecycle.block(tool.name)
        result = await _start(crib, workflow, TASK, None)

    assert result.summary.error is not None
    assert result.summary.error.reason is Reason.TOOL_BLOCKED


@pytest.mark.requirement("workflow_hybrid.stages_guarded")
async def test_a_tool_that_requires_confirmation_is_not_taken_apart_to_get_around_it():
    result, _ = await _run_by_hand(_plan_step(), requires_confirmation=True)

    assert result.summary.error is not None
    assert "requires confirmation; have the workflow require it too" in result.summary.error.message


@pytest.mark.requirement("workflow_hybrid.stages_guarded")
async def test_a_plan_that_somebody_has_changed_is_held_against_its_schema_again():
    changed: JsonObject = {"steps": {"search_deals": {"input": {"company": 7}}}}

    result, crm = await _run_by_hand(_search_step(plan=changed))

    assert crm.searches == []
    assert result.summary.error is not None
    assert "the plan of step 'search_deals' is not valid" in result.summary.error.message


@pytest.mark.requirement("workflow_hybrid.stages_guarded")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"step": "other"}, "has no step 'other'; it has: search_deals, update_deals"),
        ({"plan": {}}, "the plan has nothing for step 'search_deals'"),
        ({"plan": 1}, "the input of 'agentic.step' is not valid"),
        ({"done": {"search_deals": {"status": "lost"}}}, "the input of 'agentic.step' is not valid"),
        ({"tool": "search_deals"}, "is no deterministic agentic tool"),
    ],
)
async def test_an_input_that_is_none_fails_the_step_and_says_what_is_wrong(given: JsonObject, said: str):
    result, _ = await _run_by_hand(_search_step(**{"plan": {"steps": {}}, **given}))

    assert result.summary.status == "failed"
    assert result.summary.error is not None
    assert said in result.summary.error.message


@pytest.mark.requirement("workflow_hybrid.no_second_order")
async def test_what_a_tool_has_put_out_is_never_expanded():
    crm, answers = Crm(1), [plan(), DONE]
    crm.deals[0].id = "${input.task}"
    async with Crib("memory://", models={MODEL: _model(answers)}) as crib:
        result = await _start(crib, await _compiled(crib, crm), TASK)

    assert result.ok
    assert crm.updates == [(["${input.task}"], "3003")]


@pytest.mark.requirement("workflow_hybrid.compiled")
async def test_a_person_can_put_a_step_of_their_own_between_two_of_the_tool():
    crm, answers = Crm(7), [plan(), DONE]
    async with Crib("memory://", models={MODEL: _model(answers)}) as crib:
        found = workflow_of(await _agentic(crib, crm))
        own = WorkflowStep(name="many", output="${search_deals.results.length}")
        update = found.steps[2].model_copy(update={"condition": "${many < 5}"})
        steps = (*found.steps[:2], own, update, found.steps[3])
        result = await _start(crib, await crib.save(found.model_copy(update={"steps": steps}).tool()), TASK)

    assert result.ok
    assert (len(crm.searches), crm.updates) == (1, [])


@pytest.mark.requirement("workflow_hybrid.of")
async def test_the_crib_shows_a_tool_as_a_workflow_that_passes_the_check_and_can_be_published():
    crm, answers = Crm(7), [plan(), DONE]
    async with Crib("memory://", models={MODEL: _model(answers)}) as crib:
        await _agentic(crib, crm)
        found = await crib.workflows.of("deals")
        graph = await crib.workflows.check(found)
        published = await crib.workflows.publish(found)
        result = await _start(crib, published.tool, TASK)

    assert not graph.problems
    assert published.tool.definition.side_effects == "writes"
    assert (result.output, len(crm.updates)) == (DONE, 3)


@pytest.mark.requirement("workflow_hybrid.stages_checked")
@pytest.mark.parametrize(
    ("step", "path", "said"),
    [
        (_plan_step(input={"tool": "deals"}), "/steps/0/input", "agentic.plan needs 'input'"),
        (_plan_step(retry={"count": 2}), "/steps/0/retry", "agentic.plan makes several calls, and retry is of one"),
        (_plan_step(timeout_s=3), "/steps/0/timeout_s", "timeout_s is of one"),
        (_plan_step(input={"tool": "${input.task}", "input": {}}), "/steps/0/input/tool", "by its name"),
        (_plan_step(input={"tool": "search_deals", "input": {}}), "/steps/0/input/tool", "not a deterministic agentic"),
        (_plan_step(input={"tool": "dels", "input": {}}), "/steps/0/input/tool", "no tool 'dels'"),
        (_search_step(step="serch_deals", plan={}), "/steps/0/input/step", "'deals' has no step 'serch_deals'"),
        (_search_step(sep="search_deals", plan={}), "/steps/0/input/sep", "agentic.step does not take 'sep'"),
    ],
)
async def test_a_stage_that_could_not_be_carried_out_is_told_of_before_it_is_saved(
    step: JsonObject, path: str, said: str
):
    async with Crib("memory://", models={MODEL: _model([])}) as crib:
        await _agentic(crib, Crm())
        graph = await crib.workflows.check(WorkflowDefinition.model_validate({"name": "by-hand", "steps": [step]}))

    [problem] = graph.problems
    assert problem.path == path
    assert said in problem.message


@pytest.mark.requirement("workflow_hybrid.stages_checked")
async def test_a_workflow_with_the_parts_of_a_tool_that_requires_confirmation_must_require_it_too():
    async with Crib("memory://", models={MODEL: _model([])}) as crib:
        tool = await _agentic(crib, Crm())
        await crib.save(tool.definition.model_copy(update={"requires_confirmation": True}))
        found = await crib.workflows.of("deals")
        compiled = await crib.workflows.check(found)
        without = await crib.workflows.check(found.model_copy(update={"requires_confirmation": False}))

    assert compiled.problems == ()
    assert "requires confirmation" in without.problems[0].message


@pytest.mark.requirement("workflow_hybrid.same_run")
async def test_a_compiled_workflow_waits_for_a_person_in_its_middle_and_goes_on_with_the_same_plan():
    crm, model = Crm(3), _model([plan(), DONE])

    @tool(side_effects="writes", requires_confirmation=True)
    async def update_deals(ids: list[str], stage: str) -> int:
        """Move deals to a stage."""
        crm.updates.append((ids, stage))
        return len(ids)

    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(crm.tools[0], update_deals)
        deals = crib.agentic_tool("deals", mode="deterministic", model=MODEL, steps=STEPS, grounding="off")
        workflow = await crib.save(workflow_of(await crib.save(deals.definition)).tool())
        waiting = await _start(crib, workflow, TASK)
        began = list(crm.updates)
        [asked] = await crib.pending_approvals(waiting.run_id)
        await crib.decide(waiting.run_id, asked.position, approve=True)
        result = await crib.resume(waiting.run_id)

    assert (waiting.summary.status, began) == ("awaiting_approval", [])
    assert result.output == DONE
    assert len(crm.updates) == 1
    assert purposes(result) == ["planning", "formatting"]


@pytest.mark.requirement("workflow_hybrid.rerun")
async def test_a_run_from_a_step_keeps_the_plan_and_what_was_found_and_does_the_rest_anew():
    crm, model = Crm(3), _model([plan(), DONE, DONE])
    async with Crib("memory://", models={MODEL: model}) as crib:
        workflow = await _compiled(crib, crm)
        first = await crib.instances.start(workflow.ref, TASK)
        again = await crib.instances.rerun(first.run_id, "update_deals")

    assert (first.status, again.status) == ("completed", "completed")
    assert (len(crm.searches), len(crm.updates)) == (1, 2)
    assert len(model.requests) == 3
    assert [step.reused for step in again.steps[:2]] == [first.run_id, first.run_id]


@pytest.mark.requirement("workflow_hybrid.stages_guarded")
async def test_the_rules_of_a_compiled_workflow_bind_its_stages_and_what_they_read_taints_the_run():
    @tool(name="search_deals", side_effects="reads", untrusted=True)
    async def search(company: str) -> dict[str, Any]:
        """Deals, as strangers have named them."""
        return {"results": [{"id": "d0", "name": company, "amount": 1}]}

    crm, model = Crm(3), _model([plan(), DONE])
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(search, *crm.tools[1:])
        deals = crib.agentic_tool("deals", mode="deterministic", model=MODEL, steps=STEPS, grounding="off")
        found = workflow_of(await crib.save(deals.definition))
        rules = (UntrustedContent(action="deny"),)
        published = await crib.workflows.publish(found.model_copy(update={"guardrails": rules}))
        result = await _start(crib, published.tool, TASK)

    assert crm.updates == []
    assert result.summary.error is not None
    assert result.summary.error.reason is Reason.CONTENT_UNTRUSTED


@pytest.mark.requirement("workflow_hybrid.stages_guarded")
async def test_a_stage_is_carried_out_by_the_account_that_its_step_names():
    async with Crib("memory://", models={MODEL: _model([])}) as crib:
        await _agentic(crib, Crm(1))
        await crib.accounts.save(ServiceAccount(name="bot", grants=("ai://tools/crm/*/execute",)))
        published = await crib.workflows.publish(
            WorkflowDefinition.model_validate({"name": "by-hand", "steps": [_plan_step(principal_ref="bot")]})
        )
        result = await _start(crib, published.tool, TASK)

    assert result.summary.error is not None
    assert "principal 'account:bot' has no grant for 'ai://tools/agentic/deals/execute'" in result.summary.error.message


@pytest.mark.requirement("workflow_hybrid.stages_guarded")
async def test_two_tools_that_mean_different_lists_by_one_name_are_not_mixed_up():
    stages = ReferenceSource(name="stages", tool="list_stages", applies_to=("stage",), value="id", label="label")
    shared: dict[str, Any] = {"mode": "deterministic", "model": MODEL, "steps": STEPS, "grounding": "off"}
    async with Crib("memory://", models={MODEL: _model([plan(), plan()])}) as crib:
        crib.add(*Crm(1).tools)
        crib.agentic_tool("deals", context=AgenticContext(reference_data=(stages,)), **shared)
        other = stages.model_copy(update={"applies_to": ("company",)})
        crib.agentic_tool("others", context=AgenticContext(reference_data=(other,)), **shared)
        await crib.open()
        second = _plan_step(name="again", input={"tool": "others", "input": "${input}"}, depends_on=["plan"])
        published = await crib.workflows.publish(
            WorkflowDefinition.model_validate({"name": "by-hand", "steps": [_plan_step(), second]})
        )
        result = await _start(crib, published.tool, TASK)

    assert result.summary.error is not None
    assert "two agentic tools of one workflow name reference data 'stages'" in result.summary.error.message
