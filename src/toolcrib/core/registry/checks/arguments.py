"""Whether arguments fit a tool, as far as the schema of its input tells."""

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from typing import NamedTuple, cast

from toolcrib.contracts import JsonObject, JsonSchema


class Misfit(NamedTuple):
    """One argument that does not fit a tool, or that is not given."""

    name: str
    problem: str
    instead: str

    def __str__(self) -> str:
        return f"{self.problem}; {self.instead}"


def misfits(names: Collection[str], schema: JsonSchema, tool: str) -> Iterator[Misfit]:
    """What is wrong with giving a tool arguments of these names, as far as its schema tells.

    Args:
        names: Those that are given.
        schema: Of the tool's input.
        tool: Its name.
    """
    declared = cast("JsonObject", schema.get("properties", {}))
    if schema.get("additionalProperties") is False:
        for name in names:
            if name not in declared:
                yield Misfit(name, f"{tool!r} does not take {name!r}", _nearest(name, declared))
    for name in cast("list[str]", schema.get("required", [])):
        property_schema = declared.get(name)
        if name not in names and not (isinstance(property_schema, dict) and "default" in property_schema):
            yield Misfit(name, f"{tool!r} needs {name!r}, which is not given", "add it")


def _nearest(name: str, declared: JsonObject) -> str:
    near = get_close_matches(name, declared, n=3) or sorted(declared)[:10]
    return f"it takes {', '.join(near)}" if near else "it takes no arguments"
