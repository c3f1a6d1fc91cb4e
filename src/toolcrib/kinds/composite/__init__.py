"""Tools of kind `composite`: rules choose one of several operations, without a model.

Imported by `kinds.table`; other packages import the modules.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts import ToolDefinition
from toolcrib.core.kinds import KindSpec, Require
from toolcrib.kinds.composite.shape import CompositeImplementation

if TYPE_CHECKING:
    from toolcrib.core.kinds import ProgramParts
    from toolcrib.core.runs import Program


def _check(definition: ToolDefinition, composite: CompositeImplementation) -> None:
    from toolcrib.kinds.composite.checks import check_composite

    check_composite(definition, composite)


def _complete(definition: ToolDefinition, composite: CompositeImplementation, require: Require) -> ToolDefinition:
    from toolcrib.kinds.composite.checks import check_operations

    return check_operations(definition, composite, {route.tool: require(route.tool) for route in composite.routes})


def _open_program(parts: "ProgramParts") -> "Program":
    from toolcrib.kinds.composite.runtime import Composite

    return Composite(parts.registry)


KIND = KindSpec(CompositeImplementation, check=_check, complete=_complete, open_program=_open_program)
