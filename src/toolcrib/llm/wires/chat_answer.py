"""What a Chat Completions answer means; for whole answers, and for the message that a stream adds up to.

A message field that has no neutral shape (annotations, audio, reasoning details, ...) becomes one `Opaque` part whose
JSON is an object of such fields; a refusal too, with its text.
"""

from typing import Any

import orjson
from msgspec import Struct

from toolcrib.llm.base._signature import signed
from toolcrib.llm.base.errors import fault_of, provider_error
from toolcrib.llm.base.json_values import arr, count, json_text, load_object, missing, obj, text
from toolcrib.llm.base.messages import Message, Opaque, Part, Response, Stop, Text, Thinking, ToolCall, Usage

KNOWN_FIELDS = frozenset(
    {"role", "content", "reasoning_content", "reasoning", "tool_calls", "function_call", "refusal"}
)
"""The message fields that have a neutral shape."""

_CALL_FIELDS = frozenset({"function", "id", "index", "type"})
_STOPS: dict[str, Stop] = {
    "stop": "end",
    "end_turn": "end",
    "eos": "end",
    "eos_token": "end",
    "stop_sequence": "end",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "refusal": "refusal",
}


class Answer(Struct):
    """One choice and what stands around it."""

    message: dict[str, Any]
    finish_reason: str
    usage: Usage | None
    model: str
    id: str


def parse_answer(body: bytes, origin: str) -> Response:
    """The response in a body.

    Raises:
        ModelError: The body holds an error, or lacks what is needed.
    """
    content = load_object(body, origin)
    if content.get("error"):
        raise provider_error(origin, fault_of(content["error"]))
    choices = arr(content.get("choices"))
    if not choices:
        raise missing(origin, "choices", content)
    choice = obj(choices[0])
    if choice.get("error"):
        raise provider_error(origin, fault_of(choice["error"]))
    if not isinstance(choice.get("message"), dict) and choice.get("finish_reason") != "content_filter":
        raise missing(origin, "choices[0].message", choice)
    return response_of(
        Answer(
            message=obj(choice.get("message")),
            finish_reason=text(choice.get("finish_reason")),
            usage=usage_of(content),
            model=text(content.get("model")),
            id=text(content.get("id")),
        ),
        origin,
    )


def response_of(answer: Answer, origin: str) -> Response:
    """The response that an answer means."""
    parts = [
        *_thinking(answer.message, origin),
        *_content(answer.message.get("content"), origin),
        *_opaque(answer.message, origin),
        *_calls(answer, origin),
    ]
    stop = _STOPS.get(answer.finish_reason, "other") if answer.finish_reason else "end"
    if stop == "end" and isinstance(parts[-1] if parts else None, ToolCall):
        stop = "tool_calls"
    if stop == "end" and answer.message.get("refusal"):
        stop = "refusal"
    usage = answer.usage or Usage(estimated=True)
    return Response(Message("assistant", tuple(parts)), stop, answer.finish_reason, usage, answer.model, answer.id)


def usage_of(content: dict[str, Any]) -> Usage | None:
    """The usage in an answer or a chunk of one; Groq's streams have it under `x_groq`."""
    usage = obj(content.get("usage")) or obj(obj(content.get("x_groq")).get("usage"))
    if not usage:
        return None
    read = obj(usage.get("prompt_tokens_details"))
    written = obj(usage.get("completion_tokens_details"))
    return Usage(
        input=count(usage.get("prompt_tokens")),
        output=count(usage.get("completion_tokens")),
        cache_read=count(read.get("cached_tokens")) or count(usage.get("prompt_cache_hit_tokens")),
        cache_write=count(read.get("cache_write_tokens")),
        reasoning=count(written.get("reasoning_tokens")),
    )


def thinking_text(message: dict[str, Any]) -> str:
    """The reasoning in a message or a delta; servers that send several fields repeat one text in them."""
    shown = text(message.get("reasoning_content")) or text(message.get("reasoning"))
    if shown or "reasoning_details" not in message:
        return shown
    details = map(obj, arr(message["reasoning_details"]))
    return "".join(text(detail.get("text")) or text(detail.get("summary")) for detail in details)


def content_piece(piece: Any) -> tuple[str, str]:
    """Text and thinking text of one piece of a content array; both empty if it is neither."""
    fields = obj(piece)
    match fields.get("type"):
        case "text":
            return text(fields.get("text")), ""
        case "thinking":
            return "", "".join(text(obj(part).get("text")) for part in arr(fields.get("thinking")))
        case _:
            return "", ""


def generated_id(answer_id: str, index: int) -> str:
    """The id of a call that came without one; unique in a conversation, and the same whole and streamed."""
    return f"call_{answer_id}_{index}" if answer_id else f"call_{index}"


def further_fields(call: dict[str, Any]) -> dict[str, Any]:
    """What a call, or a delta of one, holds beside its id and function."""
    return {name: call[name] for name in call.keys() - _CALL_FIELDS if call[name] is not None}


def _thinking(message: dict[str, Any], origin: str) -> list[Part]:
    shown = thinking_text(message)
    return [Thinking(shown, origin=origin)] if shown else []


def _content(content: Any, origin: str) -> list[Part]:
    if isinstance(content, str):
        return [Text(content)] if content else []
    parts: list[Part] = []
    for piece in arr(content):
        said, thought = content_piece(piece)
        if thought:
            parts.append(Thinking(thought, origin=origin))
        elif said:
            parts.append(Text(said))
        elif obj(piece).get("type") not in {"text", "thinking"}:
            fields = {"content": [piece]}
            parts.append(Opaque(origin, orjson.dumps(fields).decode(), text(obj(piece).get("refusal"))))
    return parts


def _opaque(message: dict[str, Any], origin: str) -> list[Part]:
    parts: list[Part] = []
    if refusal := text(message.get("refusal")):
        parts.append(Opaque(origin, orjson.dumps({"refusal": refusal}).decode(), refusal))
    fields = {name: value for name, value in message.items() if name not in KNOWN_FIELDS and not _says_nothing(value)}
    if fields:
        parts.append(Opaque(origin, orjson.dumps(fields).decode()))
    return parts


def _says_nothing(value: Any) -> bool:
    """Whether a field is there for its name only; some servers send every field, with zeros in its members."""
    return value in (None, [], {}, "") or (isinstance(value, dict) and not any(obj(value).values()))


def _calls(answer: Answer, origin: str) -> list[Part]:
    calls = [obj(call) for call in arr(answer.message.get("tool_calls"))]
    if not calls and any(obj(answer.message.get("function_call")).values()):
        calls = [{"function": answer.message["function_call"]}]
    parts: list[Part] = []
    for index, call in enumerate(calls):
        # A call of a custom tool has free text where a function has arguments.
        function = obj(call.get("function")) or obj(call.get("custom"))
        name = text(function.get("name"))
        if not name:
            raise missing(origin, f"choices[0].message.tool_calls[{index}].function.name", function or call)
        arguments = function.get("arguments", function.get("input"))
        args = "{}" if arguments is None else json_text(arguments)
        signature = signed(origin, further_fields(call))
        parts.append(ToolCall(text(call.get("id")) or generated_id(answer.id, index), name, args, signature))
    return parts
