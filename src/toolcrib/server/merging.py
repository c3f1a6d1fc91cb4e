"""JSON Merge Patch (RFC 7396): what is null goes, what is given replaces, objects are merged."""

from typing import Any, cast

from toolcrib.contracts import JsonObject


def merged(target: Any, patch: Any) -> Any:
    """The target as the patch makes it."""
    if not isinstance(patch, dict):
        return patch
    changes = cast("JsonObject", patch)
    result: JsonObject = dict(cast("JsonObject", target)) if isinstance(target, dict) else {}
    for name, value in changes.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result
