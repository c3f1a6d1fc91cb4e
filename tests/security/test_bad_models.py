"""Models that misbehave: their runs end with a clear reason, inside their limits, and nothing is done beyond those."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import orjson
import pytest

from tests.unit.agents.crm import Crm, asks, stopped, told
from tests.unit.agents.desk import ask, noted
from toolcrib import Limits, tool
from toolcrib.contracts import CallFinished, ErrorCode, Reason
from toolcrib.llm import Message, ToolCall, assistant

pytestmark = pytest.mark.requirement("agent.bad_models")

SEARCH = asks(("search_deals", {"company": "Acme"}))
LIMITS = Limits(max_iterations=20, max_tool_calls=25)


def for_ever(answer: Any) -> Iterator[Any]:
    """The same answer always."""
    return (answer for _ in count())


@pytest.mark.requirement("agent.repeats")
async def test_a_model_that_makes_the_same_call_again_and_again_is_told_once_and_then_stopped():
    crm = Crm(1)
    result, model = await ask(for_ever(SEARCH), crm=crm, limits=LIMITS)

    assert (result.summary.status, result.summary.stop_reason) == ("failed", "policy")
    assert result.error is not None
    assert (result.error.code, result.error.reason) == (ErrorCode.POLICY_DENIED, Reason.REPEATED_CALLS)
    assert "the same calls with the same outcome 6 times in a row: search_deals" in result.error.message
    assert len(crm.searches) == 6
    hints = [message.text for message in model.requests[-1].messages if "3 times now" in message.text]
    assert len(hints) == 1


@pytest.mark.requirement("agent.repeats")
async def test_a_model_that_waits_for_something_to_change_is_left_alone():
    numbers = count()

    @tool(side_effects="reads")
    async def progress() -> int:
        """How far it is."""
        return next(numbers)

    result, model = await ask([asks(("progress", {}))] * 8 + ["Done."], progress, tools=["progress"], limits=LIMITS)

    assert result.output == "Done."
    assert not any("3 times now" in message.text for message in model.requests[-1].messages)


@pytest.mark.requirement("agent.repeats")
async def test_a_model_that_heeds_the_hint_may_go_on():
    other = asks(("search_deals", {"company": "Other"}))
    result, _ = await ask([SEARCH] * 5 + [other] + [SEARCH] * 5 + ["Done."], limits=LIMITS)

    assert result.output == "Done."


async def test_a_model_that_asks_for_something_else_each_time_is_stopped_by_its_limits():
    crm = Crm(1)
    others = (asks(("search_deals", {"company": f"Acme {number}"})) for number in count())
    result, _ = await ask(others, crm=crm, limits=Limits(max_iterations=50, max_tool_calls=7))

    assert (result.summary.status, result.summary.stop_reason) == ("incomplete", "max_tool_calls")
    assert len(crm.searches) == 7


async def test_a_model_that_invents_tools_is_told_which_there_are_and_given_up():
    result, model = await ask(for_ever(asks(("drop_all_tables", {"really": True}))), limits=LIMITS)

    assert (result.summary.status, result.summary.stop_reason) == ("failed", "policy")
    assert len(model.requests) == 3
    assert "you may call: search_deals, update_deals" in told(model.requests[1])[0]
    assert [envelope.attempts for envelope in result.envelopes] == [0, 0, 0]


@pytest.mark.parametrize("text", ['{"company": "Ac', "[]", "null", '{"company": 1e999}', '"' * 1000, "{" * 100_000])
async def test_a_model_that_sends_broken_arguments_is_given_up(text: str):
    crm = Crm(1)
    result, model = await ask(for_ever(asks(("search_deals", text))), crm=crm, limits=LIMITS)

    assert (result.summary.status, result.summary.stop_reason) == ("failed", "error")
    assert len(model.requests) == 3
    assert crm.searches == []


@pytest.mark.parametrize("most", [0, 1, 25])
async def test_of_two_hundred_calls_in_one_answer_no_more_are_made_than_allowed(most: int):
    crm = Crm(1)
    many = asks(*(("search_deals", {"company": f"Acme {number}"}) for number in range(200)))
    result, _ = await ask(for_ever(many), crm=crm, limits=Limits(max_tool_calls=most))

    assert (result.summary.status, result.summary.stop_reason) == ("incomplete", "max_tool_calls")
    assert len(crm.searches) == most
    finished = [entry.event for entry in result.events if isinstance(entry.event, CallFinished)]
    assert sum(event.envelope.attempts for event in finished) == most
    assert result.summary.tool_calls == most


async def test_arguments_of_five_megabytes_are_not_passed_on_and_do_not_come_back():
    crm = Crm(1)
    huge = asks(("search_deals", {"company": "x" * 5_000_000}))
    result, model = await ask([huge, "Sorry."], crm=crm)

    assert result.output == "Sorry."
    assert crm.searches == []
    assert "have 5000014 characters, and 1000000 is the most" in told(model.requests[1])[0]
    assert sum(len(part.args) for part in model.requests[1].messages[1].calls) < 100
    [refused] = noted(result, "call_refused")
    assert "5000014" in refused["message"]


async def test_a_model_that_sends_five_megabytes_again_and_again_is_given_up():
    huge = asks(("search_deals", {"company": "x" * 5_000_000}))
    result, model = await ask(for_ever(huge))

    assert (result.summary.status, result.summary.stop_reason) == ("failed", "error")
    assert len(model.requests) == 3


@pytest.mark.parametrize("text", ["", " \n\t", "\u200b" * 0])
async def test_a_model_that_says_nothing_is_asked_once_more_and_given_up(text: str):
    result, model = await ask(for_ever(text), limits=LIMITS)

    assert (result.summary.status, result.summary.stop_reason) == ("failed", "error")
    assert len(model.requests) == 2


async def test_text_without_end_is_cut_off_and_says_so():
    result, model = await ask([stopped("length", "and so on " * 100_000)])

    assert (result.summary.status, result.summary.stop_reason) == ("incomplete", "max_tokens")
    assert result.summary.warnings == ("the answer was cut off at max_tokens; raise max_tokens",)
    assert len(model.requests) == 1


async def test_a_model_that_pauses_for_ever_is_stopped_by_its_limits():
    result, model = await ask(for_ever(stopped("pause", "hm")), limits=Limits(max_iterations=4))

    assert (result.summary.status, result.summary.stop_reason) == ("incomplete", "max_iterations")
    assert len(model.requests) == 4


GARBAGE = [
    "\x00\x01\x02",
    "\ufffd\ufffe\uffff",
    "\u202e\u2066right to left\u2069",
    "🏴󠁧󠁢󠁳󠁣󠁴󠁿" * 100,
    "Z̸̡͓̗a̵̢l̶g̷o" * 100,
]


@pytest.mark.parametrize("text", GARBAGE, ids=range(len(GARBAGE)))
async def test_characters_that_mean_nothing_end_in_a_run_that_can_be_read(text: str):
    named = Message("assistant", (ToolCall("1", text, text), ToolCall("2", "search_deals", orjson.dumps({}).decode())))
    result, _ = await ask([named, assistant(text)])

    assert result.summary.status in ("completed", "failed")
    assert result.summary.stop_reason in ("final_answer", "error")
    assert orjson.dumps([entry.model_dump(mode="json") for entry in result.events])


@pytest.mark.parametrize("text", ["\ud800", "half \udc00 of a pair"], ids=["high", "low"])
async def test_half_of_a_character_is_no_answer(text: str):
    result, _ = await ask([assistant(text)] * 4)

    assert (result.summary.status, result.summary.stop_reason) == ("failed", "error")
    assert result.error is not None
    assert result.error.reason is Reason.BAD_RESPONSE
    assert "contains an invalid character" in result.error.message
    assert orjson.dumps([entry.model_dump(mode="json") for entry in result.events])


async def test_calls_with_equal_and_empty_ids_are_each_answered():
    same = Message("assistant", tuple(ToolCall("", "search_deals", '{"company": "A"}') for _ in range(3)))
    result, model = await ask([same, "Done."])

    assert result.output == "Done."
    ids = [call.id for call in model.requests[1].messages[1].calls]
    assert len(set(ids)) == 3
    assert all(ids)


async def test_a_result_of_fifty_megabytes_is_cut_before_a_model_sees_it():
    @tool(side_effects="reads")
    async def everything() -> str:
        """All there is."""
        return "x" * 50_000_000

    result, model = await ask([asks(("everything", {})), "Much."], everything, tools=["everything"])

    assert result.output == "Much."
    assert len(told(model.requests[1])[0]) < 50_000
    assert result.envelopes[0].truncated


async def test_a_model_that_says_it_calls_and_calls_nothing_is_asked_once_more():
    result, model = await ask(for_ever(stopped("tool_calls")))

    assert (result.summary.status, result.summary.stop_reason) == ("failed", "error")
    assert len(model.requests) == 2


async def test_a_model_that_writes_its_calls_as_text_is_told_once_and_calls_nothing():
    said = '<tool_call>{"name": "update_deals", "arguments": {"ids": ["d0"], "stage": "3003"}}</tool_call>'
    crm = Crm(1)
    result, model = await ask([said, said], crm=crm)

    assert result.output == said
    assert len(model.requests) == 2
    assert "and is taken for its answer" in result.warnings[-1]
    assert crm.updates == []
