"""The flat input of a tool: its parameters and body as one object, their schemas, and how a request is made from it.

Also makes the names of tools and arguments: valid for every model provider, unique, and stable when the document
grows.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from toolcrib.contracts import JsonSchema
from toolcrib.core.providers.imports import MAX_NAME, Losses, lean, with_hash
from toolcrib.kinds.http.openapi.operations.operations import PLACES
from toolcrib.kinds.http.openapi.operations.parts import ApiOperation, ApiParameter, is_json, placeholders
from toolcrib.kinds.http.openapi.operations.security import Credential, Security
from toolcrib.kinds.http.openapi.read.documents import Library
from toolcrib.kinds.http.openapi.read.nodes import Node
from toolcrib.kinds.http.openapi.request_bodies import WHOLE, BodyPlan, read_request
from toolcrib.kinds.http.openapi.schemas.schemas import SchemaConverter
from toolcrib.kinds.http.shape import HttpBody, HttpParameter, Paging

_ILLEGAL_IN_TOOL: Final = re.compile(r"[_-]*[^A-Za-z0-9_-][^A-Za-z0-9]*")
_ILLEGAL_IN_ARGUMENT: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")


def tool_names(operations: Sequence[ApiOperation], known: Mapping[str, str]) -> list[str]:
    """One name per operation, `[A-Za-z][A-Za-z0-9_-]{0,63}`.

    It is the operationId, made legal; without one, method and path. So nothing but the operation itself decides, except
    where several come to the same name: the one whose operationId is that very name keeps it, else the first by path
    and method, whatever the order of the document; the others get a hash of their method and path. A name that an
    operation has had in an earlier import it keeps in any case.

    Args:
        operations: All of a document.
        known: Names of an earlier import by `GET /path`.
    """
    claims: defaultdict[str, list[tuple[bool, bool, str, str, str]]] = defaultdict(list)
    wanted = [_tool_name(operation) for operation in operations]
    for name, operation in zip(wanted, operations, strict=True):
        kept = known.get(operation.key) == name
        claims[name].append((not kept, operation.operation_id != name, *_rank(operation)))
    best = {name: min(claimed) for name, claimed in claims.items()}
    names_in_use = set(known.values())
    names: list[str] = []
    for name, operation in zip(wanted, operations, strict=True):
        is_new, _, *first = best[name]
        owns = tuple(first) == _rank(operation) and (name not in names_in_use or not is_new)
        names.append(known.get(operation.key) or (name if owns else with_hash(name, operation.key)))
    return names


def _rank(operation: ApiOperation) -> tuple[str, str, str]:
    return operation.path, operation.method, operation.fragment


def argument_names(wanted: Sequence[tuple[str, str]]) -> list[str]:
    """One argument name per (place, name on the wire), in order of precedence.

    The first of several equal names keeps it; the others get their place as a suffix: `id`, `id_query`, `id_body`.
    """
    stems = [_legal(_ILLEGAL_IN_ARGUMENT, name) or place for place, name in wanted]
    firsts = {stem: index for index, stem in reversed(list(enumerate(stems)))}
    uses = Counter(firsts.keys())
    names: list[str] = []
    for index, (stem, (place, _)) in enumerate(zip(stems, wanted, strict=True)):
        name = stem if firsts[stem] == index else f"{stem[: MAX_NAME - 10]}_{place}"
        if name != stem or firsts[stem] != index:
            uses[name] += 1
            if uses[name] > 1:
                name = f"{name}_{uses[name]}"
        names.append(name)
    return names


def _tool_name(operation: ApiOperation) -> str:
    path = f"{operation.path}/{operation.fragment}" if operation.fragment else operation.path
    written = operation.operation_id or operation.method.lower() + _PLACEHOLDER.sub(r"by_\1", path)
    name = _ILLEGAL_IN_TOOL.sub("_", written).strip("_-")
    if not name[:1].isalpha():
        name = f"{operation.method.lower()}_{name}".rstrip("_")
    return name if len(name) <= MAX_NAME else with_hash(name, written)


def _legal(illegal: re.Pattern[str], name: str) -> str:
    return illegal.sub("_", name).strip("_")[:MAX_NAME]


KEY_HEADER: Final = "Idempotency-Key"
"""The header that takes a call's key (draft-ietf-httpapi-idempotency-key-header). It is no argument."""

_NEGOTIATED: Final = frozenset({"accept", "authorization", "content-type"})
"""Header parameters that the specification says to ignore."""
_FRAMING: Final = frozenset({"host", "content-length", "transfer-encoding"})
"""Headers that follow from the URL and the body."""
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""Names that a header can have (RFC 9110, section 5.6.2)."""


def takes_key(operation: ApiOperation) -> bool:
    """Whether the operation declares the header that makes repeating it safe."""
    return any(_is_header(parameter, KEY_HEADER) for parameter in operation.parameters)


def given_parameters(
    operation: ApiOperation, credentials: frozenset[Credential], unsent: frozenset[Credential]
) -> list[ApiParameter]:
    """The operation's parameters by place, as the caller gives them: without credentials, key and content types.

    Args:
        operation: Its losses take the parameters that are left out.
        credentials: What authentication fills in.
        unsent: Credentials that no call sends, which are reported already.
    """
    names = placeholders(operation.path)
    for parameter in operation.parameters:
        if parameter.place == "path" and not parameter.node.flag("required"):
            place = parameter.node.get("required").place
            operation.losses.add_changed(
                place, "invalid", f"parameter {parameter.name}", "required: it is part of the path"
            )
    found = [
        parameter
        for parameter in operation.parameters
        if credential_of(parameter) not in unsent and _is_given(parameter, operation, credentials, names)
    ]
    declared = {parameter.name for parameter in found if parameter.place == "path"}
    for name in names:
        if name not in declared:
            why = "taken as text: the path names it and nothing declares it"
            operation.losses.add_changed(operation.node.place, "invalid", f"parameter {name}", why)
            found.append(_make_path_parameter(operation, name))
    return sorted(found, key=lambda parameter: PLACES.index(parameter.place))


def parameter_schema(parameter: ApiParameter, operation: ApiOperation, schemas: SchemaConverter) -> JsonSchema:
    """What a parameter's argument may be, with its own description."""
    losses = operation.losses
    if parameter.schema.value is None:
        schema: JsonSchema = {}
        if parameter.place == "path" or parameter.content_type is None:
            losses.add_changed(
                parameter.node.place, "invalid", f"parameter {parameter.name}", "any value: it has no schema"
            )
    elif parameter.content_type is not None and not is_json(parameter.content_type):
        why = f"taken as text of {parameter.content_type}"
        losses.add_changed(parameter.schema.place, "unsupported", f"parameter {parameter.name}", why)
        schema = {"type": "string", "contentMediaType": parameter.content_type}
    else:
        schema = schemas.convert(parameter.schema, losses)
    node = parameter.node
    text = lean(node.object["description"], node.get("description").place, losses) if node.has("description") else ""
    if text and "description" in schema and parameter.schema.place != node.place:
        why = "the parameter's own description stands for it"
        losses.add_dropped(parameter.schema.get("description").place, "text", "description", why)
    flag: JsonSchema = {"deprecated": True} if node.flag("deprecated") else {}
    return {**schema, **flag, **({"description": text} if text else {})}


def http_parameter(parameter: ApiParameter, argument: str) -> HttpParameter:
    """How a parameter's argument travels."""
    return HttpParameter(
        name=parameter.name,
        argument=argument,
        place=parameter.place,
        style=parameter.style,
        explode=parameter.explode,
        required=parameter.required,
        allow_reserved=parameter.allow_reserved,
        allow_empty=parameter.allow_empty,
        content_type=parameter.content_type,
    )


def _is_given(
    parameter: ApiParameter, operation: ApiOperation, credentials: frozenset[Credential], names: tuple[str, ...]
) -> bool:
    what, place, losses = f"parameter {parameter.name}", parameter.node.place, operation.losses
    _, lower = credential_of(parameter)
    if parameter.place == "path" and parameter.name not in names:
        losses.add_dropped(place, "invalid", what, "the path has no place for it")
    elif _is_header(parameter, KEY_HEADER):
        losses.add_changed(place, "annotation", what, "filled in with the key of the call")
    elif (parameter.place, lower) in credentials:
        losses.add_changed(place, "annotation", what, "filled in by authentication")
    elif parameter.place == "header" and lower in _NEGOTIATED:
        losses.add_dropped(place, "annotation", what, "OpenAPI says to ignore header parameters of this name")
    elif parameter.place == "header" and lower in _FRAMING:
        losses.add_dropped(place, "annotation", what, "follows from the URL and the body")
    elif parameter.place == "header" and not _TOKEN.fullmatch(lower):
        losses.add_dropped(place, "invalid", what, "no header can have this name")
    else:
        return True
    return False


def credential_of(parameter: ApiParameter) -> Credential:
    """What a parameter would be as a credential."""
    return parameter.place, parameter.name.lower() if parameter.place == "header" else parameter.name


def _make_path_parameter(operation: ApiOperation, name: str) -> ApiParameter:
    schema = Node({"type": "string"}, operation.node.place, operation.node.base)
    node = Node(None, operation.node.place, operation.node.base)
    return ApiParameter(node, name, "path", schema, "simple", explode=False, required=True)


def _is_header(parameter: ApiParameter, name: str) -> bool:
    return parameter.place == "header" and parameter.name.lower() == name.lower()


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
    """Position of each in the document."""
    tokens: tuple[str, ...] = ()
    """Arguments that authentication fills in: they are in `parameters` or `body`, and in none of the others."""

    def find_argument(self, wire_name: str) -> str | None:
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

    def with_paging(self, paging: Paging, schemas: SchemaConverter, losses: Losses) -> "Arguments":
        """The same, with start and page size optional and without defaults: without them, all pages are read.

        Only a page size that every request needs and that has no value stays required.
        """
        freed: dict[str, str] = {}
        if paging.start_argument:
            freed[paging.start_argument] = _START_DESCRIPTION
        if paging.limit_argument:
            freed[paging.limit_argument] = _LIMIT_DESCRIPTION
        for name in freed:
            place = self.places[name]
            owner = place.rpartition("/properties/")[0]
            for pointer in (place, f"{owner}/required") if owner else (place,):
                losses.add_changed(pointer, "annotation", f"argument {name}", "rewritten: pages are followed")
        properties = {
            name: {**_without_default(schemas.follow(schema)), "description": freed[name]} if name in freed else schema
            for name, schema in self.properties.items()
        }
        needed = paging.limit_argument if paging.page_size is None else None
        required = tuple(name for name in self.required if name not in freed or name == needed)
        return replace(self, properties=properties, required=required)


def read_arguments(
    operation: ApiOperation,
    library: Library,
    schemas: SchemaConverter,
    security: Security,
    tokens: frozenset[str],
) -> Arguments:
    """The arguments of an operation: path, query, header, cookie, then the body.

    Args:
        operation: Its losses take what is left out.
        library: Finds what it refers to.
        schemas: Of requests.
        security: What authentication fills in, in the place of a parameter, and what no call sends.
        tokens: Names of parameters and fields that authentication fills in with the bearer token.
    """
    credentials = security.credentials()
    parameters = given_parameters(operation, credentials, security.unsent)
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
    first_field = len(parameters)
    filled = tuple(
        name
        for index, (name, known) in enumerate(zip(names, wire, strict=True))
        if known in tokens or (index >= first_field and ("body", known) in credentials)
    )
    for name, place in zip(names, places, strict=True):
        if name in filled:
            operation.losses.add_changed(place, "annotation", f"argument {name}", "filled in by authentication")
    return Arguments(
        properties={name: schema for name, schema in zip(names, found, strict=True) if name not in filled},
        required=tuple(name for name, required in zip(names, needed, strict=True) if required and name not in filled),
        parameters=tuple(map(http_parameter, parameters, names)),
        body=None if request is None else _http_body(request, names[len(parameters) :]),
        places=dict(zip(names, places, strict=True)),
        tokens=tuple(name for name, known in zip(names, wire, strict=True) if known in tokens),
    )


def _without_default(schema: JsonSchema) -> JsonSchema:
    return {keyword: value for keyword, value in schema.items() if keyword != "default"}


def _http_body(request: BodyPlan, names: list[str]) -> HttpBody:
    fields = {name: field.name for name, field in zip(names, request.fields, strict=True)}
    return HttpBody(
        content_type=request.content_type,
        encoding=request.encoding,
        argument=names[0] if request.whole else None,
        fields={} if request.whole else fields,
        encodings=request.encodings,
        required=request.required,
    )
