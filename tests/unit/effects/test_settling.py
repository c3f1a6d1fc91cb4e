"""Answers to the question whether a call took effect: who may give them, and which are none."""

import pytest

from toolcrib import Crib, tool
from toolcrib.contracts import Conflict, InvalidInput, JsonObject, PermissionDenied, Principal

pytestmark = pytest.mark.requirement("effects.ask_bound")

BEN = Principal(id="ben", grants=("ai://*",))


@tool(side_effects="writes", on_unknown="ask")
async def send(text: str) -> dict[str, str]:
    """Send a letter, and hear nothing of it."""
    raise TimeoutError(text)


async def asked(crib: Crib) -> tuple[str, str]:
    """Ids of a run that waits, and of the question that it waits for."""
    crib.add(send)
    with pytest.raises(Conflict, match="awaiting approval"):
        await crib.call("send", {"text": "hello"})
    [question] = (await crib.approvals.page()).items
    assert question.question == "outcome"
    return question.run_id, question.approval_id


async def test_who_has_a_part_in_the_run_cannot_settle_its_calls():
    async with Crib("memory://") as crib:
        _, question = await asked(crib)
        with pytest.raises(PermissionDenied):
            await crib.acting_as(crib.principal).approvals.decide(question, approve=True, happened=False)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"approve": True}, "say happened=true with its output"),
        ({"approve": True, "happened": True, "output": {"sent": 7}}, "the output is not what 'send' brings"),
        ({"approve": True, "happened": True, "output": {"sent": object()}}, "is not JSON"),
        ({"approve": True, "happened": False, "output": {}}, "no output yet"),
        ({"approve": True, "happened": True, "edited_input": {"text": "x"}}, "its old arguments"),
        ({"approve": False, "happened": True}, "leave happened and output out"),
    ],
)
async def test_an_answer_that_is_none_leaves_the_question_open(said: JsonObject, problem: str):
    async with Crib("memory://") as crib:
        _, question = await asked(crib)
        with pytest.raises(InvalidInput, match=problem):
            await crib.acting_as(BEN).approvals.decide(question, **said)
        assert (await crib.approvals.get(question)).approval.status == "waiting"


async def test_the_first_answer_counts_and_the_run_goes_on_with_it():
    async with Crib("memory://") as crib:
        run_id, question = await asked(crib)
        await crib.acting_as(BEN).approvals.decide(question, approve=True, happened=True, output={"sent": "yes"})
        with pytest.raises(Conflict):
            await crib.acting_as(BEN).approvals.decide(question, approve=False)
        done = await crib.resume(run_id)

    assert done.envelopes[-1].output == {"sent": "yes"}
