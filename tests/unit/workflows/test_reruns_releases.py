"""Instances of definitions that another release has written, and that this one cannot read or run."""

import pytest

from tests.unit.workflows.shop import Shop, calls, publish, reused
from toolcrib import Crib
from toolcrib.contracts import ErrorCode, InvalidInput, JsonObject, NotFound, Reason, RunRequest, content_hash
from toolcrib.infrastructure.store import Definition

pytestmark = pytest.mark.requirement("workflow_reruns.fixed")

ITEM: JsonObject = {"item": "x"}
ORDER = (calls("reserve", "reserve"), calls("ship", "ship", depends_on=["reserve"]))


async def saved_elsewhere(crib: Crib, version: str, *steps: JsonObject) -> str:
    """A definition as another release has saved it; its content hash."""
    body = {"name": "order", "version": version, "implementation": {"kind": "workflow", "steps": [*steps]}}
    hashed = content_hash(body)
    saved = Definition("tool", "default", "order", version, 0, hashed, body, "owner", crib.clock.now())
    await crib.store.definitions.save(saved)
    return hashed


async def run_of(crib: Crib, version: str, hashed: str) -> str:
    """An instance of it that another process has begun; its id."""
    request = RunRequest(
        kind="workflow", tool=f"order@{version}", content_hash=hashed, input=ITEM, principal=crib.principal
    )
    return await crib.engine.create(request)


async def test_an_instance_whose_definition_a_newer_release_has_saved_says_so_and_is_resumed_when_it_can_be_read():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        hashed = await saved_elsewhere(crib, "2.0.0", {**ORDER[0], "teleport": True})
        run_id = await run_of(crib, "2.0.0", hashed)
        await crib.resume(run_id)

        failed = await crib.instances.get(run_id)

        assert failed.status == "failed"
        assert failed.error is not None
        assert (failed.error.code, failed.error.reason) == (ErrorCode.VALIDATION_ERROR, Reason.TOOL_BLOCKED)
        assert "newer release, which knows" in failed.error.message
        assert "teleport" in failed.error.message
        with pytest.raises(InvalidInput, match=r"'order@2\.0\.0' cannot be run: it was saved by a newer release"):
            await crib.instances.start("order", ITEM)
        with pytest.raises(InvalidInput, match="newer release"):
            await crib.instances.resume(run_id)
        with pytest.raises(
            NotFound, match=r"no workflow 'order' in .*: order@2\.0\.0 is blocked, it was saved by a newer"
        ):
            await crib.workflows.graph("order")
        outer = await crib.workflows.check({"name": "outer", "steps": [{"name": "inner", "workflow": "order"}]})
        (problem,) = outer.problems
        assert problem.message.startswith("tool 'order@2.0.0' is blocked: it was saved by a newer release")

        await publish(crib, "order", *ORDER, version="2.0.1")
        resumed = await crib.instances.resume(run_id)

    assert (resumed.status, shop.done) == ("completed", ["reserve x", "ship x"])


async def test_an_instance_that_failed_is_resumed_after_a_newer_release_has_meddled_with_its_workflow():
    shop = Shop()
    shop.broken = {"ship"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", *ORDER)
        failed = await crib.instances.start("order", ITEM)
        await saved_elsewhere(crib, "1.0.0", {**ORDER[0], "teleport": True})
        shop.broken = set()
        await publish(crib, "order", *ORDER, version="1.0.1")

        resumed = await crib.instances.resume(failed.run_id)

    assert (resumed.status, reused(resumed), shop.done) == ("completed", ["reserve"], ["reserve x", "ship x"])


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ((calls("a", "look", depends_on=["b"]), calls("b", "look", depends_on=["a"])), "wait for each other"),
        ((calls("a", "look", "${input.item"),), "publish it again"),
        ((calls("a", "look", "${steps.c.output}"),), "no step 'c'"),
    ],
)
async def test_a_definition_that_was_saved_unchecked_and_cannot_be_run_is_a_labelled_failure(
    steps: tuple[JsonObject, ...], told: str
):
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        hashed = await saved_elsewhere(crib, "0.1.0", *steps)
        run_id = await run_of(crib, "0.1.0", hashed)
        await crib.resume(run_id)
        failed = await crib.instances.get(run_id)
        assert failed.error is not None
        assert failed.error.reason == Reason.TOOL_BLOCKED
        assert told in failed.error.message
        await publish(crib, "order", *ORDER, version="0.1.1")

        resumed = await crib.instances.resume(run_id)

    assert (resumed.status, shop.done) == ("completed", ["reserve x", "ship x"])
