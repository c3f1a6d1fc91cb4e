"""Summaries of what falls out: by the agent's model, by an agent, and what happens if there is none."""

from typing import Any

import pytest

from tests.unit.conversations.talk import ANN, Talk, calls, helper, talking
from toolcrib.contracts import AgentMemory, ChildStarted, ContentFilter, Limits, ModelError, ModelFinished
from toolcrib.llm import Request

pytestmark = pytest.mark.requirement("conversations.summary")


def memory(**fields: Any) -> AgentMemory:
    return AgentMemory(strategy="summary", max_conversation_turns=2, **fields)


def script(request: Request) -> Any:
    """Summaries are numbered by what they were made of; everything else is `ok`."""
    if request.system.startswith("You summarize"):
        asked = request.messages[0].text
        before = asked.partition("What was said since:")[0].count("<")
        return f"{'<' * before}<{asked.count('User: ')}>"
    return "ok"


def summaries(talk: Talk) -> list[str]:
    return [request.messages[0].text for request in talk.model.requests if request.system.startswith("You summ")]


async def test_what_falls_out_is_summarized_once_and_the_summary_is_built_upon():
    async with talking(script, helper(memory=memory())) as talk:
        conversation_id = await talk.begin(*(f"message {number}" for number in range(1, 7)))
        found = await talk.crib.acting_as(ANN).conversations.get(conversation_id)

    first, second = summaries(talk)
    assert [f"message {number}" in first for number in range(1, 5)] == [True, True, False, False]
    assert "<2>" in second
    assert [f"message {number}" in second for number in range(1, 6)] == [False, False, True, True, False]
    last = talk.model.requests[-1].messages
    assert last[0].text == "Summary of the first 4 turns of this conversation:\n<<2>"
    assert [message.text for message in last[1:]] == ["message 5", "ok", "message 6"]
    assert (found.summary, found.summarized_turns) == ("<<2>", 4)


async def test_a_summary_is_no_iteration_and_says_what_it_was_for():
    agent = helper(memory=memory(), limits=Limits(max_iterations=1))
    async with talking(script, agent) as talk:
        answers = [await talk.say("1")]
        for number in range(3):
            answers.append(await talk.say(str(number), answers[0].conversation_id))
        events = [entry.event for entry in await talk.crib.store.journal.events(answers[-1].run_id)]

    assert [answer.stop_reason for answer in answers] == ["final_answer"] * 4
    assert [event.purpose for event in events if isinstance(event, ModelFinished)] == ["summary", "tool_selection"]


async def test_a_summary_is_no_iteration_of_a_turn_that_waits_either():
    def picks(request: Request) -> Any:
        return calls(("pick", '{"question": "?"}')) if request.messages[-1].text == "pick" else script(request)

    async with talking(picks, helper(memory=memory())) as talk:
        conversation_id = await talk.begin("1", "2", "3")
        waiting = await talk.say("pick", conversation_id)

    assert (waiting.status, waiting.iterations, len(summaries(talk))) == ("awaiting_client", 1, 1)


async def test_an_agent_summarizes_in_a_run_of_its_own():
    summarizer = helper("scribe", tools=(), system_prompt="You summarize for helper.")
    agent = helper(memory=memory(summary_agent="scribe"))

    def answer(request: Request) -> str:
        return "short" if request.system.startswith("You") else "ok"

    async with talking(answer, summarizer, agent) as talk:
        answers = [await talk.say("1")]
        for number in range(3):
            answers.append(await talk.say(str(number), answers[0].conversation_id))
        events = [entry.event for entry in await talk.crib.store.journal.events(answers[-1].run_id)]
        found = await talk.crib.acting_as(ANN).conversations.get(answers[0].conversation_id or "")

    assert [event.tool for event in events if isinstance(event, ChildStarted)] == ["scribe@1.0.0"]
    assert found.summary == "short"
    assert "short" in talk.model.requests[-1].messages[0].text


@pytest.mark.parametrize("failure", [ModelError("bad_request", "no"), ""])
async def test_without_a_summary_the_turn_goes_on_and_says_so(failure: Exception | str):
    def failing(request: Request) -> Any:
        return failure if request.system.startswith("You summarize") else "ok"

    async with talking(failing, helper(memory=memory())) as talk:
        first = await talk.say("1")
        for number in range(2, 4):
            await talk.say(str(number), first.conversation_id)
        last = await talk.say("4", first.conversation_id)

    assert last.status == "completed"
    assert any("could not be summarized" in warning for warning in last.warnings)
    assert [message.text for message in talk.model.requests[-1].messages] == ["3", "ok", "4"]


async def test_a_summary_that_a_filter_withholds_is_a_warning():
    def telling(request: Request) -> Any:
        return "It was about zebras." if request.system.startswith("You summarize") else "ok"

    agent = helper(memory=memory(), guardrails=(ContentFilter(words=("zebras",)),))
    async with talking(telling, agent) as talk:
        first = await talk.say("1")
        for number in range(2, 4):
            await talk.say(str(number), first.conversation_id)
        last = await talk.say("4", first.conversation_id)

    assert (last.status, last.response) == ("completed", "ok")
    assert any("could not be summarized: model_output holds" in warning for warning in last.warnings)


async def test_a_summary_agent_that_fails_or_is_not_there_is_a_warning():
    agent = helper(memory=memory(summary_agent="scribe"))
    broken = helper("scribe", tools=())

    def failing(request: Request) -> Any:
        return ModelError("bad_request", "no") if "What was said since" in request.messages[-1].text else "ok"

    async with talking(failing, broken, agent) as talk:
        first = await talk.say("1")
        for number in range(2, 4):
            await talk.say(str(number), first.conversation_id)
        last = await talk.say("4", first.conversation_id)

    assert last.response == "ok"
    assert any("could not be summarized" in warning for warning in last.warnings)


async def test_what_could_not_be_summarized_is_tried_again_with_what_followed():
    fails = iter([True, False])

    def sometimes(request: Request) -> Any:
        if request.system.startswith("You summarize"):
            return ModelError("bad_request", "no") if next(fails) else script(request)
        return "ok"

    async with talking(sometimes, helper(memory=memory())) as talk:
        await talk.begin(*(f"message {number}" for number in range(1, 6)))

    again = summaries(talk)[-1]
    assert [f"message {number}" in again for number in range(1, 4)] == [True, True, False]
    assert talk.model.requests[-1].messages[0].text.endswith("<2>")


async def test_what_was_called_and_what_came_of_it_is_summarized_too():
    turns = iter([calls(("look_up", '{"word": "abc"}'), text="Let me see."), *("ok" for _ in range(9))])
    agent = helper(memory=memory())

    def answer(request: Request) -> Any:
        return "short" if request.system.startswith("You summarize") else next(turns)

    async with talking(answer, agent) as talk:
        await talk.begin("1", "2", "3", "4")

    (asked,) = summaries(talk)
    assert 'Assistant calls look_up({"word": "abc"})\nlook_up answers: {"found":"abc"}' in asked
