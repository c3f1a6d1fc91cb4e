"""What another release has saved and this one cannot read: it stands blocked, and takes nothing else with it."""

from dataclasses import replace

import pytest

from toolcrib import Crib, tool
from toolcrib.contracts import Conflict, InvalidDefinition, PromptFragment, Reason
from toolcrib.contracts.workflows import WorkflowDefinition, WorkflowStep
from toolcrib.core.registry import stored_tool
from toolcrib.infrastructure.store import Definition, Store, open_store

pytestmark = pytest.mark.requirement("workflow_checks.releases")

FLOW = WorkflowDefinition(name="flow", steps=(WorkflowStep(name="a", output=1),))


@tool(side_effects="none")
async def add(one: int, two: int) -> int:
    """Adds."""
    return one + two


async def saved(store: Store, **changes: object) -> Definition:
    """A workflow in the store with other contents than this release writes."""
    crib = Crib(store)
    await crib.open()
    row = stored_tool(FLOW.tool(), realm="default", made_by="owner", at=crib.clock.now())
    implementation = {**row.body["implementation"], **changes}
    return await store.definitions.save(replace(row, body={**row.body, "implementation": implementation}))


async def test_a_workflow_of_a_newer_release_is_blocked_with_the_field_and_the_others_work():
    store = open_store("memory://")
    await saved(store, quantum=True, spin="up")
    async with Crib(store) as crib:
        crib.add(add)

        found = (await crib.listing.page()).items
        result = await crib.invoke("add", {"one": 1, "two": 2})

        assert [(tool.name, tool.status) for tool in found] == [("add", "active"), ("flow", "blocked")]
        assert result.output == 3
        flow = crib.registry.require("default", "flow")
        assert flow.status_message == (
            "it was saved by a newer release, which knows 'implementation.workflow.quantum', "
            "'implementation.workflow.spin'; upgrade this one, or save it again without them"
        )


async def test_calling_what_cannot_be_read_says_why():
    store = open_store("memory://")
    await saved(store, quantum=True)
    async with Crib(store) as crib:
        refusal = await crib.refusal("flow", {})

        assert refusal is not None
        assert refusal.reason is Reason.TOOL_BLOCKED
        assert "saved by a newer release" in refusal.message


async def test_what_is_no_definition_at_all_says_what_is_wrong_with_it():
    store = open_store("memory://")
    await saved(store, steps=[])
    async with Crib(store) as crib:
        flow = crib.registry.require("default", "flow")

        assert flow.status_message is not None
        assert flow.status_message.startswith("it cannot be read by this release: 'implementation.workflow.steps': ")
        assert flow.status_message.endswith("; save it again")


async def test_many_unknown_fields_are_counted():
    store = open_store("memory://")
    await saved(store, **{f"field_{number}": 1 for number in range(5)})
    async with Crib(store) as crib:
        assert "and 2 more fields" in (crib.registry.require("default", "flow").status_message or "")


async def test_what_cannot_be_read_is_still_blocked_after_somebody_activates_it():
    store = open_store("memory://")
    await saved(store, quantum=True)
    async with Crib(store) as crib:
        await crib.lifecycle.activate("flow")

        assert crib.registry.require("default", "flow").status == "blocked"


async def test_a_name_whose_newest_revision_cannot_be_read_takes_a_new_one():
    store = open_store("memory://")
    row = await saved(store, quantum=True)
    async with Crib(store) as crib:
        with pytest.raises(Conflict):
            await crib.save(FLOW.tool(), after=0)
        new = await crib.workflows.publish(FLOW, after=row.revision)

        assert (new.tool.revision, new.tool.status) == (2, "active")
        assert (await crib.invoke("flow", {})).output == {"a": 1}


async def test_a_fragment_of_a_newer_release_is_refused_by_name_and_the_others_are_there():
    store = open_store("memory://")
    async with Crib(store) as crib:
        await crib.fragments.save(PromptFragment(name="tone", text="Kindly."))
        await crib.fragments.save(PromptFragment(name="other", text="Briefly."))
        row = (await store.definitions.revisions("fragment", "default", "tone"))[-1]
        await store.definitions.save(replace(row, body={**row.body, "voice": "low"}, content_hash="sha256:other"))

        assert [fragment.name for fragment in await crib.fragments.list()] == ["other"]
        with pytest.raises(InvalidDefinition, match="'tone' was saved by a newer release, which knows 'voice'"):
            await crib.fragments.get("tone")
        await crib.fragments.remove("tone")
        await crib.fragments.save(PromptFragment(name="tone", text="Again."))
        assert (await crib.fragments.get("tone")).text == "Again."


async def test_a_draft_of_a_newer_release_is_listed_with_the_reason_and_cannot_be_published():
    store = open_store("memory://")
    async with Crib(store) as crib:
        await crib.workflows.draft(FLOW)
        row = (await store.definitions.revisions("draft", "default", "flow"))[-1]
        await store.definitions.save(replace(row, body={**row.body, "mood": "good"}, content_hash="sha256:other"))

        (draft,) = await crib.workflows.drafts()

        assert draft.definition.status == "disabled"
        assert draft.problems[0].message.startswith("draft 'flow' was saved by a newer release, which knows 'mood'")
        with pytest.raises(InvalidDefinition, match="draft 'flow' was saved by a newer release"):
            await crib.workflows.publish("flow")
        await crib.workflows.discard("flow")
