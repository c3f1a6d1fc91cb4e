"""An answer is read the same in the short way for what most answers are, and in the one for whatever servers send."""

import json
from copy import deepcopy
from typing import Any, cast
from unittest.mock import patch

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from toolcrib.contracts.base.errors import ModelError
from toolcrib.llm.wires import chat
from toolcrib.llm.wires.chat import parse_answer, parse_any

ABSENT = object()
ODD = [
    ABSENT,
    None,
    "",
    "x",
    "ü",
    0,
    1,
    -1,
    2.5,
    7.0,
    10**25,
    True,
    [],
    ["x"],
    {},
    {"text": "x"},
    {"tokens": 0},
    "\\ud800",
]
NOTHING: list[Any] = []
TEXT: Any = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_700_000_000,
    "model": "gpt-x-search",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Let me see.", "refusal": None, "annotations": NOTHING},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": {
        "prompt_tokens": 120,
        "completion_tokens": 30,
        "total_tokens": 150,
        "prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 12, "audio_tokens": 0, "accepted_prediction_tokens": 0},
    },
    "service_tier": "default",
    "system_fingerprint": None,
}
CALLS: Any = {
    "id": None,
    "choices": [
        {
            "message": {
                "content": None,
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "get", "arguments": '{"city": "Oslo"}'}},
                    {"index": 1, "id": "", "function": {"name": "put", "arguments": ""}},
                ],
            },
            "finish_reason": "tool_calls",
        },
        {"message": {"content": "Another choice."}},
    ],
    "usage": {"prompt_tokens": 12, "completion_tokens": 0},
}
CHOICE = ("choices", 0)
MESSAGE = (*CHOICE, "message")
CALL = (*MESSAGE, "tool_calls", 0)
READ, WRITTEN = ("usage", "prompt_tokens_details"), ("usage", "completion_tokens_details")
NAMES: dict[tuple[str | int, ...], str] = {
    (): "id model choices usage error x_groq other",
    CHOICE: "message finish_reason error other",
    MESSAGE: "role content refusal annotations tool_calls reasoning_content reasoning reasoning_details function_call "
    "audio executed_tools other",
    CALL: "id type index function custom extra_content",
    (*CALL, "function"): "name arguments input strict",
    ("usage",): "prompt_tokens completion_tokens total_tokens prompt_tokens_details completion_tokens_details cost "
    "cost_details cost_in_usd_ticks is_byok prompt_cache_hit_tokens num_search_queries num_sources_used "
    "server_tool_use",
    READ: "cached_tokens cache_write_tokens audio_tokens other",
    WRITTEN: "reasoning_tokens audio_tokens image_tokens other",
}
PLACES = [(*holder, name) for holder, names in NAMES.items() for name in names.split()]
ENDS = ["end", "eos", "length", "content_filter", "refusal", "new"]
CHANGES = st.one_of(
    st.tuples(st.sampled_from(PLACES), st.sampled_from(ODD)),
    st.tuples(st.just((*CHOICE, "finish_reason")), st.sampled_from(ENDS)),
)


def changed(answer: Any, changes: list[tuple[Any, Any]]) -> Any:
    """The answer with other values in some places, as far as these are still there."""
    answer = deepcopy(answer)
    for (*way, name), value in changes:
        holder: Any = answer
        for step in way:
            try:
                holder = holder[step]
            except (KeyError, IndexError, TypeError):
                holder = None
        if not isinstance(holder, dict):
            continue
        fields = cast("dict[str, Any]", holder)
        if value is ABSENT:
            fields.pop(name, None)
        else:
            fields[name] = deepcopy(value)
    return answer


def outcome(parse: Any, body: bytes) -> Any:
    """What comes of a body."""
    try:
        return parse(body, "openai")
    except ModelError as error:
        return error.kind, str(error), error.status


def is_usual(body: bytes) -> bool:
    """Whether an answer is read in the short way."""
    with patch.object(chat, "parse_any", side_effect=NotImplementedError):
        try:
            parse_answer(body, "openai")
        except NotImplementedError:
            return False
    return True


@settings(max_examples=1500, deadline=None)
@given(
    answer=st.sampled_from([TEXT, CALLS]),
    changes=st.lists(CHANGES, max_size=3),
    escaped=st.booleans(),
    lost=st.one_of(*[st.just(0)] * 9, st.integers(1, 400)),
)
@example(answer=TEXT, changes=[], escaped=True, lost=0)
@example(answer=CALLS, changes=[], escaped=True, lost=0)
@pytest.mark.requirement("llm.short_way")
def test_the_short_way_reads_what_the_long_one_reads(
    *, answer: Any, changes: list[tuple[Any, Any]], escaped: bool, lost: int
) -> None:
    text = json.dumps(changed(answer, changes), ensure_ascii=escaped).replace("\\\\ud800", "\\ud800")
    body = text.encode()[: len(text) - lost]
    assert outcome(parse_answer, body) == outcome(parse_any, body)
    event("short way" if is_usual(body) else "long way")


@pytest.mark.requirement("llm.short_way")
@pytest.mark.parametrize("answer", [TEXT, CALLS])
def test_usual_answers_are_read_in_the_short_way(answer: Any) -> None:
    assert is_usual(json.dumps(answer).encode())


@pytest.mark.requirement("llm.short_way")
@pytest.mark.parametrize(
    "field", [b'"\xff"', b'"\xed\xa0\x80"', b'"\\ud800"', b"[" * 2000 + b"]" * 2000, b"01", b"nan", b'"a\nb"', b'"\\x"']
)
def test_what_is_no_json_in_a_field_that_nobody_reads_is_refused(field: bytes) -> None:
    usual = {"choices": [{"message": {"content": "Done."}}], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}
    body = json.dumps(usual).encode()
    assert parse_answer(body, "openai").message.text == "Done."
    broken = body[:-1] + b', "other": ' + field + b"}"
    assert outcome(parse_answer, broken) == outcome(parse_any, broken)
    with pytest.raises(ModelError, match="not JSON"):
        parse_answer(broken, "openai")
