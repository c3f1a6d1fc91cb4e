"""Strict parsing of JSON bodies, and the headers `ETag` and `If-Match` (RFC 9110), which name revisions.

Pydantic's parser refuses NaN, lone surrogates, numbers with thousands of digits and nesting deeper than 200 levels,
and keeps large integers exact.
"""

import json
from collections.abc import Callable, Coroutine, Iterator
from typing import Annotated, Any, TypeAlias

from fastapi import Header, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic_core import from_json
from starlette.exceptions import HTTPException

from toolcrib.contracts import InvalidDefinition, InvalidInput, Json, ToolRevision
from toolcrib.contracts.base.base import infinite_number


class _JsonRequest(Request):
    async def json(self) -> Json:
        body = await self.body()
        try:
            found: Json = from_json(body, allow_inf_nan=False)
        except ValueError as problem:
            raise json.JSONDecodeError(str(problem), "", 0) from problem
        pointer = infinite_number(found)
        if pointer is not None:
            raise json.JSONDecodeError(f"the number at {pointer or 'the top'} is larger than any float", "", 0)
        return found


class JsonRoute(APIRoute):
    """A route whose body, if it has one, is JSON, and which refuses query parameters that it does not have."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The route's handler behind the strict reader."""
        handle = super().get_route_handler()
        known = frozenset(_query_names(self.dependant))
        strict = self.include_in_schema  # others are for browsers, whom authorization servers give what they like

        async def read(received: Request) -> Response:
            request = _JsonRequest(received.scope, received.receive)
            unknown = next((name for name in request.query_params if name not in known), None)
            if strict and unknown is not None:
                has = f"it has: {', '.join(sorted(known))}" if known else "it has none"
                raise InvalidInput(f"there is no query parameter {unknown[:100]!r} here; {has}")
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if self.body_field is not None and kind != "application/json" and await request.body():
                raise HTTPException(415, "send the body as JSON, with the header 'Content-Type: application/json'")
            return await handle(request)

        return read


def _query_names(dependant: Dependant) -> Iterator[str]:
    for parameter in dependant.query_params:
        annotation = parameter.field_info.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from (field.alias or name for name, field in annotation.model_fields.items())
        else:
            yield parameter.alias
    for part in dependant.dependencies:
        yield from _query_names(part)


IfMatch: TypeAlias = Annotated[str | None, Header(description="The ETag of the tool that the change was made to.")]


def name_revision(response: Response, tool: ToolRevision) -> None:
    """Set the `ETag` of a response to its revision."""
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
