"""Deterministic identities: canonical JSON, content hashes, call ids, cache and idempotency keys.

Canonical is RFC 8785 (JSON Canonicalization Scheme): object keys sorted by UTF-16 code units, numbers in the shortest
form of ECMAScript, no white space. Two equal JSON values have equal bytes, on every machine and in every release.
"""

import hashlib
import math
from collections.abc import Iterator
from typing import Any, cast

import orjson

from toolcrib.contracts._base import Json
from toolcrib.contracts.errors import InvalidInput

_MAX_EXACT_INTEGER = 2**53
_HASH_CHARACTERS = 32


def canonical(value: Json) -> bytes:
    """Encode a JSON value canonically.

    Args:
        value: JSON with finite numbers.

    Returns:
        UTF-8 bytes.

    Raises:
        InvalidInput: The value is not JSON: a number is not finite or not exact, a key is no string, a type is foreign.
    """
    if _is_plain(value):
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return "".join(_pieces(value)).encode("utf-8", "surrogatepass")


def digest(data: bytes) -> str:
    """SHA-256 of the bytes, lower-case hex, 64 characters."""
    return hashlib.sha256(data).hexdigest()


def content_hash(value: Json) -> str:
    """The hash that names a definition's content: `sha256:` and 64 hex characters of its canonical JSON."""
    return "sha256:" + digest(canonical(value))


def call_id(name: str, version: str, arguments: Json, position: str) -> str:
    """The id of one call: hash(name@version, canonical(arguments), position), 32 hex characters.

    Unique inside a run, equal across retries and recovery (001, section 6.1). An unknown tool has version `""`.
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


def _is_plain(value: Json) -> bool:
    """Whether orjson's sorted output is canonical already: ASCII keys, exact integers, no floats."""
    if value is None or isinstance(value, str | bool):
        return True
    if isinstance(value, int):
        return -_MAX_EXACT_INTEGER <= value <= _MAX_EXACT_INTEGER
    if isinstance(value, list):
        return all(map(_is_plain, cast("list[Json]", value)))
    if isinstance(value, dict):
        items = cast("dict[Any, Json]", value)
        return all(type(key) is str and key.isascii() for key in items) and all(map(_is_plain, items.values()))
    return False


def _pieces(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        yield "{"
        for index, key in enumerate(sorted(_string_keys(cast("dict[Any, Json]", value)), key=_utf16)):
            yield ("," if index else "") + _text(key) + ":"
            yield from _pieces(value[key])
        yield "}"
    elif isinstance(value, list | tuple):
        yield "["
        for index, item in enumerate(value):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            if index:
                yield ","
            yield from _pieces(item)
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
    """A number as ECMAScript writes it (RFC 8785, section 3.2.2.3)."""
    if isinstance(value, int) and abs(value) <= _MAX_EXACT_INTEGER:
        return str(value)
    number = float(value)
    if not math.isfinite(number) or (isinstance(value, int) and int(number) != value):
        msg = f"number {value!r} cannot be written exactly in JSON; send it as a string"
        raise InvalidInput(msg)
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    mantissa, _, exponent = f"{abs(number)!r}".partition("e")
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
