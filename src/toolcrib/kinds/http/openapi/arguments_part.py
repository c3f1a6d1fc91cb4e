"""The flat input of a tool: parameters and body in one object, and how it is taken apart again for the request."""

from dataclasses import dataclass, replace
from typing import Final

from toolcrib.contracts import HttpBody, HttpParameter, JsonSchema, Paging
from toolcrib.core.providers.losses import Losses
from toolcrib.kinds.http.openapi.arguments import given_parameters, http_parameter, parameter_schema
from toolcrib.kinds.http.openapi.bodies import WHOLE, Request, read_request
from toolcrib.kinds.http.openapi.names import argument_names
from toolcrib.kinds.http.openapi.operations.parts import Operation
from toolcrib.kinds.http.openapi.operations.security import Credential
from toolcrib.kinds.http.openapi.read.library import Library
from toolcrib.kinds.http.openapi.schemas.schemas import Schemas

# What the document says of these two is about one page, and would make a caller give a page size and get one page.
_START_DESCRIPTION: Final = "Leave out to read all pages; given, only the page that starts here is read."
_LIMIT_DESCRIPTION: Final = "Stops after so many items. Leave out to get all of them."


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a tool takes, and where each argument goes."""

    properties: dict[str, JsonSchema]
    """Schemas by argument; their references point into `$defs` that are not there yet."""
    required: tuple[str, ...]
    parameters: tuple[HttpParameter, ...]
    body: HttpBody | None
    places: dict[str, str]
    """Where each stands in the document."""
    tokens: tuple[str, ...] = ()
    """Arguments that authentication fills in: they are in `parameters` or `body`, and in none of the others."""

    def named(self, wire_name: str) -> str | None:
        """The argument that is the query parameter or body field of this name, if there is one."""
        for parameter in self.parameters:
            if parameter.place == "query" and parameter.name == wire_name:
                return parameter.argument
        fields = self.body.fields if self.body else {}
        return next((argument for argument, name in fields.items() if name == wire_name), None)

    def schema(self) -> JsonSchema:
        """The object schema of the input."""
        needed: JsonSchema = {"required": list(self.required)} if self.required else {}
        return {"type": "object", "properties": self.properties, **needed, "additionalProperties": False}

    def paged(self, paging: Paging, schemas: Schemas, losses: Losses) -> "Arguments":
        """The same, where nobody has to give start and page size, and neither has a default: absent means all.

        Only a page size that every request needs and that nobody says stays required.
        """
        freed: dict[str, str] = {}
        if paging.start_argument:
            freed[paging.start_argument] = _START_DESCRIPTION
        if paging.limit_argument:
            freed[paging.limit_argument] = _LIMIT_DESCRIPTION
        for name in freed:
            place = self.places[name]
            owner = place.rpartition("/properties/")[0]
            for said in (place, f"{owner}/required") if owner else (place,):
                losses.changed(said, "annotation", f"argument {name}", "said anew: pages are followed")
        properties = {
            name: {**_without_default(schemas.follow(schema)), "description": freed[name]} if name in freed else schema
            for name, schema in self.properties.items()
        }
        needed = paging.limit_argument if paging.page_size is None else None
        required = tuple(name for name in self.required if name not in freed or name == needed)
        return replace(self, properties=properties, required=required)


def read_arguments(
    operation: Operation, library: Library, schemas: Schemas, credentials: frozenset[Credential], tokens: frozenset[str]
) -> Arguments:
    """The arguments of an operation: path, query, header, cookie, then the body.

    Args:
        operation: Its losses take what is left out.
        library: Finds what it refers to.
        schemas: Of requests.
        credentials: What authentication fills in, in the place of a parameter.
        tokens: Names of parameters and fields that authentication fills in with the bearer token.
    """
    parameters = given_parameters(operation, credentials)
    request = read_request(operation, library, schemas)
    fields = request.fields if request else ()
    names = argument_names(
        [(found.place, found.name) for found in parameters] + [(WHOLE, found.name) for found in fields]
    )
    operation.kept[:0] = [f"{found.place} parameter {found.name}" for found in parameters]
    found = [parameter_schema(parameter, operation, schemas) for parameter in parameters]
    found += [field.schema for field in fields]
    places = [parameter.node.place for parameter in parameters] + [field.place for field in fields]
    needed = [parameter.required for parameter in parameters] + [field.required for field in fields]
    wire = [parameter.name for parameter in parameters] + [field.name for field in fields]
    filled = tuple(name for name, known in zip(names, wire, strict=True) if known in tokens)
    for name, place in zip(names, places, strict=True):
        if name in filled:
            operation.losses.changed(place, "annotation", f"argument {name}", "filled in by authentication")
    return Arguments(
        properties={name: schema for name, schema in zip(names, found, strict=True) if name not in filled},
        required=tuple(name for name, required in zip(names, needed, strict=True) if required and name not in filled),
        parameters=tuple(map(http_parameter, parameters, names)),
        body=None if request is None else _http_body(request, names[len(parameters) :]),
        places=dict(zip(names, places, strict=True)),
        tokens=filled,
    )


def _without_default(schema: JsonSchema) -> JsonSchema:
    return {keyword: value for keyword, value in schema.items() if keyword != "default"}


def _http_body(request: Request, names: list[str]) -> HttpBody:
    fields = {name: field.name for name, field in zip(names, request.fields, strict=True)}
    return HttpBody(
        content_type=request.content_type,
        encoding=request.encoding,
        argument=names[0] if request.whole else None,
        fields={} if request.whole else fields,
        encodings=request.encodings,
        required=request.required,
    )
