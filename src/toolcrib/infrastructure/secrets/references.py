"""References to secrets, their resolution, and redaction of secret values from JSON.

A definition has `${env:NAME}` or `${secret:NAME}`, never a value. A value is resolved for one call, after the guard.
Redaction replaces values, in any common encoding, by `[secret]`. Values shorter than eight characters are not
redacted, because that would destroy ordinary text.

An environment variable belongs to the operator, who says which realms may use it and to which hosts it may be sent.
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, Self, cast
from urllib.parse import quote, quote_plus

from msgspec import Struct

from toolcrib.contracts import DEFAULT_REALM, SECRET_REFERENCE, InvalidDefinition, InvalidSettings, Json, Principal
from toolcrib.infrastructure.secrets.sealing import VARIABLE
from toolcrib.infrastructure.secrets.vault import Vault

OWN_VARIABLES: Final = ("TOOLCRIB_PEPPER", VARIABLE)
"""Variables that hold secrets of the product itself: no definition gets them, whatever is released."""


_RELEASE: Final = re.compile(r"(?P<names>[\w*?]+)(@(?P<realm>[^@:/\s]+))?(:(?P<host>[^@:/\s]+))?")


class VariableRelease(Struct, frozen=True):
    """Which variables an operator releases, to the definitions of which realm, for which host.

    Example:
        VariableRelease.read("CRM_*@sales:api.example.com")
    """

    names: str
    """Pattern of names, with `*` and `?`."""
    realm: str = DEFAULT_REALM
    """Pattern of realms."""
    host: str | None = None
    """Pattern of the hosts to which a value may be sent, in lower case; null for any host and any other use."""

    @classmethod
    def read(cls, text: str) -> Self:
        """A release from its text: `NAMES`, `NAMES@REALM`, `NAMES:HOST` or `NAMES@REALM:HOST`.

        Raises:
            InvalidSettings: The text has another form.
        """
        match = _RELEASE.fullmatch(text)
        if match is None:
            msg = (
                f"{text!r} releases no variable; write NAMES, NAMES@REALM, NAMES:HOST or NAMES@REALM:HOST, such as "
                "'CRM_*@sales:api.example.com'"
            )
            raise InvalidSettings(msg)
        host = match["host"]
        return cls(match["names"], match["realm"] or DEFAULT_REALM, host and host.lower())

    def allows(self, name: str, realm: str, host: str | None) -> bool:
        """Whether definitions of a realm may send a variable to a host, or use it otherwise if the host is null."""
        if not fnmatchcase(name, self.names) or not fnmatchcase(realm, self.realm):
            return False
        return self.host is None or (host is not None and fnmatchcase(host.lower(), self.host))


def reference_parts(reference: str) -> tuple[str, str]:
    """Where a reference leads, `env` or `secret`, and the name that it has there.

    Raises:
        InvalidDefinition: The text is not a reference; it may be a secret itself, so it is not repeated.
    """
    match = SECRET_REFERENCE.fullmatch(reference)
    if match is None:
        size = len(reference)
        msg = (
            "a secret must be a reference such as ${env:CRM_TOKEN} or ${secret:CRM_TOKEN}; this is something else "
            f"({size} characters)"
        )
        raise InvalidDefinition(msg)
    return match[1], match[2]


class EnvironmentSecrets:
    """Environment variables, as far as they are released.

    Args:
        environment: The variables, usually `os.environ`.
        released: The releases, as `VariableRelease.read` reads them. A name that none matches does not resolve, so
            that a definition cannot read the server's own secrets.

    Raises:
        InvalidSettings: A release is malformed.
    """

    def __init__(self, environment: Mapping[str, str], released: tuple[str, ...]) -> None:
        self._environment = environment
        self._released = [VariableRelease.read(text) for text in released]

    def find(self, name: str, realm: str, hosts: Sequence[str] = ()) -> str | None:
        """The value, or null if the variable is not set, is empty or not released; see `is_released`."""
        return (self._environment.get(name) or None) if self.is_released(name, realm, hosts) else None

    def is_released(self, name: str, realm: str, hosts: Sequence[str] = ()) -> bool:
        """Whether definitions of a realm may use a variable.

        Args:
            name: Of the variable.
            realm: Whose definition it is.
            hosts: All hosts to which the value is sent; none if it is not sent in a request, but handed to a program,
                to code or to a database driver. A release for a host is not one for these.
        """
        if name in OWN_VARIABLES:
            return False
        return all(any(each.allows(name, realm, host) for each in self._released) for host in hosts or (None,))

    def is_released_for_model(self, name: str, realm: str | None, host: str) -> bool:
        """Whether a variable may be sent to a model's host: by definitions of a realm, or of any realm if null."""
        realms = [realm] if realm is not None else [release.realm for release in self._released]
        return any(self.is_released(name, each, (host,)) for each in realms)


class ScopedSecrets:
    """Resolves references of either kind.

    Args:
        environment: Finds `${env:NAME}`.
        vault: Finds `${secret:NAME}`.
    """

    def __init__(self, environment: EnvironmentSecrets, vault: Vault) -> None:
        self._environment = environment
        self._vault = vault

    async def resolve(self, reference: str, principal: Principal, hosts: Sequence[str] = ()) -> str | None:
        """The value that a principal's calls get; null if there is none.

        Args:
            reference: `${env:NAME}` or `${secret:NAME}`.
            principal: Who calls.
            hosts: The hosts to which the value is sent; see `EnvironmentSecrets.is_released`.

        Raises:
            InvalidDefinition: The text is no reference.
            InvalidSettings: The vault has it and cannot open it.
            Unavailable: The store cannot be read.
        """
        kind, name = reference_parts(reference)
        if kind == "env":
            return self._environment.find(name, principal.realm, hosts)
        return await self._vault.find(name, principal)


PLACEHOLDER = "[secret]"
_SHORTEST = 8
_URL_SAFE = str.maketrans("+/", "-_")
"""RFC 4648, section 5."""


class Redactor:
    """Replaces the given values and their usual encodings: base64 (also inside a longer text), URL, JSON and hex."""

    def __init__(self, values: Iterable[str]) -> None:
        spellings = {spelling for value in values if len(value) >= _SHORTEST for spelling in _spellings(value)}
        self._spellings = sorted(spellings, key=len, reverse=True)

    def __bool__(self) -> bool:
        return bool(self._spellings)

    def text(self, text: str) -> str:
        """The text without the values."""
        for spelling in self._spellings:
            if spelling in text:
                text = text.replace(spelling, PLACEHOLDER)
        return text

    def json(self, value: Json) -> Json:
        """The same JSON without the values, in keys too; a value that holds none is returned as it is."""
        if not self._spellings:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(key)): self.json(item) for key, item in cast("dict[str, Json]", value).items()}
        if isinstance(value, list | tuple):
            return [self.json(item) for item in cast("list[Json]", value)]
        return value


def _spellings(value: str) -> set[str]:
    data = value.encode()
    found = {value, quote(value, safe=""), quote(value), quote_plus(value), data.hex(), data.hex().upper()}
    found |= {json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    for offset in range(3):
        # Base64 of a longer text that contains the value: keep only the characters that depend on the value alone.
        encoded = base64.b64encode(b"\0" * offset + data).decode().rstrip("=")
        head, tail = (0, 2, 3)[offset], 1 if (offset + len(data)) % 3 else 0
        piece = encoded[head : len(encoded) - tail]
        found |= {piece, piece.translate(_URL_SAFE)}
    return {spelling for spelling in found if len(spelling) >= _SHORTEST}
