"""Results as a model needs to see them: whole if small, else their shape and first items with what was left out.

A model that reads five of 237 deals and the number 237 knows enough to report; the journal has the rest.
"""

from collections.abc import Sequence

import orjson

from toolcrib.contracts import Json, JsonObject, ToolEnvelope
from toolcrib.core.runs import clipped, shortened


def preview(value: Json, limit: int = 4000) -> str:
    """The value as JSON text of about `limit` characters at most; lists are shortened before texts."""
    return clipped(_dump(shortened(value, limit)), limit)


def result_text(envelope: ToolEnvelope, limit: int = 20_000) -> str:
    """What the model gets back from a call: the output, also that it is not all of a list, or the error to act on."""
    if envelope.error is not None:
        facts: JsonObject = {"error": envelope.error.code.value, "message": envelope.error.message}
        if envelope.error.retry_after_s is not None:
            facts["retry_after_s"] = envelope.error.retry_after_s
        return _dump(facts)
    if envelope.status == "skipped":
        return _dump({"skipped": True, "reason": "dry run: nothing was written"})
    shown = preview(envelope.output, limit)
    paging = envelope.metadata.get("paging") or {"complete": True}
    notes = [] if paging["complete"] else list(envelope.metadata.get("warnings", ()))
    if envelope.truncated:
        notes.append("this is the beginning of a larger output, the rest of which is not shown; ask for less at once")
    return "\n".join([shown, *notes])


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
