"""Strict parsing of JSON bodies, and the headers `ETag` and `If-Match` (RFC 9110), which name revisions.

Pydantic's parser refuses NaN, lone surrogates, numbers with thousands of digits and nesting deeper than 200 levels,
and keeps large integers exact.
"""

import json
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, TypeAlias, get_type_hints

from fastapi import Header, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.params import Depends
from fastapi.routing import APIRoute, APIRouter
from pydantic import BaseModel
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.routing import compile_path, get_name
from starlette.types import ASGIApp, Receive, Scope, Send

from toolcrib.contracts import InvalidDefinition, InvalidInput, Json, ToolRevision
from toolcrib.contracts.base.base import infinite_number
from toolcrib.contracts.workflows import WorkflowDraft
from toolcrib.interfaces.server.http.idempotency import HEADER, carry_out


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
    """A route whose body, if it has one, is JSON, and which refuses query parameters that it does not have.

    Its parameters, its bodies and their schemas are read from its function when it is first used: by a request, or by
    the OpenAPI document. A server has many routes, and most processes use few.

    Args:
        path: With its parameters in braces.
        endpoint: What answers.
        methods: Of HTTP.
        **options: The others of `APIRoute`.
    """

    refuses_unknown_queries: ClassVar[bool] = True
    takes_idempotency_keys: ClassVar[bool] = True

    def __init__(
        self, path: str, endpoint: Callable[..., Any], *, methods: Sequence[str] | None = None, **options: Any
    ) -> None:
        self.path, self.endpoint, self.name = path, endpoint, options["name"] or get_name(endpoint)
        self.methods = set(methods or ("GET",))
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)
        self._left = options

    def __getattr__(self, name: str) -> Any:
        """What is not there until the route is used."""
        options = self.__dict__.pop("_left", None)
        if options is None:
            msg = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(msg)
        for parameter, kind in get_type_hints(self.endpoint).items():
            if parameter != "return" and isinstance(kind, type) and issubclass(kind, BaseModel):
                kind.model_config["defer_build"] = False  # FastAPI builds the schema of a body at once
        super().__init__(self.path, self.endpoint, methods=self.methods, **options)
        return getattr(self, name)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The route's handler behind the strict reader."""
        handle = super().get_route_handler()
        known = frozenset(_query_names(self.dependant))
        # A route outside of the schema is for browsers, whom authorization servers give what they like.
        strict = self.include_in_schema and self.refuses_unknown_queries

        async def read(received: Request) -> Response:
            request = _JsonRequest(received.scope, received.receive)
            unknown = next((name for name in request.query_params if name not in known), None)
            if strict and unknown is not None:
                has = f"it has: {', '.join(sorted(known))}" if known else "it has none"
                raise InvalidInput(f"there is no query parameter {unknown[:100]!r} here; {has}")
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if self.body_field is not None and kind != "application/json" and await request.body():
                raise HTTPException(415, "send the body as JSON, with the header 'Content-Type: application/json'")
            if self.takes_idempotency_keys and request.method == "POST" and HEADER in request.headers:
                return await carry_out(request, handle)
            return _unless_known(request, await handle(request))

        return read


def _unless_known(request: Request, response: Response) -> Response:
    """The response; 304 without a body where `If-None-Match` names its `ETag` (RFC 9110, section 13.1.2)."""
    tag, known = response.headers.get("etag"), request.headers.get("if-none-match")
    if tag is None or known is None or request.method != "GET" or response.status_code != 200:
        return response
    if known.strip() != "*" and tag not in {each.strip().removeprefix("W/") for each in known.split(",")}:
        return response
    return Response(status_code=304, headers={"ETag": tag})


class ForeignRoute(JsonRoute):
    """A route of another protocol, which has its own way to repeat a request."""

    takes_idempotency_keys = False


class LenientJsonRoute(ForeignRoute):
    """A route for clients of another API, which may send query parameters that mean nothing here."""

    refuses_unknown_queries = False


class Routes(APIRouter):
    """Routes of a subject, which read JSON bodies. They are made once, when an application has them added.

    A router of FastAPI makes each route when it is declared, and again for the application.

    Args:
        prefix: What their paths begin with.
        tags: Their subjects in the OpenAPI document.
        route: How they read requests.
    """

    def __init__(self, prefix: str = "", tags: tuple[str, ...] = (), route: type[JsonRoute] = JsonRoute) -> None:
        super().__init__(prefix=prefix)
        self._tags = tags
        self._route = route
        self._declared: list[tuple[str, Callable[..., Any], dict[str, Any]]] = []

    def add_api_route(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        """Declare a route, as `APIRouter.add_api_route` does; the decorators end here."""
        self._declared.append((path, endpoint, options))

    def add_to(
        self,
        app: APIRouter,
        prefix: str,
        dependency: Depends | None,
        responses: Mapping[int | str, dict[str, Any]] = MappingProxyType({}),
    ) -> None:
        """Make the routes.

        Args:
            app: The application's router.
            prefix: What all paths of the application begin with.
            dependency: What all routes depend on; nothing if null.
            responses: Responses that all routes may give, beside those of `document`.
        """
        for path, endpoint, options in self._declared:
            more: dict[str, Any] = {
                "tags": [*self._tags, *(options.get("tags") or ())],
                "dependencies": [*([] if dependency is None else [dependency]), *(options.get("dependencies") or ())],
                "responses": {**responses, **(options.get("responses") or {})},
                "route_class_override": self._route,
            }
            app.add_api_route(f"{prefix}{self.prefix}{path}", endpoint, **{**options, **more})


class OtherPath:
    """Answers requests to a path of the specifications as those to the path that it has here.

    Args:
        router: Has the routes.
        path: The path that it has here.
    """

    def __init__(self, router: ASGIApp, path: str) -> None:
        self._router = router
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Route the request anew; what follows the path is kept."""
        path = scope.get("root_path", "") + self._path + scope["path_params"].get("rest", "")
        own: Scope = {**scope, "path": path, "raw_path": path.encode(), "path_params": {}}
        await self._router(own, receive, send)


def _query_names(dependant: Dependant) -> Iterator[str]:
    for parameter in dependant.query_params:
        annotation = parameter.field_info.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from (field.alias or name for name, field in annotation.model_fields.items())
        else:
            yield parameter.alias
    for part in dependant.dependencies:
        yield from _query_names(part)


IfMatch: TypeAlias = Annotated[
    str | None, Header(description="The ETag of the revision that the change was made to; 409 if there is a newer one.")
]


def name_revision(response: Response, revised: ToolRevision | WorkflowDraft | int) -> None:
    """Set the `ETag` of a response to its revision."""
    revision = revised if isinstance(revised, int) else revised.revision
    response.headers["ETag"] = f'"{revision}"'


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
        msg = f'the header If-Match is {if_match[:100]!r}; send the ETag as it was read, e.g. "3"'
        raise InvalidInput(msg)
    return int(text)
