"""Which revision an answer shows and a change was made to: the headers `ETag` and `If-Match` (RFC 9110)."""

from typing import Annotated, TypeAlias

from fastapi import Header, Response

from toolcrib.contracts import InvalidDefinition, InvalidInput, ToolRevision

IfMatch: TypeAlias = Annotated[str | None, Header(description="The ETag of the tool that the change was made to.")]


def name_revision(response: Response, tool: ToolRevision) -> None:
    """Let the answer's `ETag` name the revision that it shows."""
    response.headers["ETag"] = f'"{tool.revision}"'


def refuse_new_name(current: ToolRevision, name: str) -> None:
    """Refuse a definition that is sent to the path of another.

    Raises:
        InvalidDefinition: It is one.
    """
    if name != current.name:
        msg = f"the definition is named {name!r} and the path {current.name!r}; a definition cannot be renamed"
        raise InvalidDefinition(msg)


def expected_revision(if_match: str | None, otherwise: int | None = None) -> int | None:
    """The revision that `If-Match` names, as `ETag` gave it.

    Args:
        if_match: The header; null without one.
        otherwise: The revision that holds without the header, or with `*`; null for any.

    Raises:
        InvalidInput: It is no revision.
    """
    if if_match is None or if_match.strip() == "*":
        return otherwise
    text = if_match.strip().removeprefix("W/").strip('"')
    if not text.isdecimal():
        msg = f'the header If-Match is {if_match[:100]!r}; send the ETag of the tool as it was read, e.g. "3"'
        raise InvalidInput(msg)
    return int(text)
