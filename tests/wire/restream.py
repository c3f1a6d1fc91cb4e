"""A whole answer as its provider would stream it, in small pieces: the other half of every recorded pair."""

import json
from collections.abc import Iterator
from typing import Any

PIECE = 7


def chat(body: bytes) -> bytes:
    """A Chat Completions answer as server-sent events."""
    answer = json.loads(body)
    choice: dict[str, Any] = {"message": {}, **answer["choices"][0]}
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
                for piece in _pieces(function.get("arguments", "")):
                    yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
        elif isinstance(value, str) and name in {"content", "reasoning", "reasoning_content", "refusal"}:
            beside = {"reasoning_details": message["reasoning_details"]} if _is_told_twice(name, message) else {}
            for piece in _pieces(value):
                yield {name: piece, **beside}
                beside = {}
        elif not _is_told_twice("reasoning", message) or name != "reasoning_details":
            yield {name: value}


def _is_told_twice(name: str, message: dict[str, Any]) -> bool:
    """Whether reasoning is sent as a text and in details too; both then come in one delta."""
    return name == "reasoning" and bool(message.get("reasoning") and message.get("reasoning_details"))


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


def responses(body: bytes) -> bytes:
    """A Responses answer as server-sent events."""
    answer = json.loads(body)
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {**answer, "output": []}}]
    for index, item in enumerate(answer["output"]):
        events += ({**event, "output_index": index} for event in _item_events(item))
    events.append({"type": f"response.{answer['status']}", "response": answer})
    return b"".join(b"event: " + event["type"].encode() + b"\n" + _event(event) for event in events)


def _item_events(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    empty: dict[str, Any] = {"function_call": {"arguments": ""}, "message": {"content": []}}
    yield {"type": "response.output_item.added", "item": item | empty.get(item["type"], {})}
    if item["type"] == "message":
        for piece in item["content"]:
            kind, said = ("refusal", piece["refusal"]) if "refusal" in piece else ("output_text", piece["text"])
            yield from ({"type": f"response.{kind}.delta", "delta": delta} for delta in _pieces(said))
    elif item["type"] == "function_call":
        deltas = _pieces(item["arguments"])
        yield from ({"type": "response.function_call_arguments.delta", "delta": delta} for delta in deltas)
    yield {"type": "response.output_item.done", "item": item}


def _pieces(text: str) -> list[str]:
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


def _event(content: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(content).encode() + b"\n\n"
