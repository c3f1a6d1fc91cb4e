"""Reads the inputs of commands: files, contracts and JSON objects. An invalid input is one error that names it."""

import json
import re
import sys
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, cast, get_args

import typer

if TYPE_CHECKING:
    from collections.abc import Generator

    from toolcrib.contracts import Json, JsonObject, ProviderAuth

_TIME: Final = re.compile(r"([0-9]{1,9})([mhdw])")
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


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


def time_of(text: str, option: str) -> timedelta:
    """A time such as `30m`, `12h`, `30d` or `8w`.

    Raises:
        InvalidInput: It is none.
    """
    from toolcrib.contracts import InvalidInput

    found = _TIME.fullmatch(text)
    if found is None:
        raise InvalidInput(f"{option} {text!r} is not a time; write a number and m, h, d or w, such as {option} 30d")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


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


AUTH_HELP: Final = "Its authentication: 'basic:username=${env:USER},password=${secret:PASSWORD}'."
_AUTH_FORM: Final = "KIND:FIELD=VALUE,FIELD=VALUE, such as 'bearer:token=${env:NAME}', or as a JSON object"


def read_auth(text: str, option: str) -> "ProviderAuth":
    """The authentication of a provider that an option says: `KIND:FIELD=VALUE,…`, or a JSON object.

    A field inside another is written with dots, `login.url=/session`. A field of several values has them with spaces.

    Raises:
        InvalidInput: It is none, or has a secret in place of a reference to one, which is not repeated.
    """
    return to_auth(json_object(text, option) if text.lstrip().startswith("{") else _auth_fields(text, option), option)


def to_auth(content: "JsonObject", option: str) -> "ProviderAuth":
    """The authentication that an option says by its fields; raises as `read_auth`."""
    from pydantic import TypeAdapter, ValidationError

    from toolcrib.contracts import InvalidDefinition, InvalidInput, ProviderAuth, ProviderDefinition
    from toolcrib.core.registry import check_provider

    union, *_ = get_args(ProviderAuth)
    kinds = [each.model_fields["kind"].default for each in get_args(union)]
    if content.get("kind") not in kinds:
        msg = f"{option} is not understood: its kind is not among {', '.join(kinds)}"
        raise InvalidInput(f"{msg}; write it as {_AUTH_FORM}")
    try:
        auth = TypeAdapter[ProviderAuth](ProviderAuth).validate_python(content)
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(f"{option} is not understood: {where} {first['msg']}; write it as {_AUTH_FORM}") from None
    try:
        check_provider(ProviderDefinition(name="x", base_url="https://any.invalid", auth=auth))
    except InvalidDefinition as problem:
        raise InvalidInput(f"{option}: {str(problem).removeprefix(_OF_ANY)}") from None
    return auth


_OF_ANY: Final = "provider 'x': auth: "
_SEVERAL: Final = frozenset({"scopes"})


def _auth_fields(text: str, option: str) -> "JsonObject":
    from toolcrib.contracts import InvalidInput

    kind, _, rest = text.partition(":")
    found: JsonObject = {"kind": kind}
    for part in filter(None, rest.split(",")):
        path, equals, value = part.partition("=")
        if not equals:
            raise InvalidInput(f"{option} is not understood: a part has no '='; write it as {_AUTH_FORM}")
        *outer, name = path.strip().split(".")
        place = found
        for step in outer:
            inner: Json = place.setdefault(step, {})
            if not isinstance(inner, dict):
                raise InvalidInput(f"{option} is not understood: {step!r} is given twice; write it as {_AUTH_FORM}")
            place = cast("JsonObject", inner)
        place[name] = value.split() if name in _SEVERAL else value
    return found
