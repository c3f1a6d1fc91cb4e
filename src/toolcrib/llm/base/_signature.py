"""Fields that a provider puts on a tool call beside id, name and arguments, kept in `ToolCall.signature`.

Written as JSON under the name of the origin, because a signature of another provider means nothing.
"""

from typing import Any

import orjson

from toolcrib.llm.base.json_values import obj


def signed(origin: str, fields: dict[str, Any]) -> str | None:
    """The signature that holds these fields, if there are any."""
    return orjson.dumps({origin: fields}).decode() if fields else None


def fields_of(signature: str | None, origin: str) -> dict[str, Any]:
    """The fields in a signature, if it is of this origin."""
    if signature is None:
        return {}
    try:
        return obj(obj(orjson.loads(signature)).get(origin))
    except orjson.JSONDecodeError:
        return {}
