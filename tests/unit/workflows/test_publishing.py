"""Drafts, publishing, and who may."""

from decimal import Decimal

import pytest

from tests.unit.workflows.checked import ORDER, described, house, told
from toolcrib import Crib
from toolcrib.contracts import (
    Conflict,
    InvalidDefinition,
    Json,
    JsonObject,
    JsonSchema,
    Limits,
    MaxCost,
    NotFound,
    PermissionDenied,
    Principal,
    ServiceAccount,
)
from toolcrib.contracts.specs.workflow_steps import StepRetry
from toolcrib.contracts.workflows import (
    ConditionBinding,
    StepRegistration,
    WorkflowDefinition,
    WorkflowImplementation,
    WorkflowStep,
)
from toolcrib.workflows.checks import read_definition

FLOW: JsonObject = {
    "name": "flow",
    "steps": [{"name": "order", "tool": "get_order", "input": {"id": "${input.id}"}}],
    "output": "${order.total}",
}
OTHER: JsonObject = {**FLOW, "output": "${order.id}"}
WRONG: JsonObject = {**FLOW, "output": "${ordr}"}
BOT = Principal(id="bot", kind="service")


def inside(definition: object) -> WorkflowImplementation:
    implementation = getattr(definition, "implementation", None)
    assert isinstance(implementation, WorkflowImplementation)
    return implementation


# Drafts ---------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("workflow_checks.drafts")
async def test_a_draft_is_kept_with_who_wrote_it_and_runs_nowhere():
    async with house() as crib:
        draft = await crib.workflows.draft(FLOW, note="Please look.", authored_by="writer", run_id="run_1")

        assert (draft.revision, draft.note, draft.authored_by, draft.run_id) == (1, "Please look.", "writer", "run_1")
        assert await crib.workflows.get_draft("flow") == draft
        assert await crib.workflows.drafts() == [draft]
        with pytest.raises(NotFound, match="no workflow 'flow'"):
            await crib.workflows.get("flow")
        with pytest.raises(NotFound, match="no tool 'flow'"):
            await crib.invoke("flow", {})


@pytest.mark.requirement("workflow_checks.drafts")
async def test_a_draft_is_saved_only_if_it_could_be_published():
    async with house() as crib:
        with pytest.raises(InvalidDefinition) as refused:
            await crib.workflows.draft(WRONG)

        assert str(refused.value).startswith("workflow 'flow' has a problem: /output: ${ordr} reads 'ordr'")
        assert refused.value.problems[0]["path"] == "/output"
        with pytest.raises(InvalidDefinition, match="workflow 'x' has a problem: /steps: Field required"):
            await crib.workflows.draft({"name": "x"})
        assert await crib.workflows.drafts() == []


@pytest.mark.requirement("workflow_checks.drafts")
async def test_a_draft_never_replaces_what_is_published_and_is_not_overwritten_unseen():
    async with house() as crib:
        published = await crib.workflows.publish(FLOW)
        first = await crib.workflows.draft(OTHER, after=0)

        assert (await crib.workflows.get("flow")).content_hash == published.tool.content_hash
        with pytest.raises(Conflict):
            await crib.workflows.draft(FLOW, after=0)
        second = await crib.workflows.draft(FLOW, after=first.revision)
        assert second.revision == 2
        assert (await crib.workflows.get_draft("flow")).definition.output == "${order.total}"


@pytest.mark.requirement("workflow_checks.drafts")
async def test_a_draft_can_be_discarded_once():
    async with house() as crib:
        await crib.workflows.draft(FLOW)

        await crib.workflows.discard("flow")

        assert await crib.workflows.drafts() == []
        with pytest.raises(NotFound, match="there is no draft 'flow'"):
            await crib.workflows.discard("flow")


@pytest.mark.requirement("workflow_checks.drafts")
async def test_a_draft_is_read_with_what_is_wrong_with_it_by_now():
    async with house() as crib:
        await crib.workflows.draft(FLOW)
        await crib.registry.remove("default", "get_order")

        draft = await crib.workflows.get_draft("flow")

        assert [problem.path for problem in draft.problems] == ["/steps/0/tool"]
        with pytest.raises(InvalidDefinition):
            await crib.workflows.publish("flow")
        assert await crib.workflows.drafts() != []


# Publishing -----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("workflow_checks.publishing")
async def test_publishing_a_draft_binds_it_and_takes_it_away():
    async with house() as crib:
        await crib.workflows.draft(FLOW)

        done = await crib.workflows.publish("flow")

        bound = crib.registry.require("default", "get_order").content_hash
        assert inside(done.tool.definition).bound == {"get_order": bound}
        assert (done.impact, done.problems) == (None, ())
        assert await crib.workflows.drafts() == []
        with pytest.raises(NotFound, match="there is no draft 'flow'"):
            await crib.workflows.publish("flow")


@pytest.mark.requirement("workflow_checks.publishing")
async def test_what_the_author_left_out_is_derived_and_not_taken_for_said():
    async with house() as crib:
        done = await crib.workflows.publish(FLOW)

        assert done.tool.definition.side_effects == "reads"
        again = WorkflowDefinition.of(done.tool.definition)
        assert again.side_effects is None
        assert again == WorkflowDefinition.model_validate(FLOW)
        writing = await crib.workflows.publish({**FLOW, "side_effects": "writes"})
        assert WorkflowDefinition.of(writing.tool.definition).side_effects == "writes"


@pytest.mark.requirement("workflow_checks.publishing", "workflow_checks.vocabulary")
async def test_a_workflow_keeps_the_vocabulary_as_it_was_when_it_was_published():
    async with house() as crib:
        talk = StepRegistration(name="talk", tool="say", input_mapping={"text": "a"})
        big = ConditionBinding(name="big", parameters=("n",), expression="${n > 3}")
        await crib.steps.save(talk)
        await crib.conditions.save(big)
        step = {"name": "s", "handler_ref": "talk", "condition": {"ref": "big", "input": {"n": 1}}}
        done = await crib.workflows.publish({"name": "flow", "steps": [step]})

        await crib.steps.save(talk.model_copy(update={"input_mapping": {"text": "b"}}))

        kept = inside((await crib.workflows.get("flow")).definition)
        assert (kept.handlers, kept.conditions) == ({"talk": talk}, {"big": big})
        assert kept == inside(done.tool.definition)


@pytest.mark.requirement("workflow_checks.publishing")
async def test_publishing_over_another_revision_tells_whom_it_concerns():
    async with house() as crib:
        await crib.workflows.publish({**FLOW, "output_schema": {"type": "integer"}})
        await crib.workflows.publish({"name": "outer", "steps": [{"name": "s", "workflow": "flow"}]})

        done = await crib.workflows.publish({**OTHER, "output_schema": {"type": "string"}})

        assert done.impact is not None
        assert [dependent.name for dependent in done.impact.dependents] == ["outer@1.0.0"]


@pytest.mark.requirement("workflow_checks.publishing")
async def test_publishing_does_not_overwrite_what_the_author_has_not_seen():
    async with house() as crib:
        first = await crib.workflows.publish(FLOW, after=0)
        await crib.workflows.publish(OTHER, after=first.tool.revision)

        with pytest.raises(Conflict):
            await crib.workflows.publish(FLOW, after=first.tool.revision)


@pytest.mark.requirement("workflow_checks.publishing")
async def test_warnings_are_told_with_the_publication():
    async with house() as crib:
        crib.add(described("old", {}))
        await crib.lifecycle.deprecate("old")

        done = await crib.workflows.publish({"name": "flow", "steps": [{"name": "s", "tool": "old"}]})

        assert [problem.path for problem in done.problems] == ["/steps/0/tool"]


@pytest.mark.requirement("workflow_checks.publish_permission")
@pytest.mark.parametrize(
    ("who", "may"),
    [
        (Principal(id="ann"), True),
        (Principal(id="ann", grants=("ai://workflows/flow/publish",)), True),
        (Principal(id="ann", grants=("ai://workflows/*/write",)), False),
        (Principal(id="ann", grants=("ai://workflows/other/publish",)), False),
        (BOT, False),
        (BOT.model_copy(update={"grants": ("ai://workflows/*",)}), False),
        (BOT.model_copy(update={"grants": ("ai://workflows/*/publish",)}), True),
        (Principal(id="a", kind="agent"), False),
    ],
)
async def test_only_who_may_publish_publishes(who: Principal, may: bool):
    async with house() as crib:
        await crib.acting_as(who).workflows.draft(FLOW)
        if may:
            await crib.acting_as(who).workflows.publish("flow")
            return
        with pytest.raises(PermissionDenied, match=r"ai://workflows/flow/publish.*have a person publish it"):
            await crib.acting_as(who).workflows.publish("flow")
        with pytest.raises(PermissionDenied):
            await crib.acting_as(who).workflows.publish(FLOW)
        with pytest.raises(PermissionDenied):
            await crib.acting_as(who).save(WorkflowDefinition.model_validate(FLOW).tool())


@pytest.mark.requirement("workflow_checks.publishing")
async def test_an_account_that_the_author_may_not_use_is_told_and_refused():
    async with house() as crib:
        await crib.accounts.save(ServiceAccount(name="payer"))
        flow = {"name": "flow", "steps": [{"name": "s", "tool": "anything", "principal_ref": "payer"}]}
        ann = Principal(id="ann", grants=("ai://workflows/*",))

        (problem,) = (await crib.acting_as(ann).workflows.check(flow)).problems
        with pytest.raises(InvalidDefinition, match="ai://accounts/payer/execute"):
            await crib.acting_as(ann).workflows.publish(flow)
        with pytest.raises(PermissionDenied, match="ai://accounts/payer/execute"):
            await crib.acting_as(ann).save(WorkflowDefinition.model_validate(flow).tool())

        assert "workflow 'flow' would act as 'payer'" in problem.message
        await crib.workflows.publish(flow)


# Going back, and taking out -------------------------------------------------------------------------------------------


@pytest.mark.requirement("workflow_checks.revert")
async def test_an_older_revision_becomes_the_newest_once_more_bound_as_it_was():
    async with house() as crib:
        first = (await crib.workflows.publish(FLOW)).tool
        await crib.workflows.publish(OTHER)

        done = await crib.workflows.revert("flow", first.revision)

        assert (done.tool.revision, done.tool.content_hash) == (3, first.content_hash)
        assert (await crib.workflows.get("flow")).content_hash == first.content_hash
        with pytest.raises(NotFound, match="workflow 'flow' has no revision 7; there are 1 to 3"):
            await crib.workflows.revert("flow", 7)


@pytest.mark.requirement("workflow_checks.revert")
async def test_what_could_not_be_published_any_more_is_not_brought_back():
    async with house() as crib:
        await crib.workflows.publish(FLOW)
        await crib.workflows.publish({"name": "flow", "steps": [{"name": "a", "output": 1}]})
        await crib.lifecycle.block("get_order")

        with pytest.raises(InvalidDefinition, match=r"tool 'get_order@1\.0\.0' is blocked"):
            await crib.workflows.revert("flow", 1)


@pytest.mark.requirement("workflow_checks.drafts")
async def test_workflows_are_listed_read_and_removed_and_drafts_stay():
    async with house() as crib:
        await crib.workflows.publish(FLOW)
        await crib.workflows.draft(OTHER)

        assert [tool.name for tool in (await crib.workflows.page()).items] == ["flow"]
        with pytest.raises(NotFound, match="no workflow 'say' in realm 'default'; available: flow"):
            await crib.workflows.get("say")
        await crib.workflows.remove("flow")

        assert (await crib.workflows.page()).items == []
        assert len(await crib.workflows.drafts()) == 1
        with pytest.raises(NotFound, match="publish it first"):
            await crib.workflows.remove("flow")


# Other doors ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("workflow_checks.no_other_door")
async def test_a_workflow_that_is_saved_as_a_tool_is_checked_and_bound_too():
    async with house() as crib:
        with pytest.raises(InvalidDefinition, match="workflow 'flow' has a problem: /output"):
            await crib.save(WorkflowDefinition.model_validate(WRONG).tool())
        with pytest.raises(InvalidDefinition, match="workflow 'flow' has a problem: /output"):
            await crib.check(WorkflowDefinition.model_validate(WRONG).tool())

        saved = await crib.save(WorkflowDefinition.model_validate(FLOW).tool())

        assert list(inside(saved.definition).bound) == ["get_order"]


@pytest.mark.requirement("workflow_checks.in_code")
async def test_a_workflow_is_defined_in_code_and_run_through_its_handle():
    async with Crib("memory://") as crib:
        double = crib.workflow(
            "double",
            steps=[{"name": "twice", "output": "${input.n * 2}"}],
            input_schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
            output={"is": "${twice}"},
        )

        result = await double(n=21)

        assert result.output == {"is": 42}
        assert (await crib.workflows.get("double")).definition.side_effects == "none"


@pytest.mark.requirement("workflow_checks.in_code")
async def test_a_workflow_in_code_takes_contracts_and_documents_alike():
    async with Crib("memory://") as crib:
        typed = crib.workflow(
            "typed",
            steps=[WorkflowStep(name="a", output=1, retry=StepRetry(count=2))],
            limits=Limits(max_tool_calls=3),
            guardrails=[MaxCost(usd=Decimal(1))],
        )
        found = read_definition(
            {
                "name": "typed",
                "steps": [{"name": "a", "output": 1, "retry": {"count": 2}}],
                "limits": {"max_tool_calls": 3},
                "guardrails": [{"type": "max_cost", "usd": "1"}],
            }
        )
        with pytest.raises(InvalidDefinition, match="'object' is not JSON"):
            crib.workflow("wrong", steps=[{"name": "a", "output": object()}])

    assert typed.definition == found.definition


@pytest.mark.requirement("workflow_checks.in_code")
async def test_a_workflow_in_code_that_is_none_is_refused_at_once_and_a_wrong_one_when_it_is_saved():
    async with Crib("memory://") as crib:
        with pytest.raises(InvalidDefinition, match="/steps/0/tol: there is no field 'tol' here; did you mean 'tool'"):
            crib.workflow("flow", steps=[{"name": "a", "tol": "x"}])

        wrong = crib.workflow("flow", steps=[{"name": "a", "tool": "nobody"}])
        with pytest.raises(InvalidDefinition, match="no tool 'nobody'"):
            await wrong()


# What is known of the output ------------------------------------------------------------------------------------------

TOTAL = {"type": "integer"}


@pytest.mark.parametrize(
    ("output", "fields", "schema"),
    [
        ("${order.total}", {}, TOTAL),
        ("${order.total + 1}", {}, {"type": "number"}),
        ("${input.any}", {}, None),
        ("${order}", {"condition": "${input.id}"}, {"anyOf": [ORDER, {"type": "null"}]}),
        (
            {"t": "${order.total}", "any": "${input.any}", "k": [1, "x"]},
            {},
            {
                "type": "object",
                "properties": {
                    "t": TOTAL,
                    "any": {},
                    "k": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]}},
                },
                "required": ["any", "k", "t"],
            },
        ),
        (None, {}, {"type": "object", "properties": {"order": ORDER}, "required": ["order"]}),
        ("${order[*].total}", {"for_each": "${input.ids}"}, {"type": "array", "items": TOTAL}),
    ],
)
@pytest.mark.requirement("workflow_checks.publishing")
async def test_the_schema_of_the_output_follows_from_what_makes_it(
    output: Json, fields: JsonObject, schema: JsonSchema | None
):
    flow = {"name": "flow", "steps": [{**FLOW["steps"][0], **fields}], "output": output}
    async with house() as crib:
        done = await crib.workflows.publish(flow)

    assert done.tool.definition.output_schema == schema
    assert WorkflowDefinition.of(done.tool.definition).output_schema is None


@pytest.mark.requirement("workflow_checks.publishing", "workflow_checks.paths")
async def test_a_workflow_that_another_one_calls_is_known_by_its_derived_schema():
    async with house() as crib:
        await crib.workflows.publish({**FLOW, "output": {"total": "${order.total}"}})
        steps = [{"name": "inner", "workflow": "flow"}, {"name": "s", "output": "${inner.totl}"}]

        (line,) = await told(*steps, crib=crib, name="outer")

    assert line.endswith("did you mean 'total'?")


@pytest.mark.requirement("workflow_checks.publishing", "workflow_checks.paths")
async def test_a_step_whose_failure_has_a_way_of_its_own_is_known_in_the_output_of_the_workflow():
    get = {**FLOW["steps"][0], "on_error": {"go_to": "mend"}}
    async with house() as crib:
        await crib.workflows.publish({**FLOW, "steps": [get, {"name": "mend", "output": 1}], "output": None})
        steps = [{"name": "inner", "workflow": "flow"}, {"name": "s", "output": "${inner.order?.total}"}]

        assert await told(*steps, crib=crib, name="outer") == []
