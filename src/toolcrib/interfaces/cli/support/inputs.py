"""Reads the inputs of commands: files, contracts and JSON objects. An invalid input is one error that names it."""

import json
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import typer

if TYPE_CHECKING:
    from collections.abc import Generator

    from toolcrib.contracts import Json, JsonObject


def json_value(text: str, option: str) -> "Json":
    """The JSON that an option gives.

    Raises:
        typer.BadParameter: It is not JSON.
    """
    from toolcrib.contracts.base.base import infinite_number

    try:
        found = json.loads(text)
    except json.JSONDecodeError as problem:
        raise typer.BadParameter(f"{option} is not JSON: {problem}") from None
    pointer = infinite_number(found)
    if pointer is not None:
        raise typer.BadParameter(f"{option} is not JSON: the number at {pointer or 'the top'} is not finite")
    return found


def json_object(text: str, option: str) -> "JsonObject":
    """The object that an option gives.

    Args:
        text: What was typed.
        option: `--input`.

    Raises:
        typer.BadParameter: It is not JSON, or no object.
    """
    found = json_value(text, option)
    if not isinstance(found, dict):
        raise typer.BadParameter(f"{option} must be one JSON object")
    return cast("JsonObject", found)


if TYPE_CHECKING:
    from toolcrib.contracts import Contract, JsonObject

ContractT = TypeVar("ContractT", bound="Contract")


def text_of(file: Path) -> str:
    """The text of a file, or of stdin if it is named `-`.

    Raises:
        InvalidInput: It cannot be read.
    """
    from toolcrib.contracts import InvalidInput

    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else "it is not text in UTF-8"
        raise InvalidInput(f"{file} cannot be read: {why}; name another file") from problem


def bytes_of(file: Path) -> bytes:
    """The bytes of a file.

    Raises:
        InvalidInput: It cannot be read.
    """
    from toolcrib.contracts import InvalidInput

    try:
        return file.read_bytes()
    except OSError as problem:
        raise InvalidInput(f"{file} cannot be read: {problem.strerror}; name another file") from problem


def require_writable(file: Path) -> None:
    """Refuse a file that cannot be written; what it holds stays.

    Raises:
        InvalidInput: It cannot be written.
    """
    from toolcrib.contracts import InvalidInput

    try:
        file.open("a", encoding="utf-8").close()
    except OSError as problem:
        raise InvalidInput(f"{file} cannot be written: {problem.strerror}; name another file") from problem


def object_in(file: Path) -> "JsonObject":
    """The object in a file of YAML or JSON.

    Raises:
        InvalidInput: It cannot be read, or holds something else.
    """
    import yaml

    from toolcrib.contracts import InvalidInput
    from toolcrib.crib.project.yaml_text import JsonLoader

    name = "standard input" if str(file) == "-" else str(file)
    try:
        content = JsonLoader(text_of(file)).get_single_data()
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)  # the whole text would repeat lines, which may have secrets
        place = name if mark is None else f"{name}:{mark.line + 1}"
        what = getattr(problem, "problem", None) or "it cannot be read"
        raise InvalidInput(f"{place}: not YAML: {what}; correct the line") from None
    if not isinstance(content, dict):
        raise InvalidInput(f"{name} is not a definition; write fields as name: value")
    return cast("JsonObject", content)


@contextmanager
def telling_lines(file: Path) -> "Generator[None]":
    """Report the problems of a definition by the lines of its file.

    Args:
        file: What the definition was read from.

    Raises:
        InvalidDefinition: Each of its problems has `file`, `line`, `path` and `problem`.
    """
    from toolcrib.contracts import InvalidInput
    from toolcrib.crib.project.yaml_text import line_of
    from toolcrib.interfaces.cli.support.failures import problems_in

    try:
        yield
    except InvalidInput as problem:
        if not problem.problems or str(file) == "-":
            raise
        text = text_of(file)
        told = [(line_of(text, each["path"]), each["path"], each["problem"]) for each in problem.problems]
        raise problems_in(str(file), told, str(problem)) from None


def confirm(question: str, *, yes: bool) -> None:
    """Ask whether to proceed.

    Args:
        question: What is asked.
        yes: Whether `--yes` was given: nothing is asked then.

    Raises:
        InvalidInput: There is no terminal, or `--json` was given, which never asks.
        typer.Exit: The answer is no; the status is 1.
    """
    from toolcrib.contracts import InvalidInput
    from toolcrib.interfaces.cli.render.console import JSON_ONLY

    if yes:
        return
    if JSON_ONLY.get():
        raise InvalidInput("the command asks before it proceeds, and --json never asks; add --yes")
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort:
        if sys.stdin.isatty():
            raise
        print(file=sys.stderr)  # after the question
        raise InvalidInput("the command asks before it proceeds, and no terminal is there to ask; add --yes") from None
    if not agreed:
        raise typer.Exit(1)


def to_contract(contract: type[ContractT], content: "JsonObject", what: str) -> ContractT:
    """A contract of what was given.

    Args:
        contract: Its shape.
        content: The fields.
        what: How an error calls it: `tool 'x'`.

    Raises:
        InvalidDefinition: Fields are missing, unknown or not of their type; the message names all.
    """
    from pydantic import ValidationError

    from toolcrib.contracts import InvalidDefinition

    try:
        return contract.model_validate(content)
    except ValidationError as problem:
        told = [
            ": ".join(filter(None, (".".join(map(str, found["loc"])), found["msg"].removeprefix("Value error, "))))
            for found in problem.errors()
        ]
        raise InvalidDefinition(f"{what}: {'; '.join(told)}") from None
