"""The fields of OpenAPI's objects, and how the import treats each. All fields that are not read are reported here.

Readers request the fields that they know. `account` checks all fields of an object, so an unknown field or a field of
a wrong type is always reported.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from toolcrib.contracts import LossKind
from toolcrib.core.providers.imports import Losses
from toolcrib.kinds.http.openapi.read.nodes import Node

_Types: TypeAlias = type | tuple[type, ...]

TEXT: Final = str
FLAG: Final = (bool, str)
"""Text is read as a flag if it says true or false."""
ANY: Final = object
_NAMES: Final[Mapping[_Types, str]] = {str: "text", FLAG: "true or false", list: "an array", dict: "an object"}


@dataclass(frozen=True, slots=True)
class Fields:
    """One kind of object."""

    what: str
    read: Mapping[str, _Types]
    """Fields that a reader deals with, and their types."""
    annotations: frozenset[str] = frozenset()
    """Fields that no call needs."""
    dropped: Mapping[str, tuple[LossKind, str]] = field(default_factory=dict[str, tuple[LossKind, str]])
    """Fields that cannot be kept, and why."""


_DOCS: Final = frozenset({"externalDocs"})
_SHOWN: Final = frozenset({"example", "examples"})
_NO_REQUESTS: Final[tuple[LossKind, str]] = ("incoming", "a tool receives no requests")

OPERATION: Final = Fields(
    "operation",
    {
        "tags": list,
        "summary": TEXT,
        "description": TEXT,
        "operationId": TEXT,
        "parameters": list,
        "requestBody": dict,
        "responses": dict,
        "deprecated": FLAG,
        "security": list,
        "servers": list,
        "consumes": list,
        "produces": list,
        "schemes": list,
    },
    _DOCS,
    {"callbacks": _NO_REQUESTS},
)
PATH_ITEM: Final = Fields(
    "path item",
    {
        "$ref": TEXT,
        "parameters": list,
        "servers": list,
        **dict.fromkeys(("get", "put", "post", "delete", "options", "head", "patch", "trace"), dict),
    },
    frozenset({"summary", "description"}),
)
PARAMETER: Final = Fields(
    "parameter",
    {
        "name": TEXT,
        "in": TEXT,
        "description": TEXT,
        "required": FLAG,
        "deprecated": FLAG,
        "allowEmptyValue": FLAG,
        "style": TEXT,
        "explode": FLAG,
        "allowReserved": FLAG,
        "schema": ANY,
        "content": dict,
    },
    _SHOWN,
)
BODY: Final = Fields("request body", {"description": TEXT, "content": dict, "required": FLAG})
MEDIA_TYPE: Final = Fields("media type", {"schema": ANY, "encoding": dict}, _SHOWN)
ENCODING: Final = Fields(
    "encoding", {"contentType": TEXT, "headers": dict, "style": TEXT, "explode": FLAG, "allowReserved": FLAG}
)
RESPONSE: Final = Fields(
    "response",
    {"description": TEXT, "content": dict, "schema": ANY, "headers": dict},
    _SHOWN,
    {"links": ("incoming", "a link is not a call; the tool that it names is one")},
)
DOCUMENT: Final = Fields(
    "document",
    {
        "openapi": ANY,
        "swagger": ANY,
        "info": dict,
        "servers": list,
        "paths": dict,
        "components": dict,
        "security": list,
        "tags": list,
        "host": TEXT,
        "basePath": TEXT,
        "schemes": list,
        "consumes": list,
        "produces": list,
        "definitions": dict,
        "parameters": dict,
        "responses": dict,
        "securityDefinitions": dict,
    },
    frozenset({"externalDocs", "jsonSchemaDialect", "$schema", "$self"}),
    {"webhooks": _NO_REQUESTS},
)
INFO: Final = Fields(
    "info",
    {"title": TEXT, "version": ANY, "description": TEXT},
    frozenset({"contact", "license", "summary", "termsOfService"}),
)
COMPONENTS: Final = Fields(
    "components",
    {
        **dict.fromkeys(("schemas", "parameters", "responses", "requestBodies", "headers"), dict),
        **dict.fromkeys(("pathItems", "securitySchemes", "mediaTypes"), dict),
    },
    frozenset({"examples"}),
    {"callbacks": _NO_REQUESTS, "links": ("incoming", "a link is not a call; the tool that it names is one")},
)
SERVER: Final = Fields("server", {"url": TEXT, "variables": dict}, frozenset({"description", "name"}))
VARIABLE: Final = Fields("server variable", {"default": ANY, "enum": list, "description": TEXT})
TAG: Final = Fields(
    "tag", {"name": TEXT, "description": TEXT}, frozenset({"externalDocs", "summary", "parent", "kind"})
)


def account(node: Node, fields: Fields, losses: Losses) -> None:
    """Report the members of an object that no reader deals with, or that have a wrong type."""
    for key, member in node.members():
        types = fields.read.get(key)
        if types is not None:
            if not isinstance(member.value, types):
                expected = _NAMES.get(types, "what it should be")
                losses.add_dropped(member.place, "invalid", f"{fields.what} field {key}", f"is not {expected}")
        elif key in fields.annotations:
            losses.add_dropped(member.place, "annotation", key, "not needed for a call")
        elif key in fields.dropped:
            kind, why = fields.dropped[key]
            losses.add_dropped(member.place, kind, key, why)
        elif key.startswith("x-"):
            losses.add_dropped(member.place, "extension", key, "no meaning known")
        else:
            losses.add_dropped(member.place, "invalid", f"{fields.what} field {key}", "OpenAPI has no such field here")
