"""The tool section of a system prompt: TypeScript declarations with JSDoc, how to call, and how to finish.

It is rendered once per set of tools and sorted by name, so that equal sets give equal bytes that providers can cache.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

from toolcrib.llm.base.messages import Tool, ToolSet
from toolcrib.llm.text.examples import examples_of, write_call
from toolcrib.llm.text.functions import FINAL, ToolFunction, functions_of
from toolcrib.llm.text.typescript import Types, to_comment

_LONGEST_RETURN = 400
"""Characters of the type of a result."""
_INTRODUCTION = """\
# Tools

You have these functions:

```ts"""
_RULES = f"""\
/**
 * Ends your work: you are then told the format of the final answer. Call it alone, when you need no further result.
 */
declare function {FINAL}(): void;
```

To call a function, answer with a block of this form and stop:

```tool
return {{example}};
```

- Arguments are literal values: strings, numbers, true, false, null, arrays, objects. No variables, expressions, nested
  calls or templates with ${{{{}}}}.
- Several blocks are possible if no call needs the result of another. The results come with the next message.
- If a block is malformed, you are told where, and you write its calls again.
- When you are done, call `{FINAL}()` alone."""


@dataclass(frozen=True, slots=True)
class Toolkit:
    """A set of tools as a model that writes its calls knows them."""

    prompt: str
    functions: dict[str, ToolFunction]
    """By the names that the model sees."""
    by_tool: dict[str, ToolFunction]
    """By the names of the tools."""

    def find(self, name: str) -> ToolFunction | None:
        """The function that a call means, also by the tool's own name."""
        return self.functions.get(name) or self.by_tool.get(name)

    def closest(self, name: str) -> list[str]:
        """Names that were perhaps meant, the best first."""
        by_fold = {shown.casefold(): shown for shown in (*self.functions, FINAL)}
        return [by_fold[found] for found in get_close_matches(name.casefold(), by_fold, n=3, cutoff=0.5)]


@lru_cache(maxsize=64)
def toolkit_of(tools: ToolSet) -> Toolkit:
    """The functions of a set of tools, and the prompt that declares them."""
    functions = functions_of(tools.tools)
    declared = [line for function in functions.values() for line in _declaration(function)]
    calls = (write_call(function, one.arguments) for function in functions.values() for one in examples_of(function))
    rules = _RULES.format(example=next(calls, f"{FINAL}()"))
    return Toolkit(
        "\n".join((_INTRODUCTION, *declared, rules)),
        functions,
        {function.tool.name: function for function in functions.values()},
    )


def declare(tool: Tool) -> str:
    """The declaration of one tool, with its description as JSDoc; a name that is no identifier is changed."""
    [function] = functions_of([tool]).values()
    return "\n".join(_declaration(function)).rstrip()


def _declaration(function: ToolFunction) -> Iterator[str]:
    """JSDoc and signature of one tool, and an empty line."""
    tool, types = function.tool, function.types
    yield "/**"
    for line in tool.description.splitlines() or [tool.name]:
        yield f" * {to_comment(line)}".rstrip()
    for parameter in function.parameters:
        if note := types.note(parameter.schema):
            yield f" * @param {parameter.shown} {note}"
    for example in examples_of(function):
        about = f"{to_comment(example.scenario)}: " if example.scenario else ""
        yield f" * @example {about}return {_escape_call(write_call(function, example.arguments))};"
    yield " */"
    yield f"declare function {function.shown}({_parameters(function)}): {_return_type(function)};"
    yield ""


def _escape_call(call: str) -> str:
    """A call that can stand in a comment; `*/` can only be inside a string."""
    return call.replace("*/", "*\\/")


def _parameters(function: ToolFunction) -> str:
    if function.is_open:
        return "values?: object"
    types = function.types
    return ", ".join(
        f"{parameter.shown}{'' if parameter.is_required else '?'}: {types.type_of(parameter.schema)}"
        for parameter in function.parameters
    )


def _return_type(function: ToolFunction) -> str:
    schema = function.tool.returns
    found = "any" if schema is None else Types(schema).type_of(schema)
    return found if len(found) <= _LONGEST_RETURN else "object"
