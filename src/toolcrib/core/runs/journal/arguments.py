"""Whether a call is the one that the journal has: recorded arguments have the tool's defaults filled in."""

from typing import cast

from toolcrib.contracts import Json, JsonObject


def holds(recorded: Json, asked: Json) -> bool:
    """Whether the recorded arguments are those that are asked, up to the defaults that were filled in."""
    if isinstance(recorded, dict) and isinstance(asked, dict):
        known = cast("JsonObject", recorded)
        return all(name in known and holds(known[name], value) for name, value in cast("JsonObject", asked).items())
    if isinstance(recorded, list) and isinstance(asked, list):
        theirs, ours = cast("list[Json]", recorded), cast("list[Json]", asked)
        return len(theirs) == len(ours) and all(map(holds, theirs, ours))
    return recorded == asked
