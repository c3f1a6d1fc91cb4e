"""Results as a model needs to see them: whole if small, else their shape and first items with what was left out.

A model that reads five of 237 deals and the number 237 knows enough to report; the journal has the rest.
"""

from typing import cast

import orjson

from toolcrib.contracts import Json, JsonObject, ToolEnvelope

_LONG = 300


def preview(value: Json, limit: int = 4000) -> str:
    """The value as JSON text of about `limit` characters at most; lists are shortened before texts."""
    text = _dump(value)
    items, length = 50, _LONG
    while len(text) > limit and (items > 1 or length > 20):
        text = _dump(_shortened(value, items, length))
        items, length = max(items // 2, 1), max(length // 2, 20)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def result_text(envelope: ToolEnvelope, limit: int = 20_000) -> str:
    """What the model gets back from a call: the output, or the error to act on."""
    if envelope.error is not None:
        facts: JsonObject = {"error": envelope.error.code.value, "message": envelope.error.message}
        if envelope.error.retry_after_s is not None:
            facts["retry_after_s"] = envelope.error.retry_after_s
        return _dump(facts)
    if envelope.status == "skipped":
        return _dump({"skipped": True, "reason": "dry run: nothing was written"})
    return preview(envelope.output, limit)


def _shortened(value: Json, items: int, length: int) -> Json:
    if isinstance(value, str):
        return value if len(value) <= length else f"{value[:length]}… ({len(value)} characters)"
    if isinstance(value, dict):
        return {key: _shortened(item, items, length) for key, item in cast("JsonObject", value).items()}
    if isinstance(value, list):
        whole = cast("list[Json]", value)
        kept = [_shortened(item, items, length) for item in whole[:items]]
        return [*kept, f"… {len(whole) - items} more of {len(whole)}"] if len(whole) > items else kept
    return value


def _dump(value: Json) -> str:
    return orjson.dumps(value).decode()
