"""Parses the text of a document, JSON or YAML, to plain JSON within limits. Fetches nothing.

The result has string keys, finite numbers and valid Unicode. Repairs (duplicate keys, tabs, broken bytes) are
reported.

YAML follows the core schema of YAML 1.2: `yes`, `no` and dates are text. Merge keys (`<<`) are supported. An alias
shares its value, so alias bombs use no memory; they are refused by their expanded size. Recursion and tags beyond the
JSON types are refused.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from math import isfinite
from typing import Any, Final, cast

import yaml

from toolcrib.contracts import InvalidDefinition, Json, JsonObject
from toolcrib.core.providers.imports import Losses
from toolcrib.kinds.http.openapi.read.nodes import child
from toolcrib.kinds.http.shape import Bounds

_MERGE: Final = "<<"
_STR: Final = "tag:yaml.org,2002:str"
_INT: Final = re.compile(r"[-+]?[0-9]+")
_BASED: Final = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_CONSTANTS: Final[dict[str, Json]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMERIC: Final = frozenset("+-.0123456789")
_LEADING_TABS: Final = re.compile(rb"^[ \t]*\t[ \t]*", re.MULTILINE)
_MOST_DIGITS: Final = 300


@dataclass(slots=True)
class _Open:
    """A collection that is being read."""

    value: JsonObject | list[Json]
    anchor: str | None
    place: str
    key: str | None = None
    merged: list[JsonObject] = field(default_factory=list[JsonObject])
    size: int = 1


def parse_yaml(data: bytes, bounds: Bounds, repeated: Callable[[str], None]) -> Json:
    """Read the first document of a YAML text.

    Args:
        data: UTF-8 or UTF-16 text.
        bounds: Limits of depth and of values, aliases expanded.
        repeated: Takes the JSON pointer of each key that occurs twice; the last one counts.

    Raises:
        InvalidDefinition: It exceeds a bound.
        yaml.YAMLError: It is no YAML.
    """
    return _Builder(bounds, repeated).build(_events(data))


def without_tabs(data: bytes) -> bytes:
    """The text with tabs in its indentation, which YAML forbids, as two spaces each."""
    return _LEADING_TABS.sub(lambda match: match[0].replace(b"\t", b"  "), data)


def _events(data: bytes) -> Iterator[yaml.Event]:
    return cast("Iterator[yaml.Event]", yaml.parse(data, Loader=yaml.CSafeLoader))  # pyright: ignore[reportUnknownMemberType] - PyYAML types no streams


class _Builder:
    def __init__(self, bounds: Bounds, repeated: Callable[[str], None]) -> None:
        self._bounds = bounds
        self._repeated = repeated
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Json, int]] = {}
        self._root: Json = None
        self._values = 0

    def build(self, events: Iterator[yaml.Event]) -> Json:
        for event in events:
            if isinstance(event, yaml.ScalarEvent):
                self._scalar(event)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._start(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._end()
            elif isinstance(event, yaml.AliasEvent):
                self._alias(event)
            elif isinstance(event, yaml.DocumentEndEvent):
                break
        return self._root

    def _scalar(self, event: Any) -> None:
        text: str = event.value
        top = self._open[-1] if self._open else None
        if top is not None and top.key is None and isinstance(top.value, dict):
            top.key = text
            self._name(event.anchor, text, 1)
            return
        plain = event.implicit[0] if event.tag is None else event.tag != _STR and event.implicit[0]
        value = _plain(text) if plain or (event.tag is not None and event.tag != _STR) else text
        if event.tag is not None and not event.tag.startswith("tag:yaml.org,2002:") and event.tag != "!":
            raise yaml.YAMLError(f"tag {event.tag!r} is not a type of JSON")
        self._name(event.anchor, value, 1)
        self._put(value, 1)

    def _start(self, event: Any) -> None:
        if event.tag is not None and event.tag not in {"tag:yaml.org,2002:map", "tag:yaml.org,2002:seq", "!"}:
            raise yaml.YAMLError(f"tag {event.tag!r} is not a type of JSON")
        self._bounds.check_depth(len(self._open) + 1)
        place = ""
        if self._open:
            top = self._open[-1]
            if isinstance(top.value, dict) and top.key is None:
                raise yaml.YAMLError(f"a key at {top.place or '/'} is a collection, and JSON keys are text")
            place = child(top.place, top.key if isinstance(top.value, dict) else str(len(top.value)))
        self._open.append(_Open({} if isinstance(event, yaml.MappingStartEvent) else [], event.anchor, place))

    def _end(self) -> None:
        done = self._open.pop()
        value = done.value
        if isinstance(value, dict):
            for merged in done.merged:
                for key in merged.keys() - value.keys():
                    value[key] = merged[key]
        self._name(done.anchor, value, done.size)
        self._put(value, done.size)

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            if any(found.anchor == event.anchor for found in self._open):
                raise InvalidDefinition(
                    f"the OpenAPI document nests without end: YAML alias *{event.anchor} stands inside of what it names"
                )
            raise yaml.YAMLError(f"alias *{event.anchor} names nothing")
        value, size = self._anchors[event.anchor]
        top = self._open[-1] if self._open else None
        if top is not None and isinstance(top.value, dict) and top.key is None:
            if not isinstance(value, str):
                raise yaml.YAMLError(f"a key at {top.place or '/'} is no text")
            top.key = value
            return
        self._values += size
        self._put(value, size)

    def _name(self, anchor: str | None, value: Json, size: int) -> None:
        self._values += 1
        self._bounds.check_values(self._values)
        if anchor is not None:
            self._anchors[anchor] = (value, size)

    def _put(self, value: Json, size: int) -> None:
        if not self._open:
            self._root = value
            return
        top = self._open[-1]
        top.size += size
        self._bounds.check_values(top.size)
        if isinstance(top.value, list):
            top.value.append(value)
            return
        key, top.key = cast("str", top.key), None
        if key == _MERGE and isinstance(value, dict | list):
            parts: list[Json] = cast("list[Json]", value) if isinstance(value, list) else [value]
            top.merged.extend(cast("JsonObject", part) for part in parts if isinstance(part, dict))
            return
        if key in top.value:
            self._repeated(child(top.place, key))
        top.value[key] = value


def _plain(text: str) -> Json:
    """A plain scalar under the core schema; what JSON cannot say (`.nan`) stays text."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _NUMERIC or len(text) > _MOST_DIGITS:
        return text
    if _INT.fullmatch(text):
        return int(text)
    if _BASED.fullmatch(text):
        return int(text, 0)
    return float(text) if _FLOAT.fullmatch(text) and isfinite(float(text)) else text


_BYTE_ORDER_MARK: Final = "\ufeff"
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
_EXACT: Final = 2**53


def read_source(source: bytes | str | Mapping[str, Json], bounds: Bounds, losses: Losses, uri: str = "") -> Json:
    """Plain JSON of a document.

    Args:
        source: JSON or YAML text, or what it parses to.
        bounds: How large it may be.
        losses: Takes what had to be put right.
        uri: Stands before the places of those losses.

    Raises:
        InvalidDefinition: It exceeds a bound, or is neither JSON nor YAML.
    """
    if isinstance(source, Mapping):
        return _Copy(bounds, losses, uri).value(source, uri, 0)
    bounds.check_bytes(len(source))
    text = source.removeprefix(_BYTE_ORDER_MARK) if isinstance(source, str) else _decode(source, losses, uri)
    copy = _Copy(bounds, losses, uri)
    parsed = copy.parse_json(text) if text.lstrip()[:1] in {"{", "["} else None
    if parsed is None:
        parsed = _parse_yaml(text, bounds, losses, uri)
    return copy.value(parsed, uri, 0)


def _decode(data: bytes, losses: Losses, uri: str) -> str:
    encoding = json.detect_encoding(data)
    try:
        return data.decode(encoding).removeprefix(_BYTE_ORDER_MARK)
    except UnicodeDecodeError:
        losses.add_changed(uri, "syntax", "encoding", f"the text is no {encoding}; what cannot be read is marked")
        return data.decode(encoding, "replace").removeprefix(_BYTE_ORDER_MARK)


def _parse_yaml(text: str, bounds: Bounds, losses: Losses, uri: str) -> Json:
    def repeated(place: str) -> None:
        losses.add_dropped(uri + place, "duplicate", "key", "stands twice; the last one counts")

    data = _CONTROL.sub("\ufffd", text).encode("utf-8", "replace")
    try:
        return parse_yaml(data, bounds, repeated)
    except yaml.YAMLError as error:
        if b"\t" not in data:
            raise _unreadable(error) from None
    losses.add_changed(uri, "syntax", "indentation", "tabs were read as two spaces each")
    try:
        return parse_yaml(without_tabs(data), bounds, repeated)
    except yaml.YAMLError as error:
        raise _unreadable(error) from None


def _unreadable(error: yaml.YAMLError) -> InvalidDefinition:
    reason = " ".join(str(error).split())[:300]
    return InvalidDefinition(f"the OpenAPI document is neither JSON nor YAML: {reason}")


class _Copy:
    """Copies parsed values into plain JSON, counting them."""

    def __init__(self, bounds: Bounds, losses: Losses, uri: str) -> None:
        self._bounds = bounds
        self._losses = losses
        self._uri = uri
        self._count = 0
        self._repeated: dict[int, tuple[JsonObject, list[str]]] = {}
        """Objects with duplicate keys, by identity; kept, so that no other object gets the same identity."""

    def parse_json(self, text: str) -> Json:
        """The value of a JSON text; null if it is not JSON, because a YAML flow mapping also starts with a brace."""
        try:
            return json.loads(
                text, object_pairs_hook=self._object, parse_int=_integer, parse_constant=str, strict=False
            )
        except RecursionError:
            self._bounds.check_depth(self._bounds.max_depth + 1)
        except ValueError:
            self._repeated.clear()
        return None

    def _object(self, pairs: list[tuple[str, Json]]) -> JsonObject:
        found = dict(pairs)
        if len(found) != len(pairs):
            times = Counter(key for key, _ in pairs)
            self._repeated[id(found)] = found, [key for key in found if times[key] > 1]
        return found

    def value(self, value: object, place: str, depth: int) -> Json:
        """A plain copy."""
        self._count += 1
        self._bounds.check_values(self._count)
        if isinstance(value, str):
            return value if value.isascii() else _unicode(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, Mapping):
            return self._members(cast("Mapping[object, object]", value), place, depth + 1)
        if isinstance(value, list | tuple):
            self._bounds.check_depth(depth + 1)
            entries = cast("list[object]", value)
            return [self.value(entry, child(place, index), depth + 1) for index, entry in enumerate(entries)]
        if isinstance(value, int | float):
            return _number(value)
        if isinstance(value, date):
            return value.isoformat()
        raise InvalidDefinition(
            f"the OpenAPI document holds a {type(value).__name__} at {place or '/'}, which JSON cannot say"
        )

    def _members(self, value: Mapping[object, object], place: str, depth: int) -> JsonObject:
        self._bounds.check_depth(depth)
        _, repeated = self._repeated.get(id(value), (None, ()))
        for key in repeated:
            self._losses.add_dropped(child(place, key), "duplicate", "key", "stands twice; the last one counts")
        found: JsonObject = {}
        for written, member in value.items():
            key = _key(written)
            found[key] = self.value(member, child(place, key), depth)
        return found


def _key(key: object) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    text = key if isinstance(key, str) else str(key)
    return text if text.isascii() else _unicode(text)


def _integer(digits: str) -> Json:
    return int(digits) if len(digits) < _MOST_DIGITS else digits


def _number(value: float) -> Json:
    """An integer that no double holds exactly becomes the nearest one that does; what is not finite becomes text."""
    if isinstance(value, int):
        return value if abs(value) <= _EXACT else _large(value)
    return value if isfinite(value) else str(value)


def _large(value: int) -> Json:
    try:
        near = float(value)
    except OverflowError:
        return str(value)
    return value if int(near) == value and abs(value) < 2**63 else near


def _unicode(text: str) -> str:
    """The text without lone surrogates, which no encoding can write."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
