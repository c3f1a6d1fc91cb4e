"""What commands are given to read: files and contracts. What cannot be read is one error that names it."""

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from toolcrib.contracts import Contract, JsonObject

ContractT = TypeVar("ContractT", bound="Contract")


def text_of(file: Path) -> str:
    """The text of a file.

    Raises:
        InvalidInput: It cannot be read.
    """
    from toolcrib.contracts import InvalidInput

    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidInput(f"{file} cannot be read: {problem}") from problem


def validated(contract: type[ContractT], content: "JsonObject", what: str) -> ContractT:
    """A contract of what was given.

    Args:
        contract: Its shape.
        content: The fields.
        what: How an error calls it: `tool 'x'`.

    Raises:
        InvalidDefinition: A field is missing, unknown or not of its type; the message names it.
    """
    from pydantic import ValidationError

    from toolcrib.contracts import InvalidDefinition

    try:
        return contract.model_validate(content)
    except ValidationError as problem:
        found = problem.errors()[0]
        raise InvalidDefinition(f"{what}: {'.'.join(map(str, found['loc']))}: {found['msg']}") from None
