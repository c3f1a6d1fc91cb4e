"""The vault: secrets by name and scope, set by people, used by calls, shown to nobody.

`${secret:NAME}` means the caller's own secret of this name, else the realm's, else that of all realms. An agent or a
service that acts for a user uses that user's.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final, assert_never

from toolcrib.contracts import SECRET_SCOPES, InvalidInput, NotFound, Principal, SecretEntry, SecretScope
from toolcrib.infrastructure.secrets.safe import Safe
from toolcrib.infrastructure.store import Place, SealedValue

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
            NotFound: There is none of this name in this scope.
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


def _place(name: str, scope: SecretScope, principal: Principal) -> Place:
    if not _NAME.fullmatch(name):
        msg = f"{name[:128]!r} is no name of a secret; use letters, digits and _, no digit first, 128 at most"
        raise InvalidInput(msg)
    match scope:
        case "user":
            return Place(principal.realm, f"user:{principal.user}", name)
        case "realm":
            return Place(principal.realm, "realm", name)
        case "org":
            return Place("", "org", name)
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
