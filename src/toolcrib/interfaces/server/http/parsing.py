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

        async def read(received: Request) -> Response:
            request = _JsonRequest(received.scope, received.receive)
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if self.body_field is not None and kind != "application/json" and await request.body():
                raise HTTPException(415, "send the body as JSON, with the header 'Content-Type: application/json'")
            return await handle(request)

        return read
