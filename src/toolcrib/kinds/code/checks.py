"""The definition of a code tool, and the checks when it is saved. No code is executed here."""

import ast
import keyword
import warnings
from collections.abc import Sequence
from typing import Any

from toolcrib.contracts import (
    CodeInterpreter,
    CodeLanguage,
    InvalidDefinition,
    Isolation,
    JsonSchema,
    SandboxLimits,
    ToolDefinition,
)
from toolcrib.kinds.code.shape import CodeImplementation


def code_tool(
    name: str,
    source: str,
    *,
    input_schema: JsonSchema | None = None,
    output_schema: JsonSchema | None = None,
    description: str = "",
    tools: Sequence[str] = (),
    language: CodeLanguage = "python",
    interpreter: CodeInterpreter = "any",
    isolation: Isolation = "language",
    limits: SandboxLimits | None = None,
    **fields: Any,
) -> ToolDefinition:
    """Define a tool of a program's text, which runs in a sandbox.

    Args:
        name: The tool's name.
        source: Defines `main`, which is called with the arguments by name and returns JSON.
        input_schema: JSON Schema of the arguments; any object if null.
        output_schema: JSON Schema of what `main` returns; anything if null.
        description: What a model reads.
        tools: Tools that the code may call as functions: `name` or `name@range`.
        language: `python` or `javascript`.
        interpreter: What runs Python; the cheapest that will do if `any`.
        isolation: The weakest isolation that is accepted.
        limits: Quotas.
        **fields: Further fields of `ToolDefinition`. Without `side_effects`, code that calls no tools has none.

    Raises:
        ValidationError: Pydantic's: a field has another type than it should.

    Example:
        count_deals = code_tool(
            "count_deals", "def main(company): return len(search_deals(company=company))", tools=["search_deals"]
        )
        crib.add(count_deals)
    """
    implementation = CodeImplementation(
        language=language,
        interpreter=interpreter,
        source=source,
        tools=tuple(tools),
        isolation=isolation,
        limits=limits or SandboxLimits(),
    )
    fields.setdefault("side_effects", "writes" if tools else "none")
    if input_schema is not None:
        fields["input_schema"] = input_schema
    return ToolDefinition(
        name=name, description=description, output_schema=output_schema, implementation=implementation, **fields
    )


def check_code(definition: ToolDefinition, implementation: CodeImplementation) -> None:
    """Refuse code that could not start.

    Raises:
        InvalidDefinition: Two of its tools would be one function, or it is Python that does not parse or has no `main`.
            JavaScript is not parsed before it is run.
    """
    name = definition.name
    _check_functions(name, implementation)
    if implementation.language == "javascript":
        if implementation.interpreter != "any":
            msg = (
                f"tool {name!r}: interpreter {implementation.interpreter!r} is for Python; leave it away for JavaScript"
            )
            raise InvalidDefinition(msg)
        return
    program = _parse_program(name, implementation.source)
    defined = [item for item in program.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)]
    main = next((item for item in defined if item.name == "main"), None)
    if main is None:
        msg = f"tool {name!r}: its code defines no function `main`; define one that takes the arguments by name"
        raise InvalidDefinition(msg)
    if isinstance(main, ast.AsyncFunctionDef):
        msg = f"tool {name!r}: main is async (line {main.lineno}); write `def main`, tools are called without await"
        raise InvalidDefinition(msg)


def _check_functions(name: str, implementation: CodeImplementation) -> None:
    functions = implementation.functions
    if len(functions) < len(set(implementation.tools)):
        msg = f"tool {name!r}: two of its tools would have one function's name in the code; name each tool once"
        raise InvalidDefinition(f"{msg}, and no two that differ in punctuation only")
    reserved = [function for function in functions if function == "main" or keyword.iskeyword(function)]
    if reserved:
        msg = f"tool {name!r}: a tool cannot be called as function {reserved[0]!r}, which means something else in code"
        raise InvalidDefinition(msg)


def _parse_program(name: str, source: str) -> ast.Module:
    """The program as a tree; it is neither compiled nor run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except SyntaxError as problem:
        msg = f"tool {name!r}: its code is no Python: {problem.msg} (line {problem.lineno})"
        raise InvalidDefinition(msg) from None
    except (ValueError, RecursionError, MemoryError) as problem:
        msg = f"tool {name!r}: its code cannot be parsed: {problem or type(problem).__name__}; write it less nested"
        raise InvalidDefinition(msg) from None
