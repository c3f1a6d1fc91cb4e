"""The text of a document as plain JSON under bounds. Reads what it is given; fetches nothing.

JSON and YAML are read, and mappings that somebody else has parsed. The result has text keys, finite numbers and valid
Unicode only. What had to be put right on the way (a key twice, tabs, broken bytes) is a loss.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from datetime import date
from math import isfinite
from typing import Final, cast

import yaml

from toolcrib.contracts import InvalidDefinition, Json, JsonObject
from toolcrib.core.providers.losses import Losses
from toolcrib.kinds.http.openapi.read.limits import Bounds
from toolcrib.kinds.http.openapi.read.pointers import child
from toolcrib.kinds.http.openapi.read.sources import parse_yaml, without_tabs

_BYTE_ORDER_MARK: Final = "\ufeff"
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
_EXACT: Final = 2**53
_MOST_DIGITS: Final = 300


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
    text = source.removeprefix(_BYTE_ORDER_MARK) if isinstance(source, str) else _decoded(source, losses, uri)
    copy = _Copy(bounds, losses, uri)
    parsed = copy.parse_json(text) if text.lstrip()[:1] in {"{", "["} else None
    if parsed is None:
        parsed = _parse_yaml(text, bounds, losses, uri)
    return copy.value(parsed, uri, 0)


def _decoded(data: bytes, losses: Losses, uri: str) -> str:
    encoding = json.detect_encoding(data)
    try:
        return data.decode(encoding).removeprefix(_BYTE_ORDER_MARK)
    except UnicodeDecodeError:
        losses.changed(uri, "syntax", "encoding", f"the text is no {encoding}; what cannot be read is marked")
        return data.decode(encoding, "replace").removeprefix(_BYTE_ORDER_MARK)


def _parse_yaml(text: str, bounds: Bounds, losses: Losses, uri: str) -> Json:
    def repeated(place: str) -> None:
        losses.dropped(uri + place, "duplicate", "key", "stands twice; the last one counts")

    data = _CONTROL.sub("\ufffd", text).encode("utf-8", "replace")
    try:
        return parse_yaml(data, bounds, repeated)
    except yaml.YAMLError as error:
        if b"\t" not in data:
            raise _unreadable(error) from None
    losses.changed(uri, "syntax", "indentation", "tabs were read as two spaces each")
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
        """Objects with keys that stand twice, by identity; held, so that no other object gets their identity."""

    def parse_json(self, text: str) -> Json:
        """The value of a JSON text; null if it is none, for a YAML flow mapping starts with a brace as well."""
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
            self._losses.dropped(child(place, key), "duplicate", "key", "stands twice; the last one counts")
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
