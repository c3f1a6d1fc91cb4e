"""Tools as functions: the names that a model sees, and the parameters that positional arguments mean.

Required parameters come first, in the order of the schema, as TypeScript requires. The executor validates the
arguments.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from toolcrib.contracts import Json, JsonObject
from toolcrib.llm.base.json_values import arr, obj
from toolcrib.llm.base.messages import Tool
from toolcrib.llm.text.calls import WrittenCall
from toolcrib.llm.text.literals import Malformed, Undefined
from toolcrib.llm.text.typescript import Types, is_identifier

FINAL: Final = "finalResponse"
"""The function by which a model says that it is ready."""


class FunctionParameter(NamedTuple):
    """A parameter of a tool."""

    name: str
    shown: str
    """The same, if it is an identifier."""
    schema: Any
    is_required: bool
    takes_object: bool


class ToolFunction:
    """A tool as a function.

    Args:
        tool: The tool.
        shown: The function's name.
    """

    def __init__(self, tool: Tool, shown: str) -> None:
        self.tool = tool
        self.shown = shown
        self.types = Types(tool.schema)
        schema = self.types.follow_references(tool.schema)
        self.parameters = tuple(_parameters(schema, self.types))
        self.is_open = not self.parameters and schema.get("additionalProperties") is not False
        """Whether the tool does not name its arguments: they are then the members of one object."""

    def arguments(self, call: WrittenCall) -> JsonObject:
        """The arguments of a call by the tool's names for them.

        Raises:
            Malformed: There are too many, or one is given twice.
        """
        positional = list(call.arguments)
        options = self._options(positional)
        if options is not None:
            positional.pop()
        if len(positional) > len(self.parameters):
            most = len(self.parameters)
            msg = f"{self.shown!r} takes at most {most} arguments, found {len(positional)}"
            raise Malformed(msg, call.start)
        names = [parameter.name for parameter in self.parameters]
        given: dict[str, Json | Undefined] = dict(zip(names, positional, strict=False))
        real = {parameter.shown: parameter.name for parameter in self.parameters}
        for shown, value in (*(options or {}).items(), *call.named.items()):
            name = shown if shown in names else real.get(shown, shown)
            if name in given:
                msg = f"{self.shown!r} is given the argument {shown[:40]!r} twice"
                raise Malformed(msg, call.start)
            given[name] = value
        return {name: value for name, value in given.items() if not isinstance(value, Undefined)}

    def _options(self, positional: Sequence[Json | Undefined]) -> JsonObject | None:
        """The members of a last object that stands for arguments by name; null if it is an argument itself."""
        last = positional[-1] if positional else None
        if not isinstance(last, dict):
            return None
        place = len(positional) - 1
        if self.is_open and place == 0:
            return cast("JsonObject", last)
        left = self.parameters[place:]
        known = {name for parameter in left for name in (parameter.name, parameter.shown)}
        if not left or not known.issuperset(cast("JsonObject", last)):
            return cast("JsonObject", last) if left and not left[0].takes_object and place == 0 else None
        if not left[0].takes_object:
            return cast("JsonObject", last)
        missing = [one for one in left if one.is_required and not {one.name, one.shown} & last.keys()]
        return cast("JsonObject", last) if place == 0 and last and not missing else None


def functions_of(tools: Sequence[Tool]) -> dict[str, ToolFunction]:
    """The functions of a set of tools by the names that they have for the model, sorted by them."""
    names_in_use = {FINAL, *(tool.name for tool in tools if is_identifier(tool.name) and tool.name != FINAL)}
    found: dict[str, ToolFunction] = {}
    for tool in sorted(tools, key=lambda tool: tool.name):
        is_free = is_identifier(tool.name) and tool.name != FINAL
        shown = tool.name if is_free else _identifier(tool.name, names_in_use)
        names_in_use.add(shown)
        found[shown] = ToolFunction(tool, shown)
    return dict(sorted(found.items()))


def _parameters(schema: Mapping[str, Any], types: Types) -> Iterator[FunctionParameter]:
    required = arr(schema.get("required"))
    properties = obj(schema.get("properties"))
    names_in_use = {name for name in properties if is_identifier(name)}
    for name in sorted(properties, key=lambda name: name not in required):
        part = properties[name]
        shown = name if is_identifier(name) else _identifier(name, names_in_use)
        names_in_use.add(shown)
        yield FunctionParameter(name, shown, part, name in required, types.takes_object(part))


def _identifier(name: str, names_in_use: set[str]) -> str:
    """A name that can be declared and that no other has."""
    shown = re.sub(r"[^A-Za-z0-9_$]", "_", name) or "_"
    if shown[0].isdigit():
        shown = f"_{shown}"
    while shown in names_in_use or not is_identifier(shown):
        shown += "_"
    return shown
