"""Catalogues of definitions without versions: providers, prompt fragments, accounts, workflow vocabulary.

A stored definition that this release cannot read stays in the catalogue, blocked, with the reason.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Final, Generic, Protocol, Self, TypeVar

from pydantic import ValidationError

from toolcrib.contracts import (
    InvalidDefinition,
    JsonObject,
    ProviderDefinition,
    ToolDefinition,
    content_hash,
)
from toolcrib.contracts.base.errors import UnknownName
from toolcrib.core.registry.checks.providers import check_provider
from toolcrib.infrastructure.store import Definition, DefinitionKind, Definitions

_UNKNOWN = "extra_forbidden"
_MOST_SHOWN = 3


def why_unreadable(problem: ValidationError) -> str:
    """What is wrong with a stored body, as the end of a sentence about it; no value of it is repeated."""
    found = problem.errors(include_url=False, include_context=False, include_input=False)
    newer = [error for error in found if error["type"] == _UNKNOWN]
    if newer:
        fields = _join_places([_place(error["loc"]) for error in newer])
        return f"was saved by a newer release, which knows {fields}; upgrade this one, or save it again without them"
    first = found[0]
    return f"cannot be read by this release: {_place(first['loc'])}: {first['msg']}; save it again"


def stand_in(name: str, version: str) -> ToolDefinition:
    """What stands in the catalogue for a definition that cannot be read: it has the name, and does nothing."""
    return ToolDefinition.model_validate(
        {
            "name": name,
            "version": version,
            "enabled": False,
            "description": "Saved by another release; it cannot be read, and calls of it are denied.",
            "implementation": {"kind": "python", "function": name},
        }
    )


def _place(location: Sequence[str | int]) -> str:
    return repr(".".join(map(str, location)))


def _join_places(places: Sequence[str]) -> str:
    shown = ", ".join(places[:_MOST_SHOWN])
    return shown if len(places) <= _MOST_SHOWN else f"{shown} and {len(places) - _MOST_SHOWN} more fields"


_VERSION: Final = "1.0.0"


class NamedContract(Protocol):
    """A contract with a name that is unique per realm."""

    @property
    def name(self) -> str:
        """The name."""
        ...

    def model_dump(self, *, mode: str) -> JsonObject:
        """The contract as JSON."""
        ...

    @classmethod
    def model_validate(cls, obj: Any) -> Self:
        """The contract that JSON is."""
        ...


ItemT = TypeVar("ItemT", bound=NamedContract)


class Named(Generic[ItemT]):
    """All that is kept of one kind, by realm and name.

    Args:
        definitions: Where revisions are kept.
        kind: Of their rows; also what an error calls them.
        contract: Their shape.
    """

    def __init__(self, definitions: Definitions, kind: DefinitionKind, contract: type[ItemT]) -> None:
        self._definitions = definitions
        self._kind: DefinitionKind = kind
        self._contract = contract
        self._items: dict[str, dict[str, ItemT]] = {}
        self._revisions: dict[tuple[str, str], int] = {}
        self._unreadable: dict[tuple[str, str], str] = {}
        """Why there is nothing under a realm and a name, though something is stored."""
        self._seen: dict[str, int] = {}
        """Number of the last change that was read, by realm."""
        self._changing = asyncio.Lock()
        """Held from asking the store until its answer is at hand, so that no older answer replaces a newer one."""

    async def refresh(self, realm: str) -> None:
        """Read what is stored now."""
        async with self._changing:
            await self._refresh(realm)

    async def _refresh(self, realm: str) -> None:
        last = await self._definitions.changes(realm)  # before reading: what is saved meanwhile is read once more
        changed = await self._definitions.changes_since(self._kind, realm, self._seen.get(realm, -1))
        items = self._items.setdefault(realm, {})
        for name, _ in changed.removed:
            self._forget(realm, name)
        for stored in changed.revisions:
            self._forget(realm, stored.name)
            try:
                items[stored.name] = self._contract.model_validate(stored.body)
                self._revisions[realm, stored.name] = stored.revision
            except ValidationError as problem:
                self._unreadable[realm, stored.name] = why_unreadable(problem)
        self._seen[realm] = last

    def _forget(self, realm: str, name: str) -> None:
        self._items[realm].pop(name, None)
        self._unreadable.pop((realm, name), None)

    async def save(self, item: ItemT, *, realm: str, made_by: str, at: datetime, after: int | None = None) -> int:
        """Store a new revision, which is used from now on; returns its number.

        Raises:
            Conflict: Another revision has been saved since `after`.
        """
        new = _stored(self._kind, item, realm=realm, made_by=made_by, at=at)
        async with self._changing:
            saved = await self._definitions.save(new, after=after)
            self._unreadable.pop((realm, item.name), None)
            self._items.setdefault(realm, {})[item.name] = item
            self._revisions[realm, item.name] = saved.revision
        return saved.revision

    async def remove(self, realm: str, name: str) -> None:
        """Take a name out; what is saved under it later brings it back.

        Raises:
            NotFound: There is none of this name.
        """
        async with self._changing:
            await self._refresh(realm)
            if (realm, name) not in self._unreadable:
                self.require(realm, name)
            await self._definitions.remove(self._kind, realm, name)
            self._forget(realm, name)

    def find(self, realm: str, name: str) -> ItemT | None:
        """The newest revision, or null."""
        return self._items.get(realm, {}).get(name)

    def require(self, realm: str, name: str) -> ItemT:
        """The newest revision.

        Raises:
            NotFound: There is none of this name; the message has the closest ones.
            InvalidDefinition: Another release has saved it, and this one cannot read it.
        """
        found = self.find(realm, name)
        spoken = self._kind.replace("_", " ")
        if (realm, name) in self._unreadable:
            raise InvalidDefinition(f"{spoken} {name!r} {self._unreadable[realm, name]}")
        if found is None:
            near = get_close_matches(name, self._items.get(realm, {}), n=3)
            hint = f"the closest: {', '.join(near)}" if near else "save it first"
            missing = f"there is no {spoken} {name!r} in realm {realm!r}"
            raise UnknownName(missing, hint, kind=self._kind, names=near)
        return found

    def revision(self, realm: str, name: str) -> int:
        """The number of the newest revision.

        Raises:
            NotFound: There is none of this name.
        """
        self.require(realm, name)
        return self._revisions[realm, name]

    def current(self, realm: str) -> Sequence[ItemT]:
        """All of a realm, by name."""
        return [item for _, item in sorted(self._items.get(realm, {}).items())]


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
            changed = await self._definitions.changes_since("provider", realm, self._seen.get(realm, -1))
            for name, _ in changed.removed:
                self._providers.pop((realm, name), None)
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

    async def remove(self, realm: str, name: str) -> None:
        """Take a provider out of the catalogue; what is saved under its name later brings it back."""
        async with self._changing:
            await self._definitions.remove("provider", realm, name)
            self._providers.pop((realm, name), None)

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
    return _stored("provider", provider, realm=realm, made_by=made_by, at=at)


def _stored(kind: DefinitionKind, item: NamedContract, *, realm: str, made_by: str, at: datetime) -> Definition:
    body = item.model_dump(mode="json")
    return Definition(
        kind=kind,
        realm=realm,
        name=item.name,
        version=_VERSION,
        revision=0,
        content_hash=content_hash(body),
        body=body,
        made_by=made_by,
        created_at=at,
    )
