"""One crib for several principals: who acts is said once, and holds for whatever is done then."""

import inspect

import pytest

from toolcrib import Crib, Principal, tool
from toolcrib.contracts import NotFound, PermissionDenied
from toolcrib.crib import ActingCrib

ANN = Principal(id="ann", grants=("ai://tools/*", "ai://workflows/*"))
BEN = Principal(id="ben", grants=("ai://tools/*", "ai://workflows/*"))
EVE = Principal(id="eve", realm="elsewhere")

pytestmark = pytest.mark.requirement("crib.acting_as")


@tool(side_effects="reads")
async def add(a: int, b: int = 1) -> int:
    """The sum."""
    return a + b


@tool(side_effects="writes", requires_confirmation=True)
async def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


async def test_a_run_is_made_by_whoever_acts():
    async with Crib("memory://") as crib:
        crib.add(add)
        runs = [await each.invoke("add", {"a": 1}) for each in (crib, crib.acting_as(ANN), crib.acting_as(BEN))]
        kept = [await crib.store.journal.run(each.run_id) for each in runs]

    assert [run.made_by for run in kept] == [crib.principal.id, "ann", "ben"]


async def test_what_one_principal_saves_is_at_hand_for_another_and_in_its_own_realm_only():
    async with Crib("memory://") as crib:
        ann, ben, eve = map(crib.acting_as, (ANN, BEN, EVE))
        saved = await ann.save(add.definition)

        assert (saved.made_by, saved.realm) == ("ann", "default")
        assert [each.name for each in (await ben.listing.page()).items] == ["add"]
        assert (await eve.listing.page()).items == []
        with pytest.raises(NotFound):
            await eve.invoke("add", {"a": 1})


async def test_a_principal_looks_at_its_own_runs_and_the_application_at_all():
    async with Crib("memory://") as crib:
        crib.add(pay)
        waiting = await crib.acting_as(ANN).invoke("pay", {"amount": 5})
        run_id = waiting.run_id

        for who in (crib, crib.acting_as(ANN)):
            assert (await who.trace(run_id)).run_id == run_id
            assert [each.position for each in await who.pending_approvals(run_id)] == ["call"]
        for attempt in (
            crib.acting_as(BEN).trace(run_id),
            crib.acting_as(BEN).resume(run_id),
            crib.acting_as(BEN).replay(run_id, parked=True),
            crib.acting_as(BEN).pending_approvals(run_id),
            crib.acting_as(BEN).pending_handoffs(run_id),
            crib.acting_as(BEN).questions.of_run(run_id),
            crib.acting_as(BEN).cancel(run_id),
        ):
            with pytest.raises(PermissionDenied, match="another's"):
                await attempt
        with pytest.raises(NotFound):
            await crib.acting_as(EVE).trace(run_id)


async def test_a_principal_does_not_decide_on_its_own_call_and_the_application_does():
    async with Crib("memory://") as crib:
        crib.add(pay)
        ann = crib.acting_as(ANN.model_copy(update={"grants": ("ai://*",)}))
        waiting = await ann.invoke("pay", {"amount": 5})

        with pytest.raises(PermissionDenied):
            await ann.decide(waiting.run_id, "call", approve=True)
        assert await crib.decide(waiting.run_id, "call", approve=True)
        assert (await ann.resume(waiting.run_id)).output == "paid 5"


def test_no_method_takes_a_principal():
    crib = Crib("memory://").acting_as(ANN)
    parts = [crib, *(getattr(crib, name) for name in dir(ActingCrib) if not name.startswith("_"))]
    methods = [
        method
        for part in parts
        if type(part).__module__.startswith("toolcrib.crib.")
        for name, method in inspect.getmembers(part, callable)
        if not name.startswith("_")
    ]

    assert len(methods) > 100
    assert [method for method in methods if "principal" in inspect.signature(method).parameters] == []
