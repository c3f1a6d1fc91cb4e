"""Recorded requests as neutral ones: what somebody else's client sent, in our words. No assertions here.

An assistant's turn is read by the wire itself, as the answer that it once was. What has no neutral shape (media, server
tools) makes the whole request None.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from tests.wire.recordings import Exchange
from tests.wire.walk import arr, obj
from toolcrib.llm import Message, NamedTool, Part, Request, Text, Tool, ToolChoice, ToolResult, ToolSet


class Unsayable(Exception):
    """A request holds what has no neutral shape."""


def neutral(exchange: Exchange) -> Request | None:
    """The request in our words, if it has them."""
    try:
        return _READERS[exchange.api](exchange)
    except Unsayable:
        return None


class _Turns:
    """Messages under construction: neighbours of one side are one message."""

    def __init__(self) -> None:
        self._messages: list[Message] = []

    def add(self, role: Any, parts: Iterable[Part]) -> None:
        if self._messages and self._messages[-1].role == role == "user":
            self._messages[-1] = Message("user", (*self._messages[-1].parts, *parts))
        else:
            self._messages.append(Message(role, tuple(parts)))

    def done(self) -> tuple[Message, ...]:
        return tuple(self._messages)


def plain(content: Any, kinds: tuple[str, ...] = ("text", "input_text", "output_text")) -> str:
    """The text of a content that is nothing else."""
    if isinstance(content, str):
        return content
    pieces = arr(content)
    if any(piece.get("type") not in kinds for piece in pieces):
        raise Unsayable
    return "".join(piece.get("text", "") for piece in pieces)


def _chat(exchange: Exchange) -> Request:
    body = exchange.request
    turns, system = _Turns(), ""
    for message in body["messages"]:
        match message["role"]:
            case "system" | "developer" if not turns.done() and not system:
                system = plain(message["content"])
            case "user":
                turns.add("user", (Text(plain(message["content"])),))
            case "tool":
                turns.add("user", (ToolResult(message["tool_call_id"], "", plain(message["content"])),))
            case "assistant":
                answer = {"choices": [{"message": message}]}
                turns.add("assistant", exchange.wire.parse(orjson.dumps(answer)).message.parts)
            case _:
                raise Unsayable
    tools = [obj(tool.get("function")) for tool in arr(body.get("tools"))]
    wanted = obj(obj(body.get("response_format")).get("json_schema"))
    return Request(
        model=body["model"],
        messages=turns.done(),
        system=system,
        tools=_tools(tools, "parameters"),
        tool_choice=_choice(body.get("tool_choice"), lambda choice: obj(choice.get("function")).get("name")),
        output_schema=wanted.get("schema"),
        output_name=wanted.get("name", "answer"),
        max_tokens=body.get("max_completion_tokens") or body.get("max_tokens"),
        temperature=body.get("temperature"),
        top_p=body.get("top_p"),
    )


def _responses(exchange: Exchange) -> Request:
    body = exchange.request
    turns = _Turns()
    given: Any = body["input"]
    said: list[dict[str, Any]] = []

    def answered() -> None:
        if said:
            turns.add("assistant", exchange.wire.parse(orjson.dumps({"output": said})).message.parts)
            said.clear()

    for item in [{"role": "user", "content": given}] if isinstance(given, str) else arr(given):
        if item.get("role") == "user":
            answered()
            turns.add("user", (Text(plain(item["content"])),))
        elif item.get("type") == "function_call_output":
            answered()
            turns.add("user", (ToolResult(item["call_id"], "", plain(item["output"])),))
        elif item.get("role", "assistant") == "assistant" and item.get("type") != "item_reference":
            said.append(item)
        else:
            raise Unsayable
    answered()
    wanted = obj(obj(body.get("text")).get("format"))
    return Request(
        model=body["model"],
        messages=turns.done(),
        system=body.get("instructions") or "",
        tools=_tools(arr(body.get("tools")), "parameters"),
        tool_choice=_choice(body.get("tool_choice"), lambda choice: choice.get("name")),
        output_schema=wanted.get("schema"),
        output_name=wanted.get("name", "answer"),
        max_tokens=body.get("max_output_tokens"),
        temperature=body.get("temperature"),
        top_p=body.get("top_p"),
    )


def _anthropic(exchange: Exchange) -> Request:
    body = exchange.request
    turns = _Turns()
    for message in body["messages"]:
        blocks = _blocks(message["content"])
        if message["role"] == "system":
            raise Unsayable
        if message["role"] == "assistant":
            answer = exchange.wire.parse(orjson.dumps({"content": blocks}))
            turns.add("assistant", answer.message.parts)
        else:
            turns.add("user", [_said(block) for block in blocks])
    return Request(
        model=body.get("model", ""),
        messages=turns.done(),
        system=plain(body.get("system", "")),
        tools=_tools(arr(body.get("tools")), "input_schema"),
        tool_choice=_choice(body.get("tool_choice"), lambda choice: choice.get("name")),
        output_schema=obj(obj(body.get("output_config")).get("format")).get("schema"),
        max_tokens=body["max_tokens"],
        temperature=body.get("temperature"),
        top_p=body.get("top_p"),
    )


def _blocks(content: Any) -> list[dict[str, Any]]:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else arr(content)
    return [{name: value for name, value in block.items() if name != "cache_control"} for block in blocks]


def _said(block: dict[str, Any]) -> Part:
    if block["type"] == "tool_result":
        text = plain(block.get("content") or "")
        return ToolResult(block["tool_use_id"], "", text, is_error=block.get("is_error") or False)
    return Text(plain([block]))


def _tools(tools: list[dict[str, Any]], schema: str) -> ToolSet:
    if any("name" not in tool or not isinstance(tool.get(schema), dict) for tool in tools):
        raise Unsayable
    return ToolSet([Tool(tool["name"], tool.get("description") or "", tool[schema]) for tool in tools])


def _choice(choice: Any, name: Callable[[dict[str, Any]], str | None]) -> ToolChoice:
    if isinstance(choice, dict):
        named = name(obj(choice))
        kind = str(obj(choice).get("type"))
        choice = NamedTool(named) if named else {"any": "required"}.get(kind, kind)
    if choice is None or choice in ("auto", "none", "required") or isinstance(choice, NamedTool):
        return choice or "auto"
    raise Unsayable


_READERS: Mapping[str, Callable[[Exchange], Request]] = {
    "anthropic": _anthropic,
    "chat": _chat,
    "responses": _responses,
}


def essence(api: str, body: dict[str, Any]) -> Any:
    """What matters in a request body, in one spelling: who said what, with which ids; tools; settings."""
    tools = [obj(tool.get("function") or tool) for tool in arr(body.get("tools"))]
    schemas = {tool["name"]: tool.get("parameters") or tool.get("input_schema") for tool in tools}
    settings = {name: body.get(name) for name in ("model", "temperature", "top_p") if body.get(name) not in (None, "")}
    limits = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    limit = next((body[name] for name in limits if body.get(name)), None)
    return _TURNS[api](body), schemas, settings, limit


def _chat_turns(body: dict[str, Any]) -> list[Any]:
    turns: list[Any] = []
    for message in body["messages"]:
        functions = [(call["id"], obj(call["function"])) for call in arr(message.get("tool_calls"))]
        calls = [(id_, function["name"], function.get("arguments") or "{}") for id_, function in functions]
        role = "system" if message["role"] == "developer" else message["role"]
        _said_by(turns, role, plain(message.get("content") or "", ("text", "thinking")), message.get("tool_call_id"))
        turns += [("call", *call) for call in calls]
    return turns


def _said_by(turns: list[Any], role: str, text: str, answers: str | None = None) -> None:
    """One turn; neighbouring texts of a side count as one."""
    said = "".join(text.split())
    if answers is not None:
        turns.append(("result", answers, said))
    elif said and turns and turns[-1][0] == role:
        turns[-1] = (role, turns[-1][1] + said)
    elif said:
        turns.append((role, said))


def _responses_turns(body: dict[str, Any]) -> list[Any]:
    turns: list[Any] = []
    _said_by(turns, "system", body.get("instructions") or "")
    given: Any = body["input"]
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else arr(given):
        match item.get("type", "message"):
            case "message":
                _said_by(turns, item["role"], plain(item["content"]))
            case "function_call":
                turns.append(("call", item["call_id"], item["name"], item["arguments"]))
            case "function_call_output":
                _said_by(turns, "user", plain(item["output"]), item["call_id"])
            case _:
                turns.append(("item", {name: value for name, value in item.items() if value is not None}))
    return turns


def _anthropic_turns(body: dict[str, Any]) -> list[Any]:
    turns: list[Any] = []
    _said_by(turns, "system", plain(body.get("system", "")))
    for message in body["messages"]:
        for block in _blocks(message["content"]):
            match block["type"]:
                case "text" if not block.get("citations"):
                    _said_by(turns, message["role"], block["text"])
                case "tool_result":
                    _said_by(turns, "user", plain(block.get("content") or ""), block["tool_use_id"])
                case "tool_use":
                    turns.append(("call", block["id"], block["name"], json.dumps(block["input"], sort_keys=True)))
                case _:
                    turns.append(("block", block))
    return turns


_TURNS: Mapping[str, Callable[[dict[str, Any]], list[Any]]] = {
    "anthropic": _anthropic_turns,
    "chat": _chat_turns,
    "responses": _responses_turns,
}
