"""The catalogue of providers: the systems that tools talk to, by realm and name."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from toolcrib.contracts import ProviderDefinition, content_hash
from toolcrib.core.registry.checks.http import check_provider
from toolcrib.infrastructure.store import Definition, Definitions

_VERSION = "1.0.0"
"""Providers have revisions, but no versions of their own."""


class Providers:
    """Providers of all realms that were read or saved.

    Args:
        definitions: Where revisions are kept.
    """

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._providers: dict[tuple[str, str], ProviderDefinition] = {}
        self._seen: dict[str, int] = {}
        """Number of the last change that was read, by realm."""
        self._changing = asyncio.Lock()
        """Held from asking the store until its answer is at hand, so that no older answer replaces a newer one."""

    async def refresh(self, realm: str) -> None:
        """Read what is stored now."""
        async with self._changing:
            last = await self._definitions.changes(realm)  # before reading: what is saved meanwhile is read once more
            changed = await self._definitions.changed("provider", realm, self._seen.get(realm, -1))
            for stored in changed.revisions:
                self._providers[realm, stored.name] = ProviderDefinition.model_validate(stored.body)
            self._seen[realm] = last

    async def save(self, provider: ProviderDefinition, *, realm: str, made_by: str, at: datetime) -> None:
        """Store a provider as a new revision, which is used from now on.

        Raises:
            InvalidDefinition: Its address or its authentication could not be used.
        """
        new = stored_provider(provider, realm=realm, made_by=made_by, at=at)
        async with self._changing:
            await self._definitions.save(new)
            self._providers[realm, provider.name] = provider

    @property
    def realms(self) -> Sequence[str]:
        """The realms of which providers were read or saved."""
        return sorted({realm for realm, _ in self._providers})

    def current(self, realm: str) -> Sequence[ProviderDefinition]:
        """All providers of a realm, by name."""
        return [self._providers[key] for key in sorted(self._providers) if key[0] == realm]

    def find(self, realm: str, name: str) -> ProviderDefinition | None:
        """The provider of a realm with this name."""
        return self._providers.get((realm, name))


def stored_provider(provider: ProviderDefinition, *, realm: str, made_by: str, at: datetime) -> Definition:
    """A provider as the store keeps it.

    Raises:
        InvalidDefinition: Its address or its authentication could not be used.
    """
    check_provider(provider)
    body = provider.model_dump(mode="json")
    return Definition(
        kind="provider",
        realm=realm,
        name=provider.name,
        version=_VERSION,
        revision=0,
        content_hash=content_hash(body),
        body=body,
        made_by=made_by,
        created_at=at,
    )
