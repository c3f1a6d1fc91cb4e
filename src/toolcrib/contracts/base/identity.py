"""Deterministic identities: canonical JSON, content hashes, call ids, cache and idempotency keys.

Canonical JSON is RFC 8785 (JSON Canonicalization Scheme): object keys sorted by UTF-16 code units, numbers in the
shortest form of ECMAScript, no white space. Equal JSON values have equal bytes, on every machine and in every release.

There is one extension: integers that a double cannot represent are outside of the RFC's domain (I-JSON), but common as
64-bit ids and bounds of `int64`. They are written digit by digit, so that different ids have different keys.
"""

import hashlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any, cast

import orjson

from toolcrib.contracts.base.base import Json
from toolcrib.contracts.base.errors import InvalidInput

_MOST_LEVELS = 128
"""Nesting that every JSON reader on the way copes with, a journal event around the value included."""
_HASH_CHARACTERS = 32
_SIMPLE = (str, bool)
"""What orjson writes as the RFC does, whatever the value."""


def canonical(value: Json) -> bytes:
    """Encode a JSON value canonically.

    Args:
        value: JSON with finite numbers, at most 128 levels deep.

    Returns:
        UTF-8 bytes.

    Raises:
        InvalidInput: The value is not JSON: a number is not finite, a key is no string, a string is not valid
            Unicode, a type is foreign, or the nesting is too deep.
    """
    if is_simple(value) or _is_plain(value, _MOST_LEVELS):
        try:
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        except orjson.JSONEncodeError:
            pass  # a lone surrogate; the other path says so
    return "".join(_pieces(value, _MOST_LEVELS)).encode()


def digest(data: bytes) -> str:
    """SHA-256 of the bytes, lower-case hex, 64 characters."""
    return hashlib.sha256(data).hexdigest()


def content_hash(value: Json) -> str:
    """The hash that names a definition's content: `sha256:` and 64 hex characters of its canonical JSON."""
    return "sha256:" + digest(canonical(value))


def call_id(name: str, version: str, arguments: Json, position: str) -> str:
    """The id of one call: hash(name@version, canonical(arguments), position), 32 hex characters.

    Unique inside a run, equal across retries and recovery. For a run that is one call, `RUN_ID/` stands before the
    position, so that its id is unique among runs. An unknown tool has version `""`.
    """
    return hash_call(name, version, canonical(arguments), position)


def hash_call(name: str, version: str, arguments: bytes, position: str) -> str:
    """`call_id` for arguments that are canonical bytes already."""
    head = f"{name}@{version}\n".encode()
    return hashlib.sha256(b"%b%b\n%b" % (head, arguments, position.encode())).hexdigest()[:_HASH_CHARACTERS]


def cache_key(realm: str, credential_scope: str, name: str, content: str, arguments: bytes) -> str:
    """The key under which a result may be reused: never across realms, never across credential scopes.

    Args:
        realm: The tenant.
        credential_scope: Whose credentials the call would use; `""` for none.
        name: The tool's name.
        content: The tool's content hash, so that a changed tool never serves old results.
        arguments: Canonical bytes of the validated arguments.
    """
    parts = (realm, credential_scope, name, content)
    head = b"".join(b"%d:%b" % (len(part), part.encode()) for part in parts)
    return hashlib.sha256(head + arguments).hexdigest()


def idempotency_key(run_id: str, position: str) -> str:
    """The key sent to systems that accept one: run id and position, the same on every attempt."""
    return f"{run_id}/{position}"


_WHOLE = frozenset({str, bool, type(None)})
"""Types of values that orjson always writes canonically."""


def is_simple(value: Json) -> bool:
    """Whether a value is JSON of strings with ASCII names, 64-bit integers, booleans and nulls, and nothing else.

    Most schemas, definitions and arguments are. Such a value can be written and read again by any encoder without a
    change. One level is looked at after the other, and all keys at once.
    """
    level: list[Json] = [value]
    keys: list[Any] = []
    for _ in range(_MOST_LEVELS):
        ahead: list[Json] = []
        for node in level:
            kind = cast("type[object]", type(node))
            if kind is dict:
                keys += node
                ahead += node.values()
            elif kind is list:
                ahead += node
            elif kind not in _WHOLE and not (kind is int and -(2**63) <= node < 2**64):
                return False
        level = [node for node in ahead if type(node) is not str]
        if not level:
            return _are_ascii(keys)
    return False


def _are_ascii(keys: list[Any]) -> bool:
    try:
        return "".join(keys).isascii()
    except TypeError:  # one of them is no string
        return False


def _is_plain(value: Json, levels: int) -> bool:
    """Whether orjson's sorted output is canonical: ASCII keys, 64-bit integers, plain fractions, not too deep."""
    if value is None or isinstance(value, _SIMPLE):
        return True
    if isinstance(value, int):
        return -(2**63) <= value < 2**64
    if isinstance(value, float):
        return 1e-3 < abs(value) < 1e15 and not value.is_integer()  # written alike by both, without an exponent
    return levels > 0 and _holds_plain(value, levels - 1)


def _holds_plain(value: Json, levels: int) -> bool:
    parts: Any = value  # in loops, which cost less than `all` with generators: each object of each call is asked
    if isinstance(value, dict):
        for key in parts:
            if type(key) is not str or not key.isascii():
                return False
        parts = parts.values()
    elif not isinstance(value, list):
        return False
    for part in parts:  # noqa: SIM110 - a loop on purpose, as above
        if type(part) is not str and not _is_plain(part, levels):
            return False
    return True


def _pieces(value: Json, levels: int) -> Iterator[str]:
    if isinstance(value, dict | list | tuple) and not levels:
        msg = f"the JSON is nested more than {_MOST_LEVELS} levels deep; flatten it"
        raise InvalidInput(msg)
    if isinstance(value, dict):
        items = cast("dict[Any, Json]", value)
        yield "{"
        for index, key in enumerate(sorted(_string_keys(items), key=_utf16)):
            yield ("," if index else "") + _text(key) + ":"
            yield from _pieces(items[key], levels - 1)
        yield "}"
    elif isinstance(value, list | tuple):
        yield "["
        for index, item in enumerate(cast("Sequence[Json]", value)):
            if index:
                yield ","
            yield from _pieces(item, levels - 1)
        yield "]"
    else:
        yield _scalar(value)


def _string_keys(value: dict[Any, Json]) -> list[str]:
    keys = [key for key in value if isinstance(key, str)]
    if len(keys) != len(value):
        odd = next(key for key in value if not isinstance(key, str))
        msg = f"object key {odd!r} is not a string; JSON allows only strings"
        raise InvalidInput(msg)
    return keys


def _scalar(value: Json) -> str:
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return _number(value)
    kind = type(value).__name__
    msg = f"a value of type {kind!r} is not JSON; pass objects, arrays, strings, numbers, booleans or null"
    raise InvalidInput(msg)


def _text(value: str) -> str:
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        msg = "a string holds a lone surrogate, which is not valid Unicode; remove it"
        raise InvalidInput(msg) from None


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")


def _number(value: float) -> str:
    """An integer digit by digit, any other number as ECMAScript writes it (RFC 8785, section 3.2.2.3)."""
    if not abs(value) <= sys.float_info.max:
        msg = "a number that is not finite, or beyond 1.8e308, cannot be written in JSON; send it as a string"
        raise InvalidInput(msg)
    if isinstance(value, int):
        return format(value, "d")
    if not value:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = float.__repr__(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    return sign + _place_point(digits.rstrip("0"), point)


def _place_point(digits: str, point: int) -> str:
    """Write 0.DIGITS times ten to the power of `point` as ECMAScript's Number::toString does."""
    count = len(digits)
    if count <= point <= 21:
        return digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    exponent = point - 1
    mantissa = digits if count == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{mantissa}e{'+' if exponent > 0 else '-'}{abs(exponent)}"
