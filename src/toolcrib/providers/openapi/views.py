"""Parts of an untrusted JSON document under the type that they should have, and empty where they have another one."""

from typing import cast

from toolcrib.contracts import Json, JsonObject


def members(value: Json) -> JsonObject:
    """The value if it is an object."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def entries(value: Json) -> list[Json]:
    """The value if it is an array."""
    return cast("list[Json]", value) if isinstance(value, list) else []


def objects(value: Json) -> list[JsonObject]:
    """The objects of an array."""
    return [cast("JsonObject", entry) for entry in entries(value) if isinstance(entry, dict)]


def texts(value: Json) -> tuple[str, ...]:
    """The strings of an array."""
    return tuple(entry for entry in entries(value) if isinstance(entry, str))
