"""Conversations from the outside: begun, continued, refused, changed, deleted."""

import asyncio
from pathlib import Path

import pytest

from tests.unit.conversations.talk import ANN, BOB, calls, helper, talking
from toolcrib.contracts import (
    AgentMemory,
    AgentRequest,
    ClientResult,
    Conflict,
    InvalidInput,
    ModelError,
    NotFound,
    PermissionDenied,
    Principal,
)
from toolcrib.core.runs import turn_run_id
from toolcrib.crib.agents.conversations import title_of
from toolcrib.infrastructure.store import MemoryStore


@pytest.mark.requirement("conversations.turns")
async def test_messages_become_turns_of_one_conversation():
    async with talking() as talk:
        first = await talk.say("Hello there.")
        second = await talk.say("And again.", first.conversation_id)
        assert first.conversation_id is not None
        found = await talk.crib.acting_as(ANN).conversations.get(first.conversation_id)
        turns = await talk.crib.acting_as(ANN).conversations.turns(first.conversation_id)

    assert second.conversation_id == first.conversation_id
    assert (found.agent, found.principal, found.realm, found.status) == ("helper", "ann", "default", "active")
    assert (found.turn_count, found.ended_turns, found.tokens) == (2, 2, first.tokens + second.tokens)
    assert [(turn.index, turn.run_id, turn.message, turn.response) for turn in turns] == [
        (1, first.run_id, "Hello there.", "You said: Hello there."),
        (2, second.run_id, "And again.", "You said: And again."),
    ]
    assert [turn.run_id for turn in turns] == [turn_run_id(first.conversation_id, place) for place in (1, 2)]


@pytest.mark.requirement("conversations.turns")
async def test_a_turn_tells_its_calls_and_the_pages_of_turns_follow_each_other():
    script = [calls(("look_up", '{"word": "a"}'), ("look_up", '{"word": "b"}')), "one", "two", "three"]
    async with talking(script) as talk:
        conversation_id = await talk.begin("1", "2", "3")
        first = await talk.crib.acting_as(ANN).conversations.turns(conversation_id, limit=2)
        rest = await talk.crib.acting_as(ANN).conversations.turns(conversation_id, after=2)

    assert [turn.index for turn in (*first, *rest)] == [1, 2, 3]
    assert [len(turn.call_ids) for turn in first] == [2, 0]
    assert all(turn.duration_s >= 0 and turn.status == "completed" for turn in first)


@pytest.mark.requirement("conversations.titles")
@pytest.mark.parametrize(
    ("message", "title"),
    [
        ("Hello there. How are you?", "Hello there"),
        ("What is\n  this? I wonder", "What is this?"),
        ("One two three four five six seven eight nine ten eleven twelve, thirteen.", None),
        ("x" * 100, "x" * 60 + "…"),
        ("e.g.", "e.g"),
        ("   ", ""),
    ],
)
def test_a_title_is_the_first_sentence_cut_between_words(message: str, title: str | None):
    found = title_of(message)

    assert found == (title if title is not None else "One two three four five six seven eight nine ten eleven…")
    assert len(found) <= 61


@pytest.mark.requirement("conversations.titles", "conversations.context", "conversations.closed")
async def test_a_person_sets_title_status_and_variables():
    async with talking() as talk:
        conversation_id = await talk.begin("Hello.")
        changed = await talk.crib.acting_as(ANN).conversations.change(
            conversation_id, title="Greetings", status="archived", shared_context={"a": 1}
        )
        same = await talk.crib.acting_as(ANN).conversations.change(conversation_id)
        with pytest.raises(Conflict, match="is archived; set its status to active"):
            await talk.say("More.", conversation_id)
        await talk.crib.acting_as(ANN).conversations.change(conversation_id, status="active")
        again = await talk.say("More.", conversation_id)

    assert (changed.title, changed.status, changed.shared_context) == ("Greetings", "archived", {"a": 1})
    assert same.title == "Greetings"
    assert again.status == "completed"


@pytest.mark.requirement("conversations.owner")
async def test_the_conversation_of_another_looks_missing():
    async with talking() as talk:
        conversation_id = await talk.begin("Hello.")
        limited = BOB.model_copy(update={"grants": ("ai://conversations/own/*", "ai://tools/*", "ai://agents/*")})
        for attempt in (
            talk.crib.acting_as(limited).conversations.get(conversation_id),
            talk.crib.acting_as(limited).conversations.turns(conversation_id),
            talk.crib.acting_as(BOB).conversations.change(conversation_id, title="x"),
            talk.crib.acting_as(limited).conversations.delete(conversation_id),
            talk.say("Hi.", conversation_id, who=BOB),
            talk.say("Hi.", conversation_id, who=limited),
            talk.crib.acting_as(Principal(id="ann", realm="elsewhere")).conversations.get(conversation_id),
        ):
            with pytest.raises(NotFound, match=f"there is no conversation '{conversation_id}'"):
                await attempt


@pytest.mark.requirement("conversations.owner")
async def test_grants_say_who_reads_and_deletes_conversations():
    async with talking() as talk:
        mine, theirs = await talk.begin("Mine."), await talk.begin("Theirs.", who=BOB)
        reader = ANN.model_copy(update={"grants": ("ai://conversations/*/read",)})
        nobody = ANN.model_copy(update={"grants": ()})

        assert [each.conversation_id for each in await talk.crib.acting_as(reader).conversations.list()] == [mine]
        both = await talk.crib.acting_as(reader).conversations.list(everybody=True)
        assert [each.conversation_id for each in both] == [theirs, mine]
        assert (await talk.crib.acting_as(reader).conversations.get(theirs)).title == "Theirs"
        for attempt in (
            talk.crib.acting_as(nobody).conversations.list(),
            talk.crib.acting_as(nobody).conversations.get(mine),
            talk.crib.acting_as(nobody).conversations.change(mine, title="x"),
            talk.crib.acting_as(reader).conversations.delete(mine),
        ):
            with pytest.raises(PermissionDenied, match="no grant for 'ai://conversations/own/"):
                await attempt
        with pytest.raises(NotFound):
            await talk.crib.acting_as(reader).conversations.delete(theirs)
        await talk.crib.acting_as(ANN).conversations.delete(theirs)  # who may do everything
        with pytest.raises(NotFound):
            await talk.crib.acting_as(BOB).conversations.get(theirs)


@pytest.mark.requirement("conversations.owner")
async def test_another_agent_does_not_go_on_with_it_and_another_revision_does():
    async with talking((lambda request: "hi"), helper(), helper("other")) as talk:
        conversation_id = await talk.begin("Hello.")
        with pytest.raises(Conflict, match="is with agent 'helper', and this is 'other'; begin a new one"):
            await talk.say("Hi.", conversation_id, agent="other")
        await talk.crib.save(helper(system_prompt="Help more."))
        again = await talk.say("Hi.", conversation_id)

    assert again.status == "completed"
    assert [request.system for request in talk.model.requests] == ["Help.", "Help more."]


@pytest.mark.requirement("conversations.turns")
async def test_an_unknown_conversation_is_not_begun():
    async with talking() as talk:
        with pytest.raises(NotFound, match="there is no conversation 'conv_x'"):
            await talk.say("Hi.", "conv_x")
        assert not await talk.crib.acting_as(ANN).conversations.list()


@pytest.mark.requirement("conversations.closed")
async def test_a_deleted_conversation_is_gone_and_its_runs_stay():
    async with talking() as talk:
        first = await talk.say("Hello.")
        assert first.conversation_id is not None
        await talk.crib.acting_as(ANN).conversations.delete(first.conversation_id)
        for attempt in (
            talk.crib.acting_as(ANN).conversations.get(first.conversation_id),
            talk.crib.acting_as(ANN).conversations.delete(first.conversation_id),
            talk.say("More.", first.conversation_id),
        ):
            with pytest.raises(NotFound):
                await attempt
        assert (await talk.crib.trace(first.run_id)).status == "completed"


@pytest.mark.requirement("conversations.unkept")
async def test_an_agent_that_keeps_no_conversations_leaves_only_runs():
    async with talking(lambda _: "hi", helper(memory=AgentMemory(persist_conversation=False))) as talk:
        answer = await talk.say("Hello.")

        assert (answer.conversation_id, answer.status) == (None, "completed")
        assert not await talk.crib.acting_as(ANN).conversations.list()
        with pytest.raises(InvalidInput, match="keeps no conversations"):
            await talk.say("More.", "conv_x")


@pytest.mark.requirement("conversations.context")
async def test_variables_are_merged_and_carried_across_turns():
    async with talking() as talk:
        first = await talk.say("Hello.", context={"name": "Ann", "city": "Bonn"})
        assert first.conversation_id is not None
        await talk.say("More.", first.conversation_id, context={"city": "Köln"})
        found = await talk.crib.acting_as(ANN).conversations.get(first.conversation_id)
        with pytest.raises(InvalidInput, match="at most 65536 are kept"):
            await talk.say("Big.", first.conversation_id, context={"big": "x" * 70_000})
        with pytest.raises(InvalidInput, match="at most 65536 are kept"):
            await talk.crib.acting_as(ANN).conversations.change(
                first.conversation_id, shared_context={"big": "x" * 70_000}
            )

    assert found.shared_context == {"name": "Ann", "city": "Köln"}


@pytest.mark.requirement("conversations.one_turn")
async def test_a_turn_that_waits_for_a_person_keeps_its_place_until_it_is_decided():
    async with talking([calls(("send", '{"text": "x"}')), "Sent.", "Fine."]) as talk:
        waiting = await talk.say("Send it.")
        assert (waiting.status, waiting.conversation_id is not None) == ("awaiting_approval", True)
        with pytest.raises(Conflict, match=rf"turn 1 .* waits in run '{waiting.run_id}' .* for approval:t1\.c1"):
            await talk.say("Well?", waiting.conversation_id)
        with pytest.raises(Conflict, match=r"waits in run"):
            await talk.crib.acting_as(ANN).conversations.delete(waiting.conversation_id or "")
        await talk.crib.acting_as(BOB).decide(waiting.run_id, "t1.c1", approve=True)
        await talk.crib.resume(waiting.run_id)
        after = await talk.say("Well?", waiting.conversation_id)

    assert after.response == "Fine."


@pytest.mark.requirement("conversations.one_turn")
async def test_a_turn_that_waits_for_its_client_gives_its_place_up_when_it_is_cancelled():
    async with talking([calls(("pick", '{"question": "?"}')), "Fine."]) as talk:
        waiting = await talk.say("Ask me.")
        with pytest.raises(Conflict, match=r"for client:t1\.c1"):
            await talk.say("Well?", waiting.conversation_id)
        await talk.crib.cancel(waiting.run_id)
        after = await talk.say("Well?", waiting.conversation_id)

    assert after.response == "Fine."
    said = [(message.role, message.text) for message in talk.model.requests[-1].messages]
    assert said[-2][0] == "assistant"
    assert "cancelled" in said[-2][1]


@pytest.mark.requirement("conversations.one_turn")
async def test_of_messages_at_the_same_time_one_becomes_the_turn():
    async with talking() as talk:
        conversation_id = await talk.begin("Hello.")
        answers = await asyncio.gather(
            *(talk.say(f"{number}", conversation_id) for number in range(20)), return_exceptions=True
        )
        found = await talk.crib.acting_as(ANN).conversations.get(conversation_id)

    accepted = [answer for answer in answers if not isinstance(answer, BaseException)]
    refused = [answer for answer in answers if isinstance(answer, BaseException)]
    assert all(isinstance(refusal, Conflict) for refusal in refused)
    assert len(accepted) >= 1
    assert found.turn_count == found.ended_turns == 1 + len(accepted)
    assert len({answer.run_id for answer in accepted}) == len(accepted)


@pytest.mark.requirement("conversations.healing")
@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_a_turn_whose_run_was_never_created_is_free_for_the_next_message(store: str, tmp_path: Path):
    url = "memory://" if store == "memory" else f"sqlite:///{tmp_path}/crib.db"
    async with talking(store=url) as talk:
        conversation_id = await talk.begin("Hello.")
        agent = talk.crib.registry.require("default", "helper")
        request = AgentRequest(message="lost", conversation_id=conversation_id)
        lost = await talk.crib.conversations.begin(agent, request, ANN)  # and then its process dies
        found = await talk.crib.acting_as(ANN).conversations.get(conversation_id)
        after = await talk.say("Again.", conversation_id)
        turns = await talk.crib.acting_as(ANN).conversations.turns(conversation_id)

    assert (lost.index, found.turn_count, found.ended_turns) == (2, 2, 1)
    assert after.run_id == lost.run_id
    assert [turn.message for turn in turns] == ["Hello.", "Again."]


@pytest.mark.requirement("conversations.one_turn", "conversations.healing")
async def test_who_creates_the_run_of_a_turn_second_is_told_of_the_first():
    async with talking() as talk:
        conversation_id = await talk.begin("Hello.")
        agent = talk.crib.registry.require("default", "helper")
        slow = await talk.crib.conversations.begin(
            agent, AgentRequest(message="slow", conversation_id=conversation_id), ANN
        )
        fast = await talk.say("Fast.", conversation_id)
        request = (await talk.crib.store.journal.run(fast.run_id)).request
        with pytest.raises(Conflict, match=f"another message has become turn 2 .* in run '{fast.run_id}'"):
            await talk.crib.conversations.create(slow, request)


@pytest.mark.requirement("conversations.turns")
async def test_a_turn_that_failed_is_over_and_counted():
    failure = ModelError("bad_request", "no")
    async with talking([failure, "Fine."]) as talk:
        first = await talk.say("Hello.")
        assert (first.status, first.conversation_id is not None) == ("failed", True)
        second = await talk.say("Again.", first.conversation_id)
        turns = await talk.crib.acting_as(ANN).conversations.turns(first.conversation_id or "")

    assert second.response == "Fine."
    assert [turn.status for turn in turns] == ["failed", "completed"]


@pytest.mark.requirement("conversations.turns")
async def test_turns_whose_runs_the_store_has_forgotten_are_left_out():
    async with talking(store=MemoryStore(keep_ended=2)) as talk:
        conversation_id = await talk.begin("1", "2", "3", "4")
        turns = await talk.crib.acting_as(ANN).conversations.turns(conversation_id)
        found = await talk.crib.acting_as(ANN).conversations.get(conversation_id)

    assert [turn.message for turn in turns] == ["3", "4"]
    assert found.turn_count == 4


@pytest.mark.requirement("conversations.turns")
async def test_results_of_a_client_go_on_with_the_turn():
    async with talking([calls(("pick", '{"question": "?"}')), "Red it is."]) as talk:
        waiting = await talk.say("Ask me.")
        await talk.crib.acting_as(ANN).return_client_result(waiting.run_id, "t1.c1", ClientResult(output="red"))
        await talk.crib.resume(waiting.run_id)
        turns = await talk.crib.acting_as(ANN).conversations.turns(waiting.conversation_id or "")
        listed = await talk.crib.acting_as(ANN).conversations.list()

    assert [(turn.status, turn.response) for turn in turns] == [("completed", "Red it is.")]
    assert [each.ended_turns for each in listed] == [1]
