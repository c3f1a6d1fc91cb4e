"""The flat input of a tool: parameters and body in one object, and how it is taken apart again for the request."""

from dataclasses import dataclass, replace
from typing import Final

from toolcrib.contracts import CursorPaging, HttpBody, HttpParameter, JsonSchema, ProviderAuth
from toolcrib.providers.openapi.bodies import Body, Field, read_body
from toolcrib.providers.openapi.document import Document
from toolcrib.providers.openapi.names import argument_names
from toolcrib.providers.openapi.operations import Operation
from toolcrib.providers.openapi.parameters import Parameter, read_parameters
from toolcrib.providers.openapi.schemas import Schemas

_BODY: Final = "body"

# What the document says of these two is about one page, and would make a caller give a page size and get one page.
_CURSOR_DESCRIPTION: Final = "Leave out to read all pages; given, only the page that starts here is read."
_LIMIT_DESCRIPTION: Final = "Stops after so many items. Leave out to get all of them."


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a tool takes, and where each argument goes."""

    properties: dict[str, JsonSchema]
    """Schemas by argument; their references point into `$defs` that are not there yet."""
    required: tuple[str, ...]
    parameters: tuple[HttpParameter, ...]
    body: HttpBody | None

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

    def paged(self, paging: CursorPaging, schemas: Schemas) -> "Arguments":
        """The same, where nobody has to give cursor and page size, and neither has a default: absent means all."""
        freed = {paging.cursor_in: _CURSOR_DESCRIPTION}
        if paging.limit_argument:
            freed[paging.limit_argument] = _LIMIT_DESCRIPTION
        properties = {
            name: {**_without_default(schemas.follow(schema)), "description": freed[name]} if name in freed else schema
            for name, schema in self.properties.items()
        }
        return replace(self, properties=properties, required=tuple(name for name in self.required if name not in freed))


def read_arguments(operation: Operation, document: Document, schemas: Schemas, auth: ProviderAuth) -> Arguments:
    """The arguments of an operation: path, query, header, cookie, then the body.

    Raises:
        UnreadableBody: The operation needs a body of a type that is not read.
    """
    parameters = read_parameters(operation, schemas, auth)
    body = read_body(operation, document, schemas)
    fields = _fields(body)
    names = argument_names(
        [(found.place, found.name) for found in parameters] + [(_BODY, found.name) for found in fields]
    )
    given: list[Parameter | Field] = [*parameters, *fields]
    return Arguments(
        properties={name: found.schema for name, found in zip(names, given, strict=True)},
        required=tuple(name for name, found in zip(names, given, strict=True) if found.required),
        parameters=tuple(map(_http_parameter, parameters, names)),
        body=None if body is None else _http_body(body, names[len(parameters) :]),
    )


def _without_default(schema: JsonSchema) -> JsonSchema:
    return {keyword: value for keyword, value in schema.items() if keyword != "default"}


def _fields(body: Body | None) -> tuple[Field, ...]:
    if body is None or body.whole is None:
        return () if body is None else body.fields
    return (Field(_BODY, body.whole, body.required),)


def _http_parameter(found: Parameter, argument: str) -> HttpParameter:
    return HttpParameter(
        name=found.name,
        argument=argument,
        place=found.place,
        style=found.style,
        explode=found.explode,
        required=found.required,
        allow_reserved=found.allow_reserved,
    )


def _http_body(body: Body, names: list[str]) -> HttpBody:
    if body.whole is not None:
        return HttpBody(content_type=body.content_type, argument=names[0], required=body.required)
    fields = {name: field.name for name, field in zip(names, body.fields, strict=True)}
    return HttpBody(content_type=body.content_type, fields=fields, required=body.required)
