"""Envelope encryption: data keys encrypt values, and master keys, which are never in the database, encrypt data keys.

Each value is encrypted with AES-256-GCM under a fresh data key, and the data key under the newest master key (NIST SP
800-38D). Location and version of the value are associated data, so a row that is moved or rolled back cannot be
decrypted. A new master key encrypts the data keys again, not the values. In `TOOLCRIB_MASTER_KEYS="k2:…,k1:…"` the
first key encrypts and all keys decrypt. Python cannot wipe memory: a decrypted value lives as long as its call.
"""

import base64
import binascii
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Self, TypeAlias

import msgspec
import orjson

from toolcrib.contracts import InvalidSettings
from toolcrib.contracts.base.errors import missing_extra
from toolcrib.infrastructure.store import SealedKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

VARIABLE: Final = "TOOLCRIB_MASTER_KEYS"

_Context: TypeAlias = tuple[str | int, ...]

_ENTRY: Final = re.compile(r"([A-Za-z0-9_.-]{1,32}):([A-Za-z0-9+/_-]+={0,2})")
_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_FORMAT: Final = 1
_SHORTEST: Final = _NONCE_BYTES + 16
"""Bytes of an encrypted empty text: its nonce and its tag."""
_HOW: Final = f"set {VARIABLE} to what `toolcrib secret new-key` prints, in every process, and keep a copy of it"


class _Sealed(msgspec.Struct, frozen=True):
    """A sealed text, read: what is bytes stands in it in base64."""

    version: Literal[1]
    kid: str
    """Name of the master key."""
    key: bytes
    """The data key, encrypted."""
    data: bytes


_SEALED: Final = msgspec.json.Decoder(_Sealed)


@dataclass(frozen=True, slots=True)
class MasterKeys:
    """The keys that seal data keys, newest first."""

    keys: Mapping[str, bytes] = field(repr=False)

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self | None:
        """The keys of the environment; null if it names none.

        Raises:
            InvalidSettings: An entry is no name with a key of 32 bytes, or a name stands twice.
        """
        text = environment.get(VARIABLE)
        if not text:
            return None
        keys: dict[str, bytes] = {}
        for number, entry in enumerate(text.split(","), 1):
            name, key = _entry(entry.strip(), number)
            if name in keys:
                msg = f"{VARIABLE} has the key {name!r} twice; give each key a name of its own"
                raise InvalidSettings(msg)
            keys[name] = key
        return cls(keys)

    def seal(self, value: str, place: SealedKey, version: int) -> str:
        """The sealed text of a value, which opens at this place and as this version only."""
        key = secrets.token_bytes(_KEY_BYTES)
        return self._write(key, _encrypt(key, value.encode(), (*place, version)), place, version)

    def open(self, sealed: str, place: SealedKey, version: int) -> str:
        """The value of a sealed text.

        Raises:
            InvalidSettings: The master key is not there, or the text is not the one that was sealed for this place.
        """
        key, data = self._read(sealed, place, version)
        return _decrypt(key, data, (*place, version), place.name).decode()

    def reseal(self, sealed: str, place: SealedKey, version: int) -> str | None:
        """The same value under the newest master key; null if it is so already. Raises as `open`."""
        if _parts(sealed, place.name).kid == next(iter(self.keys)):
            return None
        return self._write(*self._read(sealed, place, version), place, version)

    def _write(self, key: bytes, data: bytes, place: SealedKey, version: int) -> str:
        name, master = next(iter(self.keys.items()))
        wrapped = _encrypt(master, key, ("data key", name, *place, version))
        return msgspec.json.encode(_Sealed(_FORMAT, name, wrapped, data)).decode()

    def _read(self, sealed: str, place: SealedKey, version: int) -> tuple[bytes, bytes]:
        parts = _parts(sealed, place.name)
        name = parts.kid
        master = self.keys.get(name)
        if master is None:
            msg = f"{place.name!r} was encrypted with master key {name!r}, which {VARIABLE} does not have; add it again"
            raise InvalidSettings(msg)
        key = _decrypt(master, parts.key, ("data key", name, *place, version), place.name)
        return key, parts.data


def new_master_key(name: str) -> str:
    """An entry for `TOOLCRIB_MASTER_KEYS` with a random key."""
    return f"{name}:{base64.urlsafe_b64encode(secrets.token_bytes(_KEY_BYTES)).decode()}"


def no_master_keys() -> InvalidSettings:
    """That nothing can be sealed or opened, and what to do."""
    return InvalidSettings(f"secrets and connections need master keys, and none are set: {_HOW}")


def _entry(entry: str, number: int) -> tuple[str, bytes]:
    """One entry; no message repeats it."""
    match = _ENTRY.fullmatch(entry)
    try:
        key = base64.b64decode(match[2].translate(str.maketrans("-_", "+/")), validate=True) if match else b""
    except binascii.Error:
        key = b""
    if match is None or len(key) != _KEY_BYTES:
        msg = f"entry {number} of {VARIABLE} is not NAME:KEY with {_KEY_BYTES} bytes in base64; {_HOW}"
        raise InvalidSettings(msg)
    if len(set(key)) < _KEY_BYTES // 4:
        msg = f"entry {number} of {VARIABLE} is not a random key; {_HOW}"
        raise InvalidSettings(msg)
    return match[1], key


def _encrypt(key: bytes, plain: bytes, context: _Context) -> bytes:
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + _cipher(key).encrypt(nonce, plain, orjson.dumps(context))


def _decrypt(key: bytes, data: bytes, context: _Context, name: str) -> bytes:
    cipher = _cipher(key)
    if len(data) < _SHORTEST:
        raise _unreadable(name)
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - of the extra `vault`

    try:
        return cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], orjson.dumps(context))
    except InvalidTag:
        raise _unreadable(name) from None


def _parts(sealed: str, name: str) -> _Sealed:
    try:
        return _SEALED.decode(sealed)
    except msgspec.DecodeError:
        raise _unreadable(name) from None


def _unreadable(name: str) -> InvalidSettings:
    return InvalidSettings(
        f"{name!r} cannot be decrypted: the row was moved or changed, or the master key of this name has changed; "
        "set the secret or connect again"
    )


def _cipher(key: bytes) -> "AESGCM":
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - of the extra `vault`
    except ModuleNotFoundError as missing:
        raise InvalidSettings(missing_extra("the vault", missing.name, "vault")) from missing
    return AESGCM(key)
