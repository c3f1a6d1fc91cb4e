"""References to secrets, their resolution, and redaction of secret values from JSON.

A definition has `${env:NAME}` or `${secret:NAME}`, never a value. A value is resolved for one call, after the guard.
Redaction replaces values, in any common encoding, by `[secret]`. Values shorter than eight characters are not
redacted, because that would destroy ordinary text.
"""

import base64
import json
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final, cast
from urllib.parse import quote, quote_plus

from toolcrib.contracts import SECRET_REFERENCE, InvalidDefinition, Json, Principal
from toolcrib.infrastructure.secrets.sealing import VARIABLE
from toolcrib.infrastructure.secrets.vault import Vault

OWN_VARIABLES: Final = ("TOOLCRIB_PEPPER", VARIABLE)
"""Variables that hold secrets of the product itself: no definition gets them, whatever is released."""


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
    """Environment variables, for names that match one of the released patterns.

    Args:
        environment: The variables, usually `os.environ`.
        released: Patterns such as `CRM_*`. A name that none matches does not resolve, so that a definition cannot
        read the server's own secrets.
    """

    def __init__(self, environment: Mapping[str, str], released: tuple[str, ...]) -> None:
        self._environment = environment
        self._released = released

    def find(self, name: str) -> str | None:
        """The value, or null if the variable is not set, is empty or not released."""
        return (self._environment.get(name) or None) if self.is_released(name) else None

    def is_released(self, name: str) -> bool:
        """Whether definitions may have a variable's value."""
        return name not in OWN_VARIABLES and any(fnmatchcase(name, pattern) for pattern in self._released)


class ScopedSecrets:
    """Resolves references of either kind.

    Args:
        environment: Finds `${env:NAME}`.
        vault: Finds `${secret:NAME}`.
    """

    def __init__(self, environment: EnvironmentSecrets, vault: Vault) -> None:
        self._environment = environment
        self._vault = vault

    async def resolve(self, reference: str, principal: Principal) -> str | None:
        """The value that a principal's calls get; null if there is none.

        Raises:
            InvalidDefinition: The text is no reference.
            InvalidSettings: The vault has it and cannot open it.
            Unavailable: The store cannot be read.
        """
        kind, name = reference_parts(reference)
        return self._environment.find(name) if kind == "env" else await self._vault.find(name, principal)


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
