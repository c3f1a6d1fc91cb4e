"""An OpenAPI document as plain JSON, with its local references at hand. Reads text; fetches nothing.

JSON and YAML (the safe subset) are read under bounds that no honest document meets: bytes, depth and the number of
values after YAML aliases are expanded. An integer that no double holds exactly becomes the nearest one that does.
`Document.resolve` follows `$ref`s inside the document; a reference that leaves it, or leads nowhere, is `None` for the
caller to report as a loss.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Final, Literal, TypeAlias, cast
from urllib.parse import unquote

import orjson
import yaml

from toolcrib.contracts import InvalidDefinition, Json, JsonObject

MAX_BYTES: Final = 10_000_000
MAX_DEPTH: Final = 150
MAX_VALUES: Final = 2_000_000

Version: TypeAlias = Literal["3.0", "3.1"]

_VERSIONS: Final[tuple[Version, ...]] = ("3.0", "3.1")
_MAX_HOPS: Final = 32


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a known version."""

    root: JsonObject
    version: Version

    def at(self, pointer: str) -> Json:
        """The value behind a `$ref` into this document (`#/components/schemas/Deal`), or `None`."""
        if not pointer.startswith("#/"):
            return None
        value: Json = self.root
        for part in pointer[2:].split("/"):
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict):
                value = cast("JsonObject", value).get(key)
            elif isinstance(value, list) and key.isdecimal() and int(key) < len(cast("list[Json]", value)):
                value = cast("list[Json]", value)[int(key)]
            else:
                return None
        return value

    def resolve(self, value: Json) -> JsonObject | None:
        """The object that `value` is or refers to, through any chain of references; `None` if there is none."""
        for _ in range(_MAX_HOPS):
            if not isinstance(value, dict):
                return None
            found = cast("JsonObject", value)
            reference = found.get("$ref")
            if not isinstance(reference, str):
                return found
            value = self.at(reference)
        return None


def read_document(source: bytes | str | Mapping[str, Json]) -> Document:
    """Read a document from JSON, YAML or an already parsed mapping.

    Raises:
        InvalidDefinition: It is too large, too deep, no JSON or YAML, or no OpenAPI 3.0 or 3.1 document.
    """
    parsed = source if isinstance(source, Mapping) else _parse(source)
    root = _Plain().value(parsed, 0)
    if not isinstance(root, dict):
        raise InvalidDefinition(f"an OpenAPI document is an object, found {type(root).__name__}")
    document = cast("JsonObject", root)
    written = str(document.get("openapi", ""))
    for version in _VERSIONS:
        if written == version or written.startswith(f"{version}."):
            return Document(document, version)
    found = f"openapi {written!r}" if written else f"swagger {document.get('swagger')!r}"
    raise InvalidDefinition(f"found {found}; OpenAPI 3.0 and 3.1 are read, so convert the document to one of them")


def _parse(source: bytes | str) -> Json:
    data = source.encode() if isinstance(source, str) else source
    if len(data) > MAX_BYTES:
        raise InvalidDefinition(
            f"the OpenAPI document has {len(data)} bytes, the limit is {MAX_BYTES}; split it or leave operations out"
        )
    try:
        if data.lstrip()[:1] == b"{":
            return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass  # a YAML flow mapping starts with a brace as well
    return _parse_yaml(data)


def _parse_yaml(data: bytes) -> Json:
    try:
        _check_depth(data)
        return yaml.load(data, Loader=_JsonLoader)  # noqa: S506 - a subclass of the safe loader
    except (yaml.YAMLError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        raise InvalidDefinition(f"the OpenAPI document is neither JSON nor YAML: {reason}") from None


def _check_depth(data: bytes) -> None:
    """Refuse deep nesting before the loader sees it: composing recurses in C, and would end the process."""
    depth = 0
    events = cast("Iterator[object]", yaml.parse(data, Loader=yaml.CSafeLoader))  # pyright: ignore[reportUnknownMemberType] - PyYAML types no streams
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise _too_deep()
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _JsonLoader(yaml.CSafeLoader):
    """YAML's JSON types only: a date stays the text that was written."""


_JsonLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


class _Plain:
    """Copies a parsed value into plain JSON with text keys, counting what YAML aliases expand to."""

    def __init__(self) -> None:
        self._values = 0

    def value(self, value: object, depth: int) -> Json:
        self._values += 1
        if self._values > MAX_VALUES:
            raise InvalidDefinition(
                f"the OpenAPI document expands to more than {MAX_VALUES} values; write it without nested YAML aliases"
            )
        if depth > MAX_DEPTH:
            raise _too_deep()
        if isinstance(value, Mapping):
            entries = cast("Mapping[object, object]", value).items()
            return {_key(key): self.value(member, depth + 1) for key, member in entries}
        if isinstance(value, list | tuple):
            return [self.value(member, depth + 1) for member in cast("list[object]", value)]
        if value is None or isinstance(value, str | bool):
            return value
        if isinstance(value, int | float) and isfinite(value):
            return value if int(float(value)) == value else float(value)
        raise InvalidDefinition(f"the OpenAPI document holds {str(value)[:50]!r}, which JSON cannot say")


def _key(key: object) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)


def _too_deep() -> InvalidDefinition:
    return InvalidDefinition(
        f"the OpenAPI document nests deeper than {MAX_DEPTH} levels; check it for YAML aliases that contain themselves"
    )
