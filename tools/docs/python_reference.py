"""The reference of Python, from signatures and docstrings: what `toolcrib` exports, and the parts of a crib."""

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Final, Unpack, get_args, get_origin, get_type_hints, is_typeddict

from pydantic import BaseModel

import toolcrib
from toolcrib.contracts import Record
from toolcrib.crib.api.acting import ActingCrib
from toolcrib.crib.api.definitions import Definer
from toolcrib.crib.crib import Crib

_SECTIONS: Final = ("Args", "Raises", "Returns", "Yields", "Attributes", "Example", "Examples")
_SECTION: Final = re.compile(rf"^({'|'.join(_SECTIONS)}):\n((?:(?:    .*)?\n)*)", re.MULTILINE)
_ENTRY: Final = re.compile(r"^(\*{0,2}\w[\w.]*)(?: \(.*?\))?: (.*)$", re.DOTALL)
_WIDTH: Final = 88


def page() -> str:
    """The page."""
    lines = [
        "# Python",
        "",
        "What `toolcrib` exports, and what a crib can do. This page is made from the code.",
        "`crib.acting_as(principal)` returns a crib with the same methods for one principal.",
        "The fields of definitions are under [contracts](contracts.md).",
        "",
    ]
    lines += ["## The crib", "", *_class_text(Crib)]
    for owner in (Definer, ActingCrib, Crib):
        for name, function in methods(owner):
            lines += [f"### crib.{name}", "", *_function_text(name, function)]
    for attribute, part in parts():
        lines += [f"## crib.{attribute}", "", *_docstring(inspect.cleandoc(part.__doc__ or ""))]
        for name, function in methods(part):
            lines += [f"### crib.{attribute}.{name}", "", *_function_text(name, function)]
    lines += ["## Exports", ""]
    for name in sorted(toolcrib.__all__):
        if name != "Crib":
            lines += [f"### {name}", "", *_export_text(name, getattr(toolcrib, name))]
    return "\n".join(lines) + "\n"


def parts() -> Iterator[tuple[str, type]]:
    """The attributes of a crib that group its methods, with their classes."""
    for name, value in sorted(vars(ActingCrib).items()):
        if isinstance(value, cached_property) and not name.startswith("_"):
            returned = get_type_hints(value.func)["return"]
            yield name, get_origin(returned) or returned


def methods(owner: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public methods of a class with a docstring, by name."""
    for name, value in sorted(vars(owner).items()):
        function = getattr(value, "__func__", value)
        if inspect.isfunction(function) and (not name.startswith("_") or name == "__call__") and function.__doc__:
            yield name, function


def _export_text(name: str, value: Any) -> list[str]:
    if inspect.isclass(value) and issubclass(value, BaseModel | Record):
        examples = _examples_with(name, inspect.cleandoc(sys.modules[value.__module__].__doc__ or ""))
        return [*_docstring(inspect.cleandoc(value.__doc__ or "")), *examples]
    if inspect.isclass(value):
        text = _class_text(value)
        for method, function in methods(value):
            text += [f"#### {name}.{method}".replace(".__call__", "(…)"), "", *_function_text(method, function)]
        return text
    if callable(value):
        return _function_text(name, value)
    return []


def _examples_with(name: str, docstring: str) -> list[str]:
    found = [match[2] for match in _SECTION.finditer(docstring + "\n") if match[1] == "Example"]
    return [line for block in found if re.search(rf"\b{name}\b", block) for line in _code(textwrap.dedent(block))]


def _class_text(value: type) -> list[str]:
    return _docstring(inspect.cleandoc(value.__doc__ or ""))


def _function_text(name: str, function: Any) -> list[str]:
    lines = _code(signature(name, function))
    lines += _docstring(inspect.cleandoc(function.__doc__ or ""))
    for option, annotation in options_of(function).items():
        lines.append(f"- `{option}`: `{_annotation(annotation)}`")
    return [*lines, ""]


def options_of(function: Any) -> dict[str, Any]:
    """The keywords that a function takes as `**options`, with their types."""
    found: dict[str, Any] = {}
    try:
        hints = get_type_hints(function)
    except (NameError, TypeError):
        return found
    for hint in hints.values():
        if get_origin(hint) is Unpack and is_typeddict(get_args(hint)[0]):
            found |= dict(get_args(hint)[0].__annotations__)
    return found


def signature(name: str, function: Any) -> str:
    """A function as it is declared, one parameter per line if it is long."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return f"{name}(…)"
    kept = [each for each in found.parameters.values() if each.name not in {"self", "cls"}]
    pieces = list(_pieces(kept))
    before = "await " if inspect.iscoroutinefunction(inspect.unwrap(function)) else ""
    after = "" if found.return_annotation is inspect.Signature.empty else f" -> {_annotation(found.return_annotation)}"
    head = f"{before}{name.removeprefix('__call__')}("
    one = f"{head}{', '.join(pieces)}){after}"
    return one if len(one) <= _WIDTH else f"{head}\n" + "".join(f"    {piece},\n" for piece in pieces) + f"){after}"


def _pieces(parameters: list[inspect.Parameter]) -> Iterator[str]:
    keyword_only = False
    for each in parameters:
        if each.kind is each.VAR_POSITIONAL:
            keyword_only = True
        if each.kind is each.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            yield "*"
        stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        text = f"{stars}{each.name}"
        if each.annotation is not each.empty:
            text += f": {_annotation(each.annotation)}"
        if each.default is not each.empty:
            text += f" = {_default(each.default)}"
        yield text


def _default(value: Any) -> str:
    text = repr(value)
    return text if " at 0x" not in text and len(text) <= 40 else "…"


def _annotation(value: Any) -> str:
    text = value if isinstance(value, str) else inspect.formatannotation(value)
    text = re.sub(r"ForwardRef\('([^']*)'(?:, module='[^']*')?\)", r"\1", text)
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z_])", "", text)


def _docstring(text: str) -> list[str]:
    """A docstring as Markdown: its sections become lists and code."""
    lines: list[str] = []
    place = 0
    text += "\n"
    for match in _SECTION.finditer(text):
        lines += [text[place : match.start()].strip(), ""]
        lines += _section_lines(match[1], textwrap.dedent(match[2]).strip("\n"))
        place = match.end()
    return [*lines, text[place:].strip(), ""]


def _section_lines(title: str, body: str) -> list[str]:
    if title.startswith("Example"):
        return _code(body)
    lines = [f"**{title}**", ""]
    for entry in re.split(r"\n(?=\S)", body):
        joined = " ".join(entry.split())
        match = _ENTRY.match(joined)
        lines.append(f"- `{match[1]}`: {match[2]}" if match else f"- {joined}")
    return [*lines, ""]


def _code(text: str) -> list[str]:
    return ["```python", *text.strip("\n").splitlines(), "```", ""]
