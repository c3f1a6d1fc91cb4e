"""The vault: secrets by name and scope, and encrypted values in the store.

`${secret:NAME}` is the caller's own secret of this name, else the realm's, else that of all realms. An agent or
service that acts for a user uses that user's secrets. Values are never shown.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple, assert_never

from toolcrib.contracts import (
    SECRET_SCOPES,
    InvalidInput,
    InvalidSettings,
    NotFound,
    Principal,
    SecretEntry,
    SecretScope,
    Unavailable,
)
from toolcrib.infrastructure.secrets.sealing import MasterKeys, no_master_keys
from toolcrib.infrastructure.store import SealedKey, SealedValue, SealedValues


class Opened(NamedTuple):
    """A value and its version."""

    value: str
    version: int


class Safe:
    """Seals what goes into the store and opens what comes out.

    Args:
        values: Where sealed values are kept.
        keys: The master keys; null if the operator has given none: then nothing can be put in or taken out.
    """

    def __init__(self, values: SealedValues, keys: MasterKeys | None) -> None:
        self._values = values
        self._keys = keys

    async def put(self, place: SealedKey, value: str, *, after: int, made_by: str, at: datetime) -> int:
        """Keep a value in the place of the version that was read; 0 for a new one. Returns its version.

        Raises:
            Conflict: Another version is there by now.
            InvalidSettings: There are no master keys.
        """
        version = after + 1
        sealed = self._require().seal(value, place, version)
        await self._values.put(SealedValue(place, version, sealed, made_by, at))
        return version

    async def take(self, place: SealedKey) -> Opened | None:
        """The value at a place.

        Raises:
            InvalidSettings: It cannot be opened.
        """
        found = await self._values.get(place)
        if found is None:
            return None
        return Opened(self._require().open(found.sealed, place, found.version), found.version)

    def stamp(self, text: str, place: SealedKey) -> str:
        """A text sealed for a place, kept by somebody else. Raises as `put`."""
        return self._require().seal(text, place, 1)

    def read_stamp(self, sealed: str, place: SealedKey) -> str | None:
        """The text that was stamped for a place; null if it was not."""
        try:
            return self._require().open(sealed, place, 1)
        except InvalidSettings:
            return None

    async def look(self, place: SealedKey) -> SealedValue | None:
        """What is at a place, unopened."""
        return await self._values.get(place)

    async def list(self, realm: str | None) -> Sequence[SealedValue]:
        """What is kept for a realm, unopened; for every realm if null."""
        return await self._values.list(realm)

    async def remove(self, place: SealedKey) -> bool:
        """Remove a value; of those who do so at the same time, one gets true."""
        return await self._values.remove(place)

    async def rotate(self) -> int:
        """Seal all values of all realms under the newest master key; returns how many were under an older one.

        Raises:
            Unavailable: A value kept changing while it was sealed anew.
        """
        keys, count = self._require(), 0
        for found in await self._values.list(None):
            sealed = keys.reseal(found.sealed, found.place, found.version)
            if sealed is None:
                continue
            if not await self._values.reseal(found, sealed) and await self._is_old(found.place):
                raise Unavailable(f"{found.place.name!r} changed during the rotation; rotate again")
            count += 1
        return count

    async def _is_old(self, place: SealedKey) -> bool:
        found = await self._values.get(place)
        return found is not None and self._require().reseal(found.sealed, place, found.version) is not None

    def _require(self) -> MasterKeys:
        if self._keys is None:
            raise no_master_keys()
        return self._keys


MAX_CHARACTERS: Final = 65_536
"""Of a value: a chain of certificates fits."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


class Vault:
    """Secrets that people set.

    Args:
        safe: Where they are kept.
    """

    def __init__(self, safe: Safe) -> None:
        self._safe = safe

    async def set(
        self, name: str, value: str, *, scope: SecretScope, principal: Principal, at: datetime
    ) -> SecretEntry:
        """Set a secret, or set it anew.

        Raises:
            InvalidInput: The name could stand in no reference, or the value is empty or too long.
            InvalidSettings: There are no master keys.
            Conflict: Somebody else set it at the same time.
        """
        place = _place(name, scope, principal)
        if not 0 < len(value) <= MAX_CHARACTERS:
            msg = f"secret {name!r} has {len(value)} characters; give 1 to {MAX_CHARACTERS}"
            raise InvalidInput(msg)
        known = await self._safe.look(place)
        version = await self._safe.put(place, value, after=known.version if known else 0, made_by=principal.id, at=at)
        return SecretEntry(name=name, scope=scope, version=version, made_by=principal.id, created_at=at)

    async def list(self, principal: Principal) -> Sequence[SecretEntry]:
        """The secrets that a principal's calls can use, by name, each scope for itself."""
        found: list[SecretEntry] = []
        for scope in SECRET_SCOPES:
            where = _place("_", scope, principal)
            kept = await self._safe.list(where.realm)
            found += [_entry(value, scope) for value in kept if value.place.scope == where.scope]
        return sorted(found, key=lambda entry: (entry.name, SECRET_SCOPES.index(entry.scope)))

    async def remove(self, name: str, *, scope: SecretScope, principal: Principal) -> None:
        """Remove a secret.

        Raises:
            NotFound: The scope has no secret of this name.
        """
        if not await self._safe.remove(_place(name, scope, principal)):
            msg = f"there is no secret {name!r} of scope {scope!r}; `toolcrib secret list` shows all"
            raise NotFound(msg)

    async def find(self, name: str, principal: Principal) -> str | None:
        """The value that a principal's calls get; null if there is none.

        Raises:
            InvalidSettings: It is there and cannot be opened.
        """
        for scope in SECRET_SCOPES:
            found = await self._safe.take(_place(name, scope, principal))
            if found is not None:
                return found.value
        return None

    async def rotate(self) -> int:
        """Seal everything anew under the newest master key; see `Safe.rotate`."""
        return await self._safe.rotate()


def _place(name: str, scope: SecretScope, principal: Principal) -> SealedKey:
    if not _NAME.fullmatch(name):
        msg = (
            f"{name[:128]!r} is not a valid secret name; use up to 128 letters, digits and _, not beginning "
            "with a digit"
        )
        raise InvalidInput(msg)
    match scope:
        case "user":
            return SealedKey(principal.realm, f"user:{principal.user}", name)
        case "realm":
            return SealedKey(principal.realm, "realm", name)
        case "org":
            return SealedKey("", "org", name)
        case _:
            assert_never(scope)


def _entry(value: SealedValue, scope: SecretScope) -> SecretEntry:
    return SecretEntry(
        name=value.place.name,
        scope=scope,
        version=value.version,
        made_by=value.made_by,
        created_at=value.created_at,
    )
