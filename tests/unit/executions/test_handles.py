"""Pinned handles of executions: what they hold when their call is not there, and what they never hold."""

from typing import Any

import pytest

from tests.unit.executions.house import agent, open_crib, turn
from toolcrib import Principal
from toolcrib.contracts import AgentRequest, AgentResponse, ErrorCode, InvalidDefinition, PinnedHandle, PinSelector
from toolcrib.crib import ActingCrib
from toolcrib.llm import Message, ToolCall

LOOKS, DOES_NOT = (turn(("look", "hat")), "A hat."), ("Nothing.",)


def pinned(tool: str = "look", *, name: str = "found", on_missing: Any = "null") -> PinnedHandle:
    return PinnedHandle(name=name, selector=PinSelector(tool=tool), on_missing=on_missing)


def kept(tool: str = "look", *, name: str = "found") -> PinnedHandle:
    return pinned(tool, name=name, on_missing="stale_last_success")


async def asked(crib: ActingCrib, name: str = "clerk") -> AgentResponse:
    return await crib.executions.execute(name, AgentRequest(message="go"))


@pytest.mark.requirement("pins.missing", "outputs.always")
async def test_a_handle_without_a_call_is_null():
    clerk = agent(pins=[pinned(), pinned("pay", name="paid")])
    async with await open_crib(*LOOKS, definition=clerk) as crib:
        answer = await asked(crib)

    assert (answer.status, answer.handles) == ("completed", {"found": "hat is here", "paid": None})


@pytest.mark.requirement("pins.missing")
async def test_a_handle_that_must_not_be_empty_fails_the_execution_that_leaves_it_so():
    clerk = agent(pins=[pinned(on_missing="error"), pinned("pay", name="paid", on_missing="error")])
    async with await open_crib(*LOOKS, definition=clerk) as crib:
        answer = await asked(crib)
        run = await crib.store.journal.run(answer.run_id)

    assert (answer.status, answer.stop_reason, answer.response) == ("failed", "error", "A hat.")
    assert (run.status, run.error) == ("failed", answer.error)
    assert answer.error is not None
    assert (answer.error.code, answer.error.reason) == (ErrorCode.VALIDATION_ERROR, "handle_missing")
    assert "pinned handle 'paid' has no call of 'pay'" in answer.error.message
    assert answer.error.details == {"reason": "handle_missing", "handles": ["paid"]}
    assert answer.handles == {"found": "hat is here", "paid": None}


@pytest.mark.requirement("pins.missing")
async def test_a_handle_that_must_not_be_empty_and_is_not_fails_nothing():
    async with await open_crib(*LOOKS, definition=agent(pins=[pinned(on_missing="error")])) as crib:
        answer = await asked(crib)

    assert (answer.status, answer.handles) == ("completed", {"found": "hat is here"})


@pytest.mark.requirement("pins.missing")
async def test_an_execution_that_failed_anyway_keeps_its_own_error():
    stranger = Principal(id="stranger", grants=())
    async with await open_crib(definition=agent(pins=[pinned(on_missing="error")])) as crib:
        answer = await asked(crib.acting_as(stranger))

    assert answer.error is not None
    assert (answer.error.reason, answer.handles) == ("permission_missing", {"found": None})


@pytest.mark.requirement("pins.missing", "pins.stale")
async def test_a_handle_keeps_what_the_last_successful_execution_had():
    clerk = agent(pins=[kept(), kept("pay", name="paid")])
    answers: tuple[Message | str, ...] = (turn(("look", "coat")), "A coat.", *LOOKS, *DOES_NOT, *DOES_NOT)
    async with await open_crib(*answers, definition=clerk) as crib:
        held = [(await asked(crib)).handles["found"] for _ in range(4)]
        last = await asked(crib.acting_as(Principal(id="ann")))

    assert held == ["coat is here", "hat is here", "hat is here", "hat is here"]
    assert last.status == "failed"


@pytest.mark.requirement("pins.stale")
async def test_of_several_earlier_executions_the_last_one_counts():
    answers: tuple[Message | str, ...] = (turn(("look", "coat")), "A coat.", *LOOKS, *DOES_NOT)
    async with await open_crib(*answers, definition=agent(pins=[kept()])) as crib:
        await asked(crib)
        await asked(crib)

        assert (await asked(crib)).handles == {"found": "hat is here"}


@pytest.mark.requirement("pins.stale")
async def test_the_first_execution_has_nothing_to_keep():
    async with await open_crib(*DOES_NOT, definition=agent(pins=[kept()])) as crib:
        assert (await asked(crib)).handles == {"found": None}


@pytest.mark.requirement("pins.stale")
async def test_an_earlier_answer_keeps_its_handles_whatever_comes_later():
    clerk = agent(pins=[kept()])
    async with await open_crib(*DOES_NOT, *LOOKS, definition=clerk) as crib:
        first = await asked(crib)
        await asked(crib)

        assert (await crib.executions.respond(first.run_id)).handles == {"found": None}


@pytest.mark.requirement("pins.stale")
async def test_what_failed_or_what_is_not_over_is_not_kept():
    strict = agent(pins=[kept(), pinned("show", name="shown", on_missing="error")])
    async with await open_crib(*LOOKS, turn(("pick", "hat"), ("look", "shoe")), *DOES_NOT, definition=strict) as crib:
        failed = await asked(crib)
        await crib.save(agent(pins=[kept()]))
        waiting = await asked(crib)
        answer = await asked(crib)

    assert (failed.status, waiting.status, answer.status) == ("failed", "awaiting_client", "completed")
    assert (waiting.handles, answer.handles) == ({"found": "shoe is here"}, {"found": None})


@pytest.mark.requirement("pins.stale")
async def test_a_failed_call_of_an_earlier_execution_is_passed_over():
    clerk = agent(pins=[kept("fail")])
    async with await open_crib(turn(("fail", "hat")), "No.", *DOES_NOT, definition=clerk) as crib:
        await asked(crib)

        assert (await asked(crib)).handles == {"found": None}


@pytest.mark.requirement("pins.stale")
@pytest.mark.parametrize(
    "who",
    [Principal(id="ann"), Principal(id="owner", realm="elsewhere")],
    ids=["another-principal", "another-realm"],
)
async def test_nothing_is_kept_from_another_principal_or_realm(who: Principal):
    async with await open_crib(*LOOKS, *DOES_NOT, definition=agent(pins=[kept()])) as crib:
        await asked(crib)
        if who.realm == "elsewhere":
            await crib.acting_as(who).save(agent(tools=[], pins=[kept()]))
        answer = await asked(crib.acting_as(who))

    assert (answer.status, answer.handles) == ("completed", {"found": None})


@pytest.mark.requirement("pins.stale")
async def test_what_an_agent_did_for_another_agent_is_not_kept_for_a_person():
    clerk, boss = agent(pins=[kept()]), agent("boss", tools=["clerk"])
    delegate = Message("assistant", (ToolCall("d1", "clerk", '{"message": "go"}'),))
    async with await open_crib(delegate, *LOOKS, "Done.", *DOES_NOT, definition=clerk) as crib:
        await crib.save(boss)
        assert (await asked(crib, "boss")).response == "Done."

        assert (await asked(crib)).handles == {"found": None}


@pytest.mark.requirement("pins.stable")
@pytest.mark.parametrize("how", ["disabled", "blocked", "removed", "excluded", "never-there"])
async def test_a_handle_stays_whatever_becomes_of_its_tool(how: str):
    pins = [pinned("ghost" if how == "never-there" else "look"), pinned("pick", name="picked")]
    excluded = ("look",) if how == "excluded" else ()
    clerk = agent(tools=["look", "pick"], pins=pins, excluded_tools=excluded)
    async with await open_crib(*LOOKS, definition=clerk) as crib:
        look = crib.registry.require("default", "look").definition
        if how == "disabled":
            await crib.save(look.model_copy(update={"enabled": False}))
        elif how == "blocked":
            await crib.lifecycle.block("look", message="broken")
        elif how == "removed":
            await crib.registry.remove("default", "look")
        answer = await asked(crib)

    assert answer.handles == {"found": None, "picked": None}


@pytest.mark.requirement("pins.well_formed")
async def test_pins_that_cannot_be_told_apart_are_not_saved():
    async with await open_crib() as crib:
        with pytest.raises(InvalidDefinition, match="two pinned handles of the name 'found'"):
            await crib.save(agent(pins=[pinned(), pinned("pay")]))
