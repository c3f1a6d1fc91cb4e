"""What a model's answer says to a reader of a trace: its reasons, and what it decided."""

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
    answer = _object(response.message.text)
    rest = [value for name, value in answer.items() if name != "reasoning"]
    if len(rest) == 1 and isinstance(rest[0], str):
        return rest[0]
    if rest:
        return orjson.dumps({name: value for name, value in answer.items() if name != "reasoning"}).decode()
    return response.message.text.strip() or None


def _object(text: str) -> JsonObject:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return cast("JsonObject", found) if isinstance(found, dict) else {}
