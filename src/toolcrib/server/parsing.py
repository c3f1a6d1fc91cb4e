"""How request bodies are read: as JSON only, strictly, and no deeper than the journal can keep.

The reader is pydantic's: it refuses NaN, lone surrogates, numbers of thousands of digits and nesting of more than 200
levels, and keeps large integers exact.
"""

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.exceptions import HTTPException

from toolcrib.contracts import Json

_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


class _JsonRequest(Request):
    async def json(self) -> Json:
        body = await self.body()
        try:
            return from_json(body, allow_inf_nan=False)
        except ValueError as problem:
            raise json.JSONDecodeError(str(problem), "", 0) from problem


class JsonRoute(APIRoute):
    """A route whose body, if it has one, is JSON."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The route's handler behind the strict reader."""
        handle = super().get_route_handler()

        async def read(request: Request) -> Response:
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if request.method in _WITH_BODY and self.body_field is not None and kind != "application/json":
                raise HTTPException(415, "send the body as JSON, with the header 'Content-Type: application/json'")
            return await handle(_JsonRequest(request.scope, request.receive))

        return read
