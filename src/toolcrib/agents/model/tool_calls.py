"""Tool calls of an answer, and what the model is told about their results and refusals.

Call ids are made unique, and very long arguments are omitted from what is sent back; the journal has the original.
Large results are shortened to their shape, first items and counts. A refusal says that nothing ran, and names the
callable tools and the closest names or values.
"""

from base64 import b64decode
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Final, NamedTuple, cast

import msgspec
import orjson

from toolcrib.contracts import Attachment, ErrorCode, Json, JsonObject, Reason, ToolEnvelope, ToolError, digest
from toolcrib.contracts.base.media import input_of
from toolcrib.core.executor import error
from toolcrib.core.runs import clip_text, shorten_json
from toolcrib.llm import FilePart, Message, Part, ToolCall
from toolcrib.llm.base.files import file_of

_LONGEST_FILE: Final = 20_000
"""Bytes of a text file that a model is shown as the file of a result."""


def preview(value: Json, limit: int = 4000) -> str:
    """The value as JSON text of about `limit` characters at most; lists are shortened before texts."""
    text = orjson.dumps(value).decode()
    return text if len(text) <= limit else clip_text(_dump(shorten_json(value, limit)), limit)


def result_text(envelope: ToolEnvelope, limit: int = 20_000) -> str:
    """What the model gets back from a call: the output, also that it is not all of a list, or the error to act on."""
    if envelope.error is not None:
        facts: JsonObject = {"error": envelope.error.code.value, "message": envelope.error.message}
        if envelope.error.retry_after_s is not None:
            facts["retry_after_s"] = envelope.error.retry_after_s
        if envelope.partial is not None:
            facts["done_before"] = preview(envelope.partial, limit)
        return _dump(facts)
    if envelope.status == "skipped":
        return _dump({"skipped": True, "reason": "dry run: nothing was written"})
    output = _without_bytes(envelope) if envelope.attachments else envelope.output
    shown, facts = preview(output, limit), envelope.metadata
    if not facts and not envelope.truncated:
        return shown
    paging = facts.get("paging") or {"complete": True}
    notes = [] if paging["complete"] else list(facts.get("warnings", ()))
    if envelope.truncated:
        notes.append("this is the beginning of a larger output, the rest of which is not shown; ask for less at once")
    return "\n".join([shown, *notes])


def _without_bytes(envelope: ToolEnvelope) -> Json:
    """The output, without the bytes of a file of HTTP that is an attachment too: the model is shown that."""
    whole: Json = envelope.output
    if not isinstance(whole, dict):
        return whole
    output = cast("JsonObject", whole)
    text = output.get("base64")
    if not isinstance(text, str) or _digest_of(text) not in {kept.digest for kept in envelope.attachments}:
        return output
    return {**output, "base64": None}


def _digest_of(text: str) -> str | None:
    """The digest of bytes that are written as base64; null if they are not."""
    try:
        return digest(b64decode(text))
    except ValueError:
        return None


def files_for_model(envelope: ToolEnvelope) -> tuple[FilePart, ...]:
    """The images and files of a call's outcome that a model may be shown.

    They are what the tool returned as files: a whole output that was cut, and a whole table, are not among them, and
    neither is a long text.
    """
    if envelope.error is not None:
        return ()
    found = (file_of(kept) for kept in envelope.attachments if _is_for_models(kept))
    return tuple(file for file in found if file is not None)


def _is_for_models(kept: Attachment) -> bool:
    match input_of(kept.content_type or ""):
        case None:
            return False
        case "text":
            return kept.kind == "file" and (kept.bytes or 0) <= _LONGEST_FILE
        case _:
            return True


def calls_in_short(done: Sequence[ToolEnvelope]) -> list[Json]:
    """What a run that was ended early has: its calls with their results in short."""
    return [
        {
            "tool": found.name,
            "status": found.status,
            "output": preview(found.output, 500) if found.ok else None,
            "error": found.error.message if found.error else None,
        }
        for found in done
    ]


def _dump(value: Json) -> str:
    return orjson.dumps(value).decode()


MOST_CHARACTERS: Final = 1_000_000
"""Of the arguments of one call."""


class Calls(NamedTuple):
    """An answer with calls."""

    message: Message
    """As it goes back to the model."""
    made: Mapping[str, ToolCall]
    """By position, in the model's order."""
    refused: Mapping[str, ToolError]
    """Why some of them are not even judged, by position."""


def read_calls(message: Message, turn: int, *, parallel: bool) -> Calls:
    """The calls of an answer.

    Args:
        message: The answer.
        turn: Its number, for the positions: `t3.c1`, `t3.c2`…
        parallel: Whether it may hold several calls.
    """
    made: dict[str, ToolCall] = {}
    refused: dict[str, ToolError] = {}
    ids: set[str] = set()
    parts: list[Part] | None = None  # of the message, if a call is not as it was
    for place, part in enumerate(message.parts):
        if type(part) is not ToolCall:
            continue
        number = len(made) + 1
        position, call = f"t{turn}.c{number}", part
        if not call.id or call.id in ids:
            call = msgspec.structs.replace(call, id=f"{call.id or 'call'}_{number}")
        ids.add(call.id)
        if len(call.args) > MOST_CHARACTERS:
            refused[position] = _too_long(call)
            call = msgspec.structs.replace(call, args="{}")
        elif number > 1 and not parallel:
            refused[position] = _one_at_a_time(call)
        made[position] = call
        if call is not part:
            parts = list(message.parts) if parts is None else parts
            parts[place] = call
    if parts is not None:
        message = msgspec.structs.replace(message, parts=tuple(parts))
    return Calls(message, made, refused)


def refusal_key(position: str) -> str:
    """The key under which a run writes down that a call was not even judged."""
    return f"{position}.refused"


def arguments_of(call: ToolCall) -> Json:
    """The model's arguments as JSON; text that is none stays text, for the executor to refuse."""
    try:
        return orjson.loads(call.args)
    except orjson.JSONDecodeError:
        return call.args if call.args.strip() else {}


def _too_long(call: ToolCall) -> ToolError:
    message = f"the arguments of {call.name!r} have {len(call.args)} characters, and {MOST_CHARACTERS} is the most"
    return error(ErrorCode.VALIDATION_ERROR, Reason.INVALID_ARGUMENTS_JSON, f"{message}; send less at once")


def _one_at_a_time(call: ToolCall) -> ToolError:
    message = f"{call.name!r} was not called: one call at a time is allowed, and this was not the first"
    return error(ErrorCode.POLICY_DENIED, Reason.TOOL_NOT_ALLOWED, f"{message}; call it in the next turn")


MAX_REFUSED_TURNS = 3
"""Turns in a row of which every call was refused; then the run ends with the last refusal."""

_NOT_ITS_OWN = frozenset({Reason.TOOL_NOT_ALLOWED, Reason.TOOL_NOT_FOUND})
_REFUSING = frozenset({ErrorCode.POLICY_DENIED, ErrorCode.VALIDATION_ERROR})
_MOST_NAMES = 40
_ASK = "Use a value that is named here. If none is meant, do not guess: answer with a question and call nothing."


def is_refused(envelope: ToolEnvelope) -> bool:
    """Whether a call was refused before anything ran."""
    return envelope.error is not None and envelope.attempts == 0 and envelope.error.code in _REFUSING


def text_for_model(envelope: ToolEnvelope, *, called: str, offered: Sequence[str]) -> str:
    """What the model gets back from a call.

    Args:
        envelope: Its outcome.
        called: The name that the model called.
        offered: The names that it may call.
    """
    failure = envelope.error
    if failure is None or not is_refused(envelope):
        return result_text(envelope)
    facts = error_for_model(failure)
    if failure.reason in _NOT_ITS_OWN and called not in offered:
        return _refusal_text(facts | _instead(called, offered))
    if failure.code is ErrorCode.VALIDATION_ERROR:
        facts["hint"] = _ASK
    return _refusal_text(facts)


def error_for_model(failure: ToolError) -> JsonObject:
    """What a model is told of an error: its code and its message."""
    return {"error": failure.code.value, "message": failure.message}


def too_many_refusals(model: str, last: ToolError) -> ToolError:
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


def _refusal_text(facts: JsonObject) -> str:
    return orjson.dumps(facts).decode()
