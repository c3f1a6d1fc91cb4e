"""What a turn is shown of the turns before: strategies, failures, variables, windows."""

from typing import Any

import pytest

from tests.unit.conversations.talk import ANN, BOB, calls, helper, talking
from toolcrib.contracts import AgentMemory, Limits, MemoryStrategy, ModelError
from toolcrib.llm import Message, Request, Text, Thinking, ToolResult


def said(request: Request) -> list[str]:
    """What people and the model have said, in order."""
    return [message.text for message in request.messages if message.text]


@pytest.mark.requirement("conversations.recall")
async def test_a_turn_sees_all_turns_before_it_with_their_calls():
    script = [calls(("look_up", '{"word": "a"}'), text="I look."), "It is a.", "Still a."]
    async with talking(script) as talk:
        await talk.begin("What is it?", "And now?")

    first, second, third = (request.messages for request in talk.model.requests)
    assert third[: len(second)] == second
    assert second[: len(first)] == first
    assert [message.text for message in third[len(second) :]] == ["It is a.", "And now?"]
    assert third[1].calls[0].name == "look_up"
    assert isinstance(third[2].parts[0], ToolResult)


@pytest.mark.requirement("conversations.recall")
async def test_thinking_goes_back_as_it_came():
    thought = Thinking("Hm.", signature="sealed", origin="anthropic")
    answer = Message("assistant", (thought, Text("It is a.")))
    async with talking([answer, "Still a."]) as talk:
        await talk.begin("What is it?", "And now?")

    assert talk.model.requests[1].messages[1] == answer


@pytest.mark.requirement("conversations.recall")
async def test_nothing_is_shown_by_none_and_a_nested_run_remembers_nothing():
    quiet = helper(memory=AgentMemory(strategy="none"))
    async with talking(lambda _: "ok", quiet) as talk:
        await talk.begin("one", "two")

    assert [said(request) for request in talk.model.requests] == [["one"], ["two"]]


@pytest.mark.requirement("conversations.recall", "conversations.cache")
async def test_a_sliding_window_shows_at_most_so_many_turns_and_moves_in_jumps():
    window = helper(memory=AgentMemory(strategy="sliding_window", max_conversation_turns=4))
    async with talking(lambda _: "ok", window) as talk:
        await talk.begin(*(str(number) for number in range(1, 9)))

    shown = [[text for text in said(request) if text != "ok"] for request in talk.model.requests]
    assert shown == [
        ["1"],
        ["1", "2"],
        ["1", "2", "3"],
        ["1", "2", "3", "4"],
        ["1", "2", "3", "4", "5"],
        ["4", "5", "6"],
        ["4", "5", "6", "7"],
        ["4", "5", "6", "7", "8"],
    ]


@pytest.mark.requirement("conversations.failed_turns")
async def test_a_turn_that_failed_stands_with_what_was_done_and_why_it_ended():
    script = [calls(("look_up", '{"word": "a"}')), ModelError("bad_request", "too strange"), "I see."]
    async with talking(script) as talk:
        await talk.begin("What is it?", "And now?")

    messages = talk.model.requests[-1].messages
    assert [message.role for message in messages] == ["user", "assistant", "user", "assistant", "user"]
    assert messages[3].text == "(This turn ended before its answer, failed, error: too strange.)"
    assert isinstance(messages[2].parts[0], ToolResult)


@pytest.mark.requirement("conversations.failed_turns")
async def test_a_limit_is_told_after_the_last_words_of_the_model():
    limited = helper(limits=Limits(max_iterations=1))
    async with talking([calls(("look_up", '{"word": "a"}')), "It may be a.", "I see."], limited) as talk:
        await talk.begin("What is it?", "And now?")

    messages = talk.model.requests[-1].messages
    said = "(This turn ended before its answer, incomplete, max iterations: limit max_iterations is 1 and this would"
    assert messages[3].text == f"It may be a.\n\n{said} make 2; raise max_iterations to go on.)"


@pytest.mark.requirement("conversations.failed_turns", "conversations.recall")
async def test_a_call_that_a_cancelled_turn_left_open_has_a_result_that_says_so():
    script = [calls(("send", '{"text": "x"}'), ("look_up", '{"word": "a"}')), "I see."]
    async with talking(script) as talk:
        waiting = await talk.say("Send it.")
        await talk.crib.cancel(waiting.run_id)
        await talk.say("And now?", waiting.conversation_id)

    messages = talk.model.requests[-1].messages
    results = [part for part in messages[2].parts if isinstance(part, ToolResult)]
    assert [(result.id, result.name) for result in results] == [("id0", "send"), ("id1", "look_up")]
    assert results[0].is_error
    assert "cancelled" in messages[3].text


@pytest.mark.requirement("conversations.failed_turns")
async def test_a_turn_in_which_no_model_was_asked_still_shows_its_message():
    tiny = helper(llm={"max_input_tokens": 400})
    async with talking(lambda _: "ok", tiny) as talk:
        first = await talk.say("x" * 4000)
        second = await talk.say("short", first.conversation_id)

    assert first.status == "failed"
    assert first.error is not None
    assert "tokens and 'scripted:model' may read 400" in first.error.message
    assert second.status == "completed"


@pytest.mark.requirement("conversations.context")
async def test_a_variable_is_told_once_as_long_as_the_model_sees_it():
    async with talking(lambda _: "ok") as talk:
        first = await talk.say("one", context={"name": "Ann", "city": "Bonn"})
        await talk.say("two", first.conversation_id, context={"city": "Köln"})
        await talk.crib.acting_as(ANN).conversations.change(
            first.conversation_id or "", shared_context={"name": "Ann", "city": "Köln", "plan": "gold"}
        )
        await talk.say("three", first.conversation_id)

    told = [request.messages[-1].text for request in talk.model.requests]
    assert ["Ann" in text for text in told] == [True, False, False]
    assert ["Bonn" in text for text in told] == [True, False, False]
    assert ["Köln" in text for text in told] == [False, True, False]
    assert ["gold" in text for text in told] == [False, False, True]


@pytest.mark.requirement("conversations.context")
async def test_a_variable_is_told_again_when_its_turn_is_not_shown_any_more():
    quiet = helper(memory=AgentMemory(strategy="none"))
    async with talking(lambda _: "ok", quiet) as talk:
        first = await talk.say("one", context={"name": "Ann"})
        await talk.say("two", first.conversation_id)

    assert "Ann" in talk.model.requests[1].messages[-1].text


@pytest.mark.requirement("conversations.budget")
async def test_results_are_shortened_before_turns_fall_out_and_the_newest_message_never_does():
    def script(request: Request) -> Any:
        last = request.messages[-1]
        return calls(("look_up", '{"word": "abcd", "size": 400}')) if last.text.startswith("look") else "ok"

    small = helper(memory=AgentMemory(max_context_tokens=1000))
    async with talking(script, small) as talk:
        await talk.begin(*(f"look {number}" for number in range(8)))

    for request in talk.model.requests:
        assert any(message.text.startswith("look") for message in request.messages[-3:])
    shortened = [
        "beginning of" in part.text
        for part in (part for message in talk.model.requests[-1].messages for part in message.parts)
        if isinstance(part, ToolResult)
    ]
    assert shortened
    assert True in shortened
    assert shortened == sorted(shortened, reverse=True)


@pytest.mark.requirement("conversations.resumed")
async def test_a_turn_that_goes_on_after_a_wait_is_shown_the_same():
    script = ["ok", calls(("send", '{"text": "x"}')), "Sent.", "fine"]
    async with talking(script) as talk:
        first = await talk.say("one", context={"name": "Ann"})
        waiting = await talk.say("send", first.conversation_id)
        await talk.crib.acting_as(ANN).conversations.change(
            first.conversation_id or "", shared_context={"name": "Eve"}, title="x"
        )
        await talk.crib.acting_as(BOB).decide(waiting.run_id, "t1.c1", approve=True)
        await talk.crib.resume(waiting.run_id)

    _, before, after = talk.model.requests
    assert after.messages[: len(before.messages)] == before.messages
    assert (after.system, after.tools) == (before.system, before.tools)


@pytest.mark.requirement("conversations.recall", "conversations.cache")
async def test_what_the_model_found_and_what_was_chosen_for_it_stays_the_same_in_all_turns():
    crowded = helper(max_tools_in_context=2)
    script = [
        calls(("find_tools", '{"group": "no query"}')),
        calls(("find_tools", '{"query": "choose"}')),
        calls(("find_tools", '{"query": "find a text"}')),
        "found",
        calls(("send", '{"nonsense": 1}')),
        "fine",
    ]
    async with talking(script, crowded) as talk:
        await talk.begin("Find a text please", "Send it")

    requests = talk.model.requests
    offered = [tuple(tool.name for tool in request.tools.tools) for request in requests]
    assert offered[0][-1] == "find_tools"
    assert len(offered[3]) > len(offered[0])
    assert offered[4] == offered[3]
    assert offered[5] == offered[4]
    assert requests[4].messages[: len(requests[3].messages)] == requests[3].messages


@pytest.mark.requirement("conversations.recall")
async def test_answers_that_were_corrected_are_shown_as_the_model_saw_them():
    script = [
        "",
        calls(("look_up", '{"wrong": 1}'), ("nothing", "{}"), text="Trying."),
        calls(*(("look_up", '{"word": "a"}') for _ in range(2))),
        calls(("look_up", '{"word": "a"}')),
        calls(("look_up", '{"word": "a"}')),
        calls(("look_up", '{"word": "a"}')),
        "It is a.",
        "Still.",
    ]
    async with talking(script, helper(parallel_tool_calls=False)) as talk:
        await talk.begin("What is it?", "And now?")

    *_, last_of_first, second = talk.model.requests
    assert second.messages[: len(last_of_first.messages)] == last_of_first.messages
    assert any("nothing changes" in message.text or "changes nothing" in message.text for message in second.messages)


@pytest.mark.requirement("conversations.recall")
async def test_a_structured_answer_that_was_asked_for_apart_stands_as_what_was_put_out():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    structured = helper(response_format="structured", response_schema=schema)
    async with talking(["It is three.", '{"n": 3}', '{"n": 4}'], structured) as talk:
        await talk.begin("How many?", "And now?")

    assert said(talk.model.requests[-1]) == ["How many?", "It is three.", "And now?"]


@pytest.mark.requirement("conversations.recall")
async def test_the_store_holds_what_was_said_once():
    async with talking(lambda _: "ok") as talk:
        conversation_id = await talk.begin(*("x" * 1000 for _ in range(10)))
        turns = await talk.crib.acting_as(ANN).conversations.turns(conversation_id)
        sizes = [
            sum(len(entry.model_dump_json()) for entry in await talk.crib.store.journal.events(turn.run_id))
            for turn in turns
        ]

    assert max(sizes) - min(sizes) < 500


@pytest.mark.requirement("conversations.taint")
@pytest.mark.parametrize("strategy", ["full", "sliding_window", "summary"])
async def test_what_outsiders_could_write_is_not_forgotten_with_the_turn_that_read_it(strategy: MemoryStrategy):
    memory = AgentMemory(strategy=strategy, max_conversation_turns=1)
    turns = iter([calls(("read_mail", "{}")), *("ok" for _ in range(9))])
    async with talking(lambda _: next(turns), helper(memory=memory)) as talk:
        answers = [await talk.say("Read my mail.")]
        for number in range(3):
            answers.append(await talk.say(f"{number}", answers[0].conversation_id))
        ends = [(await talk.crib.resume(answer.run_id)).summary.tainted for answer in answers]
        fresh = await talk.say("Hello.")

    assert ends == [True] * 4
    assert not (await talk.crib.resume(fresh.run_id)).summary.tainted


@pytest.mark.requirement("conversations.taint")
async def test_who_remembers_nothing_is_not_tainted_by_the_turns_before():
    turns = iter([calls(("read_mail", "{}")), "ok", "ok"])
    async with talking(lambda _: next(turns), helper(memory=AgentMemory(strategy="none"))) as talk:
        first = await talk.say("Read my mail.")
        second = await talk.say("Hello.", first.conversation_id)
        ends = [(await talk.crib.resume(answer.run_id)).summary.tainted for answer in (first, second)]

    assert ends == [True, False]


@pytest.mark.requirement("conversations.resumed")
async def test_every_turn_is_replayed_on_its_journal_with_the_same_prompts():
    turns = iter([calls(("look_up", '{"word": "abc"}')), *("ok" for _ in range(9))])

    def answer(request: Request) -> Any:
        return "short" if request.system.startswith("You summarize") else next(turns)

    memory = AgentMemory(strategy="summary", max_conversation_turns=2)
    async with talking(answer, helper(memory=memory)) as talk:
        answers = [await talk.say("0")]
        for number in range(1, 5):
            answers.append(await talk.say(str(number), answers[0].conversation_id, context={"n": number}))
        replays = [await talk.crib.replay(each.run_id) for each in answers]

    assert [replay.same for replay in replays] == [True] * 5
