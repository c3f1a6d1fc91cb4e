"""A model's arguments for APIs that demand an object where others take text."""

from typing import Any

import orjson


def as_object(args: str) -> Any:
    """The arguments as an object, spliced in as they were written.

    What is none is shown to the model as the text that it wrote.
    """
    try:
        value = orjson.loads(args or "{}")
    except orjson.JSONDecodeError:
        return {"invalid_json": args}
    return orjson.Fragment(args or "{}") if isinstance(value, dict) else {"not_an_object": value}
