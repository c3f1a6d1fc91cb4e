"""Calls that an execution hands over to its client, and what the client brings back."""

import asyncio
from itertools import permutations
from pathlib import Path

import pytest

from tests.unit.executions.house import Desk, agent, open_crib, results, turn
from toolcrib import Principal
from toolcrib.contracts import (
    AgentRequest,
    AgentResponse,
    Conflict,
    ErrorCode,
    InvalidInput,
    NotFound,
    PermissionDenied,
    ReturnedCall,
    ToolError,
)
from toolcrib.crib import ActingCrib
from toolcrib.llm import Message, ToolCall

GO = AgentRequest(message="go")


async def returned(crib: ActingCrib, waiting: AgentResponse, *brought: ReturnedCall) -> AgentResponse:
    return await crib.executions.execute("clerk", AgentRequest(run_id=waiting.run_id, tool_results=brought))


@pytest.mark.requirement("handoff.mixed", "outputs.standing")
async def test_the_server_calls_of_a_turn_run_and_the_others_are_handed_over():
    desk = Desk()
    async with await open_crib(turn(("pick", "hat"), ("look", "hat"), ("show", "coat")), "Done.", desk=desk) as crib:
        waiting = await crib.executions.execute("clerk", GO)
        again = await crib.executions.respond(waiting.run_id)

    assert again == waiting
    assert (waiting.status, waiting.response, waiting.stop_reason) == ("awaiting_client", "", None)
    assert [(call.name, call.output) for call in waiting.tool_calls] == [
        ("pick", {"ask": "hat"}),
        ("show", {"open": "coat"}),
    ]
    assert all(call.requires_client_execution for call in waiting.tool_calls)
    assert [waiting.tools_by_id[call_id].name for call_id in waiting.tool_order] == ["look"]
    assert sorted(desk.done) == [("look", "hat"), ("pick", "hat"), ("show", "coat")]


@pytest.mark.requirement("handoff.stateless", "outputs.response")
async def test_all_results_come_back_in_one_request_and_the_run_goes_on():
    async with await open_crib(turn(("pick", "hat"), ("show", "coat")), "Done.") as crib:
        waiting = await crib.executions.execute("clerk", GO)
        answer = await returned(crib, waiting, *results(waiting, "the red one", None))

    assert (answer.status, answer.stop_reason, answer.response) == ("completed", "final_answer", "Done.")
    assert answer.tool_calls == ()
    assert [answer.tools_by_id[call.call_id].output for call in waiting.tool_calls] == ["the red one", None]
    assert answer.run_id == waiting.run_id


@pytest.mark.requirement("handoff.stateless")
async def test_what_a_client_says_that_outsiders_can_write_taints_the_run():
    async with await open_crib(turn(("pick", "hat")), "Done.") as crib:
        waiting = await crib.executions.execute("clerk", GO)
        [call] = waiting.tool_calls
        answer = await returned(crib, waiting, ReturnedCall(call_id=call.call_id, output="red", tainted=True))
        result = await crib.resume(answer.run_id)

    assert answer.tools_by_id[call.call_id].tainted
    assert result.summary.tainted


@pytest.mark.requirement("handoff.stateless", "executions.conversations")
async def test_results_may_name_the_conversation_instead_of_the_run_and_positions_instead_of_ids():
    async with await open_crib(turn(("pick", "hat")), "Done.") as crib:
        waiting = await crib.executions.execute("clerk", AgentRequest(message="go", session_id="s1"))
        [call] = waiting.tool_calls
        brought = (ReturnedCall(call_id=call.position, output="red"),)
        request = AgentRequest(conversation_id=waiting.conversation_id, tool_results=brought)
        answer = await crib.executions.execute("clerk", request)

    assert answer.response == "Done."
    assert (call.conversation_id, call.session_id) == (answer.conversation_id, "s1")


@pytest.mark.requirement("handoff.stateless")
@pytest.mark.parametrize("order", list(permutations(range(3))))
async def test_results_come_in_any_order_one_by_one(order: tuple[int, ...]):
    items = ["hat", "coat", "shoe"]
    async with await open_crib(turn(*(("pick", item) for item in items)), "Done.") as crib:
        waiting = await crib.executions.execute("clerk", GO)
        answer = waiting
        for place in order:
            assert answer.status == "awaiting_client"
            call = waiting.tool_calls[place]
            answer = await returned(crib, waiting, ReturnedCall(call_id=call.call_id, output=items[place]))

    assert answer.response == "Done."
    assert [answer.tools_by_id[call.call_id].output for call in waiting.tool_calls] == items


@pytest.mark.requirement("handoff.stateless")
async def test_calls_that_are_not_among_the_results_keep_waiting():
    async with await open_crib(turn(("pick", "hat"), ("pick", "coat")), "Done.") as crib:
        waiting = await crib.executions.execute("clerk", GO)
        first, second = waiting.tool_calls
        answer = await returned(crib, waiting, ReturnedCall(call_id=first.call_id, output="red"))

    assert answer.status == "awaiting_client"
    assert answer.tool_calls == (second,)
    assert answer.tools_by_id[first.call_id].output == "red"


@pytest.mark.requirement("handoff.stateless")
async def test_an_error_of_the_client_reaches_the_agent():
    async with await open_crib(turn(("pick", "hat")), "They would not say.") as crib:
        waiting = await crib.executions.execute("clerk", GO)
        closed = ToolError(code=ErrorCode.PROVIDER_ERROR, message="the window was closed")
        [call] = waiting.tool_calls
        answer = await returned(crib, waiting, ReturnedCall(call_id=call.call_id, error=closed))

    envelope = answer.tools_by_id[call.call_id]
    assert (answer.status, answer.last_tool) == ("completed", None)
    assert envelope.error is not None
    assert envelope.error.message == "the window was closed"


@pytest.mark.requirement("handoff.atomic")
async def test_if_one_result_does_not_fit_none_is_delivered_and_the_error_names_each():
    async with await open_crib(turn(("pick", "hat"), ("pick", "coat"), ("pick", "shoe")), "Done.") as crib:
        waiting = await crib.executions.execute("clerk", GO)
        hat, coat, shoe = (call.call_id for call in waiting.tool_calls)
        await returned(crib, waiting, ReturnedCall(call_id=hat, output="red"))
        with pytest.raises(Conflict) as refused:
            await returned(
                crib,
                waiting,
                ReturnedCall(call_id=hat, output="blue"),
                ReturnedCall(call_id=coat, output="long"),
                ReturnedCall(call_id=coat, output="short"),
                ReturnedCall(call_id=shoe, output="left"),
                ReturnedCall(call_id="t9.c9", output="?"),
            )
        after = await crib.executions.respond(waiting.run_id)

    message = str(refused.value)
    assert f"{hat!r} has another result already" in message
    assert message.count(f"{coat!r} is answered more than once") == 2
    assert "'t9.c9' is not a call that a client was given" in message
    assert f"Calls that wait: pick at {waiting.run_id}/t1.c2, pick at {waiting.run_id}/t1.c3" in message
    assert [call.call_id for call in after.tool_calls] == [coat, shoe]


@pytest.mark.requirement("handoff.atomic")
async def test_an_error_about_many_results_names_the_first_of_them():
    async with await open_crib(turn(("pick", "hat"))) as crib:
        waiting = await crib.executions.execute("clerk", GO)
        brought = [ReturnedCall(call_id=f"c{number}") for number in range(30)]
        with pytest.raises(
            Conflict, match=r"'c19' is not a call that a client was given; and 10 more\. Calls that wait"
        ):
            await returned(crib, waiting, *brought)


@pytest.mark.requirement("handoff.idempotent")
async def test_the_same_request_again_has_the_same_answer_and_does_nothing():
    async with await open_crib(turn(("pick", "hat"), ("pick", "coat")), "Done.") as crib:
        waiting = await crib.executions.execute("clerk", GO)
        brought = results(waiting, "red", "long")
        first = await returned(crib, waiting, *brought)
        second = await returned(crib, waiting, *brought)
        events = await crib.store.journal.events(waiting.run_id)

    assert first == second
    assert [entry.event.type for entry in events].count("client_returned") == 2


@pytest.mark.requirement("handoff.idempotent")
async def test_results_that_were_delivered_before_may_come_with_new_ones():
    async with await open_crib(turn(("pick", "hat"), ("pick", "coat")), "Done.") as crib:
        waiting = await crib.executions.execute("clerk", GO)
        brought = results(waiting, "red", "long")
        await returned(crib, waiting, brought[0])
        answer = await returned(crib, waiting, *brought)

    assert answer.response == "Done."


@pytest.mark.requirement("handoff.idempotent", "executions.access")
async def test_a_result_of_somebody_else_is_another_result():
    helper = Principal(id="helper", grants=("ai://*",))
    async with await open_crib(turn(("pick", "hat"), ("pick", "coat")), "Done.") as crib:
        waiting = await crib.executions.execute("clerk", GO)
        brought = results(waiting, "red", "long")
        await returned(crib, waiting, brought[0])
        with pytest.raises(Conflict, match="has another result already"):
            await returned(crib.acting_as(helper), waiting, brought[0])
        answer = await returned(crib.acting_as(helper), waiting, brought[1])

    assert answer.response == "Done."


@pytest.mark.requirement("handoff.over")
async def test_results_for_a_run_that_has_ended_are_a_conflict_that_says_how_it_stands():
    async with await open_crib(turn(("pick", "hat")), "Done.") as crib:
        waiting = await crib.executions.execute("clerk", GO)
        await crib.cancel(waiting.run_id)
        with pytest.raises(Conflict, match=r"no longer waits: run run_\w+ is cancelled\. Calls that wait: none"):
            await returned(crib, waiting, *results(waiting, "red"))
        ended = await crib.executions.respond(waiting.run_id)

    assert (ended.status, ended.stop_reason, ended.tool_calls) == ("cancelled", "cancelled", ())


@pytest.mark.requirement("executions.access")
async def test_only_who_started_the_run_or_has_the_grant_may_bring_results():
    stranger, elsewhere = Principal(id="stranger", grants=("ai://agents/*",)), Principal(id="owner", realm="elsewhere")
    async with await open_crib(turn(("pick", "hat")), "Done.") as crib:
        waiting = await crib.executions.execute("clerk", GO)
        with pytest.raises(PermissionDenied, match="'stranger' has no grant for 'ai://runs/clerk/execute'"):
            await returned(crib.acting_as(stranger), waiting, *results(waiting, "red"))
        with pytest.raises(PermissionDenied, match="ai://runs/clerk/read"):
            await crib.acting_as(stranger).executions.respond(waiting.run_id)
        with pytest.raises(NotFound, match="there is no run"):
            await crib.acting_as(elsewhere).executions.respond(waiting.run_id)
        with pytest.raises(NotFound, match="there is no run 'run_0'"):
            await crib.executions.respond("run_0")


@pytest.mark.requirement("executions.asked")
async def test_results_go_to_the_run_that_waits_and_come_without_a_message():
    async with await open_crib(turn(("pick", "hat")), "Done.") as crib:
        await crib.save(agent("other"))
        waiting = await crib.executions.execute("clerk", GO)
        brought = results(waiting, "red")
        execute = crib.executions.execute
        with pytest.raises(InvalidInput, match="tool_results or a message, not both"):
            await execute("clerk", AgentRequest(message="and?", run_id=waiting.run_id, tool_results=brought))
        with pytest.raises(InvalidInput, match="need the run_id"):
            await execute("clerk", AgentRequest(tool_results=brought))
        with pytest.raises(Conflict, match="is of 'clerk'"):
            await execute("other", AgentRequest(run_id=waiting.run_id, tool_results=brought))
        elsewhere = AgentRequest(run_id=waiting.run_id, conversation_id="conv_0", tool_results=brought)
        with pytest.raises(Conflict, match="is of 'clerk', in conversation"):
            await execute("clerk", elsewhere)
        with pytest.raises(NotFound):
            await execute("clerk", AgentRequest(conversation_id="conv_0", tool_results=brought))


@pytest.mark.requirement("handoff.restart", "executions.queued")
async def test_another_process_takes_the_results_and_goes_on(tmp_path: Path):
    url, first, second = f"sqlite:///{tmp_path / 'crib.db'}", Desk(), Desk()
    answers: tuple[Message | str, ...] = (turn(("pick", "hat"), ("look", "hat"), ("show", "coat")),)
    async with await open_crib(*answers, store=url, desk=first) as crib:
        waiting = await crib.executions.execute("clerk", GO)

    async with await open_crib("Done.", store=url, desk=second) as crib:
        known = await crib.executions.respond(waiting.run_id)
        queued = await crib.executions.submit(
            "clerk", AgentRequest(run_id=waiting.run_id, tool_results=results(known, "red", "shown"))
        )
        [driven] = await crib.recover()
        answer = await crib.executions.respond(waiting.run_id)

    assert known == waiting
    assert (queued.status, queued.tool_calls) == ("queued", ())
    assert driven.run_id == waiting.run_id
    assert answer.response == "Done."
    assert sorted(first.done) == [("look", "hat"), ("pick", "hat"), ("show", "coat")]
    assert second.done == []


@pytest.mark.requirement("handoff.approvals")
@pytest.mark.parametrize("first", ["person", "client"])
async def test_a_turn_may_wait_for_a_person_and_a_client_and_is_answered_in_any_order(first: str):
    desk = Desk()
    async with await open_crib(turn(("pay", "hat"), ("pick", "coat"), ("look", "shoe")), "Done.", desk=desk) as crib:
        waiting = await crib.executions.execute("clerk", GO)
        [approval] = waiting.approvals
        assert (await crib.approvals.get(approval.approval_id)).approval.input == {"item": "hat"}
        brought = results(waiting, "the long one")
        if first == "client":
            between = await returned(crib, waiting, *brought)
            assert (between.status, between.tool_calls) == ("awaiting_approval", ())
        await crib.decide(approval.run_id, approval.position, approve=True)
        if first == "person":
            between = await crib.executions.respond(waiting.run_id)
            assert between.approvals == ()
            await returned(crib, waiting, *brought)
        await crib.resume(waiting.run_id)
        answer = await crib.executions.respond(waiting.run_id)

    assert (approval.name, approval.input, approval.run_id) == ("pay", {"item": "hat"}, waiting.run_id)
    assert answer.response == "Done."
    assert sorted(desk.done) == [("look", "shoe"), ("pay", "hat"), ("pick", "coat")]


def delegating(*beside: ToolCall) -> Message:
    """A model's answer that asks the clerk, and makes other calls before."""
    return Message("assistant", (*beside, ToolCall("d1", "clerk", '{"message": "go"}')))


@pytest.mark.requirement("handoff.nested")
@pytest.mark.parametrize("named_by", ["root", "nested"])
async def test_a_nested_agents_call_is_handed_over_by_the_outermost_execution(named_by: str):
    async with await open_crib(delegating(), turn(("pick", "hat")), "Red.", "The clerk says: red.") as crib:
        await crib.save(agent("boss", tools=[], delegates=("clerk",)))
        waiting = await crib.executions.execute("boss", GO)
        [call] = waiting.tool_calls
        run_id = waiting.run_id if named_by == "root" else call.run_id
        request = AgentRequest(run_id=run_id, tool_results=results(waiting, "red"))
        answer = await crib.executions.execute("boss", request)
        again = await crib.executions.execute("boss", request)

    assert (waiting.status, waiting.tools_by_id) == ("awaiting_client", {})
    assert (call.name, call.output, call.run_id != waiting.run_id) == ("pick", {"ask": "hat"}, True)
    assert (answer.run_id, answer.response) == (waiting.run_id, "The clerk says: red.")
    assert [answer.tools_by_id[call_id].name for call_id in answer.tool_order] == ["clerk"]
    assert again == answer


@pytest.mark.requirement("handoff.nested", "handoff.atomic")
async def test_of_equal_calls_in_nested_runs_the_result_says_which_is_meant():
    beside = ToolCall("p1", "pick", '{"item": "hat"}')
    answers = (delegating(beside), turn(("pick", "hat")), "Red.", "Blue and red.")
    async with await open_crib(*answers) as crib:
        await crib.save(agent("boss", tools=["pick"], delegates=("clerk",)))
        waiting = await crib.executions.execute("boss", GO)
        mine, nested = waiting.tool_calls
        with pytest.raises(Conflict, match=f"is a call of each of the runs {mine.run_id}, {nested.run_id}"):
            await crib.executions.execute(
                "boss", AgentRequest(run_id=waiting.run_id, tool_results=results(waiting, "blue", "red"))
            )
        brought = tuple(
            ReturnedCall(call_id=call.call_id, run_id=call.run_id, output=output)
            for call, output in ((mine, "blue"), (nested, "red"))
        )
        answer = await crib.executions.execute("boss", AgentRequest(run_id=waiting.run_id, tool_results=brought))
        clerk = await crib.executions.respond(nested.run_id or "")

    assert mine.call_id == nested.call_id
    assert answer.response == "Blue and red."
    assert answer.tools_by_id[mine.call_id].output == "blue"
    assert clerk.tools_by_id[nested.call_id].output == "red"


@pytest.mark.requirement("handoff.nested", "handoff.approvals")
async def test_a_nested_agents_approval_is_told_by_the_outermost_execution():
    async with await open_crib(delegating(), turn(("pay", "hat")), "Paid.", "It is paid.") as crib:
        await crib.save(agent("boss", tools=[], delegates=("clerk",)))
        waiting = await crib.executions.execute("boss", GO)
        [approval] = waiting.approvals
        await crib.decide(approval.run_id, approval.position, approve=True)
        await crib.resume(waiting.run_id)
        answer = await crib.executions.respond(waiting.run_id)

    assert (waiting.status, approval.run_id != waiting.run_id) == ("awaiting_approval", True)
    assert (answer.response, answer.approvals) == ("It is paid.", ())


@pytest.mark.requirement("handoff.atomic", "handoff.restart")
async def test_of_two_clients_that_answer_the_same_call_at_once_one_counts_with_all_it_brings(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'crib.db'}"
    answers = (turn(("pick", "hat"), ("pick", "coat"), ("pick", "shoe")), "Done.")
    async with await open_crib(*answers, store=url) as one, await open_crib(*answers, store=url) as other:
        waiting = await one.executions.execute("clerk", GO)
        hat, coat, shoe = (call.call_id for call in waiting.tool_calls)
        left = (ReturnedCall(call_id=hat, output="left"), ReturnedCall(call_id=coat, output="left"))
        right = (ReturnedCall(call_id=coat, output="right"), ReturnedCall(call_id=shoe, output="right"))
        found = await asyncio.gather(
            returned(one, waiting, *left), returned(other, waiting, *right), return_exceptions=True
        )
        after = await one.executions.respond(waiting.run_id)

    assert sorted(type(outcome).__name__ for outcome in found) == ["AgentResponse", "Conflict"]
    told = {call_id: call.output for call_id, call in after.tools_by_id.items()}
    assert told in ({hat: "left", coat: "left"}, {coat: "right", shoe: "right"})
    assert len(after.tool_calls) == 1


@pytest.mark.requirement("handoff.stateless")
async def test_a_result_that_is_too_large_is_cut_and_kept_whole_beside_the_envelope():
    async with await open_crib(turn(("pick", "hat")), "Long.") as crib:
        waiting = await crib.executions.execute("clerk", GO)
        [call] = waiting.tool_calls
        answer = await returned(crib, waiting, ReturnedCall(call_id=call.call_id, output="x" * 3_000_000))

    envelope = answer.tools_by_id[call.call_id]
    assert (answer.response, envelope.truncated) == ("Long.", True)
    assert len(envelope.output) < 2 * 1024 * 1024
    assert envelope.attachments[-1].bytes == 3_000_002
