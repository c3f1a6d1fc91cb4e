"""What a model is told of a call that was refused, so that it can correct itself or ask; and when that is enough.

Refused means that nothing ran: the tool is not among its own, or the arguments are not valid. The text names what it
may call, by the names that it knows, and the closest to what it wrote.
"""

from collections.abc import Sequence
from difflib import get_close_matches

import orjson

from toolcrib.agents.model.previews import result_text
from toolcrib.contracts import ErrorCode, JsonObject, Reason, ToolEnvelope, ToolError

MAX_REFUSED_TURNS = 3
"""Turns in a row of which every call was refused; then the run ends with the last refusal."""

_NOT_ITS_OWN = frozenset({Reason.TOOL_NOT_ALLOWED, Reason.TOOL_NOT_FOUND})
_REFUSING = frozenset({ErrorCode.POLICY_DENIED, ErrorCode.VALIDATION_ERROR})
_MOST_NAMES = 40
_ASK = "Use a value that is named here. If none is meant, do not guess: answer with a question and call nothing."


def is_refused(envelope: ToolEnvelope) -> bool:
    """Whether a call was refused before anything ran."""
    return envelope.error is not None and envelope.attempts == 0 and envelope.error.code in _REFUSING


def told(envelope: ToolEnvelope, *, called: str, offered: Sequence[str]) -> str:
    """What the model gets back from a call.

    Args:
        envelope: Its outcome.
        called: The name that the model called.
        offered: The names that it may call.
    """
    failure = envelope.error
    if failure is None or not is_refused(envelope):
        return result_text(envelope)
    facts = told_of(failure)
    if failure.reason in _NOT_ITS_OWN and called not in offered:
        return _dump(facts | _instead(called, offered))
    if failure.code is ErrorCode.VALIDATION_ERROR:
        facts["hint"] = _ASK
    return _dump(facts)


def told_of(failure: ToolError) -> JsonObject:
    """What a model is told of an error: its code and its message."""
    return {"error": failure.code.value, "message": failure.message}


def given_up(model: str, last: ToolError) -> ToolError:
    """The error of a run whose model was refused too often.

    Args:
        model: Name of the model.
        last: Its last refusal.
    """
    message = f"all calls of the model {model!r} were refused in {MAX_REFUSED_TURNS} turns in a row; the last: "
    return last.model_copy(update={"message": f"{message}{last.message}"})


def _instead(called: str, offered: Sequence[str]) -> JsonObject:
    near = get_close_matches(called, offered, n=3)
    closest = f"the closest: {', '.join(near)}; " if near else ""
    names = f"you may call: {', '.join(offered[:_MOST_NAMES])}" if offered else "you have none"
    return {"message": f"{called!r} is not among your tools; {closest}{names}"}


def _dump(facts: JsonObject) -> str:
    return orjson.dumps(facts).decode()
