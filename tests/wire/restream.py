"""A whole answer as its provider would stream it, in small pieces: the other half of every recorded pair."""

import json
from collections.abc import Iterator
from typing import Any

PIECE = 7


def chat(body: bytes) -> bytes:
    """A Chat Completions answer as server-sent events."""
    answer = json.loads(body)
    choice = answer["choices"][0]
    head = {"id": answer.get("id"), "model": answer.get("model")}
    chunks = [{**head, "choices": [{"delta": delta}]} for delta in _chat_deltas(choice["message"])]
    chunks.append({**head, "choices": [{"delta": {}, "finish_reason": choice["finish_reason"]}]})
    chunks.append({**head, "choices": [], "usage": answer.get("usage")})
    return b"".join(_event(chunk) for chunk in chunks) + b"data: [DONE]\n\n"


def _chat_deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name, value in message.items():
        if name == "tool_calls":
            for index, call in enumerate(value or ()):
                function = call["function"]
                opened: dict[str, Any] = {
                    **call,
                    "index": index,
                    "function": {"name": function["name"], "arguments": ""},
                }
                yield {"tool_calls": [opened]}
                for piece in _pieces(function["arguments"]):
                    yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
        elif isinstance(value, str) and name in {"content", "reasoning", "reasoning_content", "refusal"}:
            for piece in _pieces(value):
                yield {name: piece}
        else:
            yield {name: value}


def anthropic(body: bytes) -> bytes:
    """An Anthropic Messages answer as server-sent events."""
    answer = json.loads(body)
    started: dict[str, Any] = {**answer, "content": [], "stop_reason": None}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": started}]
    for index, block in enumerate(answer["content"]):
        events += _block_events(index, block)
    ended = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": ended, "usage": answer["usage"]})
    events.append({"type": "message_stop"})
    return b"".join(b"event: " + event["type"].encode() + b"\n" + _event(event) for event in events)


def _block_events(index: int, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    kind = block["type"]
    empty: dict[str, dict[str, Any]] = {
        "text": {"text": ""},
        "thinking": {"thinking": "", "signature": ""},
        "tool_use": {"input": {}},
    }
    yield {"type": "content_block_start", "index": index, "content_block": block | empty.get(kind, {})}
    deltas: list[dict[str, Any]] = []
    if kind == "text":
        deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
    elif kind == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    elif kind == "tool_use":
        pieces = _pieces(json.dumps(block["input"])) if block["input"] else []
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    yield from ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
    yield {"type": "content_block_stop", "index": index}


def _pieces(text: str) -> list[str]:
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


def _event(content: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(content).encode() + b"\n\n"
