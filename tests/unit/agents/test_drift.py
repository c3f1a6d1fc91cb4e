"""Drift: what has changed in an agentic tool's tools since its prompt was made."""

from typing import Any

import pytest

from tests.unit.agents.crm import MODEL
from toolcrib import AgenticContext, Crib, ReferenceSource, ScriptedModel, tool
from toolcrib.agents import basis_of, drift_of, with_basis
from toolcrib.contracts import (
    AgenticImplementation,
    DriftReport,
    JsonSchema,
    ProgressStep,
    ProviderData,
    ProviderDefinition,
    ToolDefinition,
)

pytestmark = pytest.mark.requirement("agentic.drift")

PROMPT = "Search by company. {{user_task}}"


def deals(schema: JsonSchema, *, version: str = "1.0.0") -> ToolDefinition:
    """A tool over deals."""

    @tool(name="deals", side_effects="reads", version=version)
    def run() -> str:
        return "ok"

    return run.definition.model_copy(update={"input_schema": schema})


def fields(*, required: tuple[str, ...] = (), **properties: Any) -> JsonSchema:
    return {"type": "object", "properties": properties, "required": list(required)}


OLD = fields(company={"type": "string"}, stage={"enum": ["won", "lost"]}, owner={"type": "string"})
NEW = fields(
    company={"type": "string", "description": "Its name."},
    stage={"enum": ["won", "open"]},
    owner={"type": "integer"},
    year={"type": "integer"},
    required=("year",),
)


def agent(crib: Crib, **more: Any) -> Any:
    settings: dict[str, Any] = {"tools": ["deals"], "system_prompt": PROMPT, **more}
    return crib.agentic_tool("agent", mode="agentic", model=MODEL, **settings)


async def report(crib: Crib) -> DriftReport:
    found = crib.registry.require(crib.principal.realm, "agent")
    return await drift_of(found, crib.registry, crib.providers)


def crib_with(*answers: str) -> Crib:
    return Crib("memory://", models={MODEL: ScriptedModel(answers or ["Done."])})


async def test_a_run_whose_tools_have_changed_says_what_and_goes_on():
    async with crib_with("Done.", "Done.") as crib:
        crib.add(deals(OLD))
        run = agent(crib)
        before = await run("x")
        await crib.save(deals(NEW, version="1.1.0"))
        after = await run("x")

        found = await report(crib)

    assert before.summary.warnings == ()
    assert after.output == {"summary": "Done."}
    [warning] = after.summary.warnings
    assert warning == (
        "schemas have changed since the prompt of 'agent@1.0.0' was made: "
        'deals: stage does not allow "lost" any more; '
        "deals: owner was string and is integer; "
        "deals: year (integer) was added, and it is required; regenerate it"
    )
    [step] = [step for step in after.trace.steps if isinstance(step, ProgressStep)]
    assert step.kind == "schema_drift"
    assert step.data == found.model_dump(mode="json")
    assert found.drifted
    assert [(change.subject, change.kind, change.place, change.change_class) for change in found.changes] == [
        ("deals", "changed", "stage", "narrowing"),
        ("deals", "changed", "owner", "breaking"),
        ("deals", "added", "year", "breaking"),
    ]


async def test_a_change_of_a_description_is_no_drift():
    async with crib_with() as crib:
        crib.add(deals(OLD))
        agent(crib)
        await crib.open()
        await crib.save(deals(OLD).model_copy(update={"description": "Other words."}))

        assert not (await report(crib)).drifted


async def test_a_tool_that_is_gone_is_told():
    async with crib_with() as crib:
        crib.add(deals(OLD))
        agent(crib)
        await crib.open()
        await crib.registry.remove(crib.principal.realm, "deals")

        [change] = (await report(crib)).changes

    assert (change.kind, change.message) == ("missing", "tool 'deals' is not there any more")


async def test_a_prompt_of_the_authors_own_that_is_saved_again_is_as_old_as_it_was():
    async with crib_with() as crib:
        crib.add(deals(OLD))
        agent(crib)
        await crib.open()
        await crib.save(deals(NEW))
        agent(crib, description="Other words for people.")
        await crib.open()

        assert (await report(crib)).drifted


@pytest.mark.parametrize("prompt", ["Search by company and year. {{user_task}}", None], ids=["rewritten", "default"])
async def test_a_prompt_that_is_written_anew_or_by_rule_is_of_today(prompt: str | None):
    async with crib_with() as crib:
        crib.add(deals(OLD))
        agent(crib, **({} if prompt else {"system_prompt": None}))
        await crib.open()
        await crib.save(deals(NEW))
        agent(crib, system_prompt=prompt)
        await crib.open()

        assert not (await report(crib)).drifted


async def test_a_new_prompt_with_the_old_basis_gets_its_own():
    async with crib_with() as crib:
        crib.add(deals(OLD))
        agent(crib)
        await crib.open()
        await crib.save(deals(NEW))
        stored = crib.registry.require(crib.principal.realm, "agent").definition
        changed = stored.implementation.model_copy(update={"system_prompt": "Year and company. {{user_task}}"})
        await crib.save(stored.model_copy(update={"implementation": changed}))

        assert not (await report(crib)).drifted


async def test_a_basis_that_is_given_is_kept():
    async with crib_with() as crib:
        crib.add(deals(OLD))
        agent(crib)
        await crib.open()
        await crib.save(deals(NEW))
        stored = crib.registry.require(crib.principal.realm, "agent").definition
        assert isinstance(stored.implementation, AgenticImplementation)
        basis = basis_of(stored.implementation, crib.principal.realm, crib.registry, crib.providers)
        await crib.save(
            stored.model_copy(update={"implementation": stored.implementation.model_copy(update={"made_from": basis})})
        )

        assert not (await report(crib)).drifted


async def test_the_shape_of_a_list_is_part_of_what_a_prompt_is_made_from():
    @tool(side_effects="reads")
    def list_stages() -> list[dict[str, str]]:
        return [{"id": "1", "label": "Won"}]

    stages = ReferenceSource(name="stages", tool="list_stages")
    users = ReferenceSource(name="users", values=("a",))
    offices = ReferenceSource(name="offices", values=("a",))
    provider = ProviderDefinition(name="crm", base_url="https://crm.example", reference_data=(users, offices))
    context = AgenticContext(
        reference_data=(stages,), provider_data=(ProviderData(provider="crm", data_types=("users", "offices")),)
    )
    async with crib_with() as crib:
        crib.add(deals(OLD), list_stages)
        await crib.save_provider(provider)
        agent(crib, context=context)
        await crib.open()
        shape: Any = {"type": "array", "items": {"type": "object", "properties": {"key": {"type": "string"}}}}
        await crib.save(list_stages.definition.model_copy(update={"output_schema": shape}))
        await crib.save_provider(
            provider.model_copy(update={"reference_data": (users.model_copy(update={"values": ("b",)}),)})
        )

        found = await report(crib)

    assert [change.message for change in found.changes] == [
        "list_stages: [].* was string and is any value",
        "list_stages: [].key (string) was added",
        "reference_data.users is declared differently by its provider",
        "reference_data.offices is no longer declared by its provider",
    ]


async def test_a_basis_from_another_crib_tells_nothing():
    async with crib_with() as crib:
        crib.add(deals(OLD))
        stored = agent(crib).definition
        foreign = stored.implementation.model_copy(update={"made_from": {"deals": "sha256:0"}})
        await crib.save(stored.model_copy(update={"implementation": foreign}))

        assert not (await report(crib)).drifted


async def test_a_tool_without_a_model_has_no_drift():
    async with crib_with() as crib:
        crib.add(deals(OLD))
        await crib.open()
        plain = crib.registry.require(crib.principal.realm, "deals")

        assert not (await drift_of(plain, crib.registry, crib.providers)).drifted


async def test_a_plain_definition_is_made_from_nothing():
    async with crib_with() as crib:
        plain = deals(OLD)

        assert with_basis(plain, crib.principal.realm, crib.registry, crib.providers, is_default=False) is plain
