"""Tools of kind `code`: programs that run in a sandbox.

The sandbox itself is in `toolcrib.infrastructure.sandbox`. Imported by `kinds.table`; other packages import the
modules. Decisions: docs/decisions/0013.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts import ToolDefinition
from toolcrib.core.kinds import KindSpec, Require
from toolcrib.kinds.code.shape import CodeImplementation

if TYPE_CHECKING:
    from toolcrib.core.kinds import ProgramParts
    from toolcrib.core.runs import Program


def _check(definition: ToolDefinition, code: CodeImplementation) -> None:
    from toolcrib.kinds.code.checks import check_code

    check_code(definition, code)


def _complete(definition: ToolDefinition, code: CodeImplementation, require: Require) -> ToolDefinition:
    for reference in code.tools:
        require(reference)
    return definition


def _open_program(parts: "ProgramParts") -> "Program":
    from toolcrib.kinds.code.runtime import Code

    return Code(parts.sandbox, parts.registry)


KIND = KindSpec(CodeImplementation, check=_check, complete=_complete, open_program=_open_program)
