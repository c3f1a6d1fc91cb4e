"""What a model's answer says to a reader of a trace: its reasons, and what it decided."""

import json
from typing import cast

import orjson

from toolcrib.contracts import JsonObject
from toolcrib.llm import Response, Thinking


def reasoning_of(response: Response) -> str | None:
    """The model's thinking as far as it was shown, else the field `reasoning` of an answer of JSON."""
    thought = "\n".join(
        part.text for part in response.message.parts if isinstance(part, Thinking) and part.text and not part.redacted
    )
    given = _object(response.message.text).get("reasoning")
    return thought or (given if isinstance(given, str) and given else None)


def decision_of(response: Response) -> str | None:
    """The calls that the model asked for, else its answer without the reasons; null if it said nothing."""
    calls = response.message.calls
    if calls:
        return "call " + ", ".join(f"{call.name}({call.args})" for call in calls)
    rest = {name: value for name, value in _object(response.message.text).items() if name != "reasoning"}
    only = next(iter(rest.values())) if len(rest) == 1 else None
    if isinstance(only, str):
        return only
    return json.dumps(rest, ensure_ascii=False) if rest else response.message.text.strip() or None


def _object(text: str) -> JsonObject:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return cast("JsonObject", found) if isinstance(found, dict) else {}
