"""What a recorded answer says, by a walk of its raw JSON that shares no code with the wires: the other opinion."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from tests.wire.recordings import Exchange

_MARKERS = frozenset({"type", "role", "object", "obfuscation", "finish_reason", "status", "finishReason"})
"""Keys whose values say what a thing is, not what was said."""


@dataclass
class Said:
    """What an answer says."""

    text: str = ""
    thinking: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    tokens: tuple[int, int] | None = None
    """Input with all cached tokens, output with all reasoning."""
    leaves: set[str] = field(default_factory=set[str])
    """Every string in it."""


def obj(value: Any) -> dict[str, Any]:
    """The object, or an empty one."""
    return cast("dict[str, Any]", value or {})


def arr(value: Any) -> list[dict[str, Any]]:
    """The array of objects, or an empty one."""
    return cast("list[dict[str, Any]]", value or [])


def said_in(exchange: Exchange) -> Said:
    """What the recorded answer says."""
    documents = exchange.events if exchange.streams else [json.loads(exchange.body)]
    match exchange.api:
        case "chat":
            return _chat(documents)
        case "anthropic":
            return _anthropic_stream(documents) if exchange.streams else _anthropic(documents[0])
        case "gemini":
            return _gemini(documents)
        case _:
            return _responses(_final(documents) if exchange.streams else documents[0])


def leaves(value: Any) -> Iterator[str]:
    """All strings in a JSON value; text that is JSON itself is looked into."""
    if isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            if key not in _MARKERS:
                yield from leaves(inner)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from leaves(inner)
    elif isinstance(value, str) and value:
        yield value
        if value[0] in "{[":
            yield from leaves(_loaded(value))


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _strings(value: Any) -> set[str]:
    """The strings as they stand, JSON in strings not looked into: it may be spelt with other white space."""
    return {leaf for leaf in leaves(value) if leaf[0] not in "{["}


def _chat(documents: Iterable[dict[str, Any]]) -> Said:
    said = Said()
    calls: dict[Any, list[str]] = {}
    for document in documents:
        usage = document.get("usage") or obj(document.get("x_groq")).get("usage")
        if usage:
            said.tokens = (usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0)
        for choice in arr(document.get("choices"))[:1]:
            message = choice.get("message") or obj(choice.get("delta"))
            _chat_message(message, said)
            legacy = obj(message.get("function_call"))
            old = [{"function": legacy}] if any(legacy.values()) else []
            for number, call in enumerate(message.get("tool_calls") or old):
                call_index = call.get("index")
                key = number if call_index is None else call_index
                if call.get("id") and key in calls and calls[key][2] not in ("", call["id"]):
                    key = call["id"]
                name, args, _ = calls.get(key, ["", "", ""])
                function = obj(call.get("function") or call.get("custom"))
                given: Any = function.get("arguments") or function.get("input") or ""
                written = given if isinstance(given, str) else json.dumps(given)
                calls[key] = [name or str(function.get("name") or ""), args + written, str(call.get("id") or "")]
            said.leaves |= _strings({name: value for name, value in message.items() if name != "tool_calls"})
    said.calls = [(name, _loaded(args or "{}")) for name, args, _ in calls.values()]
    return said


def _chat_message(message: dict[str, Any], said: Said) -> None:
    content: Any = message.get("content")
    for piece in arr(content) if isinstance(content, list) else [{"type": "text", "text": content or ""}]:
        if piece.get("type") == "thinking":
            said.thinking += "".join(inner.get("text", "") for inner in arr(piece["thinking"]))
        else:
            said.text += piece.get("text") or ""
    said.text += message.get("refusal") or ""
    details = arr(message.get("reasoning_details"))
    hidden = "".join(detail.get("text") or detail.get("summary") or "" for detail in details)
    said.thinking += message.get("reasoning_content") or message.get("reasoning") or hidden


def _anthropic(document: dict[str, Any]) -> Said:
    usage = obj(document.get("usage"))
    cached = (usage.get("cache_read_input_tokens") or 0) + (usage.get("cache_creation_input_tokens") or 0)
    blocks = document["content"]
    return Said(
        text="".join(block["text"] for block in blocks if block["type"] == "text"),
        thinking="".join(block["thinking"] for block in blocks if block["type"] == "thinking"),
        calls=[(block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"],
        tokens=((usage.get("input_tokens") or 0) + cached, usage.get("output_tokens") or 0) if usage else None,
        leaves=_strings(blocks),
    )


def _anthropic_stream(events: list[dict[str, Any]]) -> Said:
    blocks: dict[int, dict[str, Any]] = {}
    written: dict[int, str] = {}
    usage: dict[str, Any] = {}
    for event in events:
        match event["type"]:
            case "message_start":
                usage.update(event["message"].get("usage"))
            case "content_block_start":
                blocks[event["index"]] = event["content_block"]
            case "content_block_delta":
                delta, block = event["delta"], blocks[event["index"]]
                for name in ("text", "thinking", "signature"):
                    block[name] = block.get(name, "") + delta[name] if name in delta else block.get(name, "")
                written[event["index"]] = written.get(event["index"], "") + delta.get("partial_json", "")
            case "message_delta":
                usage.update({name: value for name, value in obj(event.get("usage")).items() if value is not None})
            case _:
                pass
    for index, text in written.items():
        if text:
            blocks[index]["input"] = _loaded(text)
    return _anthropic({"content": [blocks[index] for index in sorted(blocks)], "usage": usage})


def _gemini(documents: Iterable[dict[str, Any]]) -> Said:
    said = Said()
    usage: dict[str, Any] = {}
    for document in documents:
        usage |= obj(document.get("usageMetadata"))
        if usage:
            read = (usage.get("promptTokenCount") or 0) + (usage.get("toolUsePromptTokenCount") or 0)
            said.tokens = (read, (usage.get("candidatesTokenCount") or 0) + (usage.get("thoughtsTokenCount") or 0))
        for candidate in arr(document.get("candidates"))[:1]:
            parts = arr(obj(candidate.get("content")).get("parts"))
            for part in parts:
                if part.get("thought"):
                    said.thinking += part.get("text") or ""
                else:
                    said.text += part.get("text") or ""
                if "functionCall" in part:
                    said.calls.append((part["functionCall"]["name"], obj(part["functionCall"].get("args"))))
            said.leaves |= _strings(parts)
    return said


def _final(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The response object at the end; with the items that had events of their own, if it has none."""
    response: dict[str, Any] = next(event["response"] for event in reversed(events) if "response" in event)
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    return {**response, "output": response.get("output") or done}


def _responses(document: dict[str, Any]) -> Said:
    usage = document.get("usage")
    said = Said(leaves=_strings(document["output"]))
    for item in document["output"]:
        match item["type"]:
            case "message":
                said.text += "".join(piece.get("text") or piece.get("refusal") or "" for piece in item["content"])
            case "reasoning":
                pieces = item.get("summary") or arr(item.get("content"))
                said.thinking += ("\n\n" if item.get("summary") else "").join(piece["text"] for piece in pieces)
            case "function_call":
                said.calls.append((item["name"], _loaded(item["arguments"] or "{}")))
            case _:
                pass
    said.tokens = (usage["input_tokens"], usage["output_tokens"]) if usage else None
    return said
