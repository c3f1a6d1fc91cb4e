"""What is kept by name, with revisions but no versions of its own: prompt fragments, accounts, workflow vocabulary."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Final, Generic, Protocol, Self, TypeVar

from pydantic import ValidationError

from toolcrib.contracts import InvalidDefinition, JsonObject, NotFound, content_hash
from toolcrib.core.registry.catalog.unreadable import why_unreadable
from toolcrib.infrastructure.store import Definition, DefinitionKind, Definitions

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
        changed = await self._definitions.changed(self._kind, realm, self._seen.get(realm, -1))
        items = self._items.setdefault(realm, {})
        for name, _ in changed.removed:
            self._forget(realm, name)
        for stored in changed.revisions:
            self._forget(realm, stored.name)
            try:
                items[stored.name] = self._contract.model_validate(stored.body)
            except ValidationError as problem:
                self._unreadable[realm, stored.name] = why_unreadable(problem)
        self._seen[realm] = last

    def _forget(self, realm: str, name: str) -> None:
        self._items[realm].pop(name, None)
        self._unreadable.pop((realm, name), None)

    async def save(self, item: ItemT, *, realm: str, made_by: str, at: datetime) -> None:
        """Store a new revision, which is used from now on."""
        body = item.model_dump(mode="json")
        new = Definition(
            kind=self._kind,
            realm=realm,
            name=item.name,
            version=_VERSION,
            revision=0,
            content_hash=content_hash(body),
            body=body,
            made_by=made_by,
            created_at=at,
        )
        async with self._changing:
            await self._definitions.save(new)
            self._unreadable.pop((realm, item.name), None)
            self._items.setdefault(realm, {})[item.name] = item

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
            raise NotFound(f"there is no {spoken} {name!r} in realm {realm!r}; {hint}")
        return found

    def current(self, realm: str) -> Sequence[ItemT]:
        """All of a realm, by name."""
        return [item for _, item in sorted(self._items.get(realm, {}).items())]
