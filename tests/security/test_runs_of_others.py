"""Runs in Python, for a principal that is named: others' are not cancelled, and nothing is brought to them."""

from collections.abc import Awaitable, Callable

import pytest

from toolcrib import Crib, tool
from toolcrib.contracts import ClientResult, NotFound, PermissionDenied, Principal

pytestmark = pytest.mark.requirement("crib.runs_of_others")

ANN, BEN = Principal(id="ann"), Principal(id="ben", grants=("ai://tools/*",))
STRANGER = Principal(id="ann", realm="elsewhere")
STEPS: tuple[Callable[[Crib, str, Principal], Awaitable[bool]], ...] = (
    lambda crib, run_id, who: crib.acting_as(who).cancel(run_id),
    lambda crib, run_id, who: crib.acting_as(who).return_client_result(run_id, "call", ClientResult(output="done")),
)


@tool(side_effects="writes", runs_on="client")
def show(text: str) -> str:
    """Show a text."""
    return text


@pytest.mark.parametrize("step", STEPS, ids=["cancel", "bring a result"])
async def test_who_has_no_part_in_a_run_does_nothing_to_it(step: Callable[[Crib, str, Principal], Awaitable[bool]]):
    async with Crib("memory://") as crib:
        crib.add(show)
        run_id = (await crib.acting_as(ANN).invoke("show", {"text": "hi"})).run_id
        with pytest.raises(PermissionDenied, match="ai://runs/show/execute"):
            await step(crib, run_id, BEN)
        with pytest.raises(NotFound):
            await step(crib, run_id, STRANGER)
        assert (await crib.store.journal.run(run_id)).status == "awaiting_client"
        assert await step(crib, run_id, ANN)
