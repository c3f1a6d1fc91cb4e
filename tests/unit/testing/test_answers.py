"""The short forms for answers of a scripted model."""

import json

import pytest

from toolcrib.contracts import InvalidInput
from toolcrib.llm import Text
from toolcrib.testing import calls, fails, says, says_json, together

pytestmark = pytest.mark.requirement("testing.answers")


def test_words_and_json_are_messages_of_the_model():
    assert (says("Hello.").role, says("Hello.").text) == ("assistant", "Hello.")
    assert json.loads(says_json({"deals": [1, None]}).text) == {"deals": [1, None]}


def test_a_call_has_its_arguments_as_json():
    [call] = calls("search", company="Acme", limit=2, filters={"open": True}).calls

    assert call.name == "search"
    assert json.loads(call.args) == {"company": "Acme", "limit": 2, "filters": {"open": True}}


def test_an_argument_may_have_any_name():
    [call] = calls("rename", name="Acme").calls

    assert json.loads(call.args) == {"name": "Acme"}


def test_texts_and_calls_stand_together_in_order_and_their_ids_differ():
    answer = together("Both.", calls("search", company="Acme"), says("And"), calls("search", company="Bolt"))

    assert [type(part).__name__ for part in answer.parts] == ["Text", "ToolCall", "Text", "ToolCall"]
    assert [call.id for call in answer.calls] == ["call_1", "call_2"]
    assert answer.parts[0] == Text("Both.")


def test_a_failure_has_its_kind_and_status():
    failure = fails("rate_limit", "too many requests", status=429)

    assert (failure.kind, failure.status, failure.may_retry, str(failure)) == (
        "rate_limit", 429, True, "too many requests",
    )  # fmt: skip


def test_a_kind_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(InvalidInput, match="'slow' is not a kind of model error; use one of rate_limit, quota"):
        fails("slow")  # pyright: ignore[reportArgumentType] - what a test without types may write


def test_a_value_that_is_not_json_is_refused_with_the_name_of_the_tool():
    with pytest.raises(InvalidInput, match=r"the arguments of 'search' are not JSON: .*; pass text, numbers"):
        calls("search", company=object())
