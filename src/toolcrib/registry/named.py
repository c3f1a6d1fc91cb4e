"""What is kept by name, with revisions but no versions of its own: prompt fragments and service accounts."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Final, Generic, TypeVar

from toolcrib.contracts import NotFound, PromptFragment, ServiceAccount, content_hash
from toolcrib.store import Definition, DefinitionKind, Definitions

ItemT = TypeVar("ItemT", PromptFragment, ServiceAccount)

_VERSION: Final = "1.0.0"


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
            items.pop(name, None)
        for stored in changed.revisions:
            items[stored.name] = self._contract.model_validate(stored.body)
        self._seen[realm] = last

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
            self._items.setdefault(realm, {})[item.name] = item

    async def remove(self, realm: str, name: str) -> None:
        """Take a name out; what is saved under it later brings it back.

        Raises:
            NotFound: There is none of this name.
        """
        async with self._changing:
            await self._refresh(realm)
            self.require(realm, name)
            await self._definitions.remove(self._kind, realm, name)
            del self._items[realm][name]

    def find(self, realm: str, name: str) -> ItemT | None:
        """The newest revision, or null."""
        return self._items.get(realm, {}).get(name)

    def require(self, realm: str, name: str) -> ItemT:
        """The newest revision.

        Raises:
            NotFound: There is none of this name; the message has the closest ones.
        """
        found = self.find(realm, name)
        if found is None:
            near = get_close_matches(name, self._items.get(realm, {}), n=3)
            hint = f"the closest: {', '.join(near)}" if near else "save it first"
            raise NotFound(f"there is no {self._kind} {name!r} in realm {realm!r}; {hint}")
        return found

    def current(self, realm: str) -> Sequence[ItemT]:
        """All of a realm, by name."""
        return [item for _, item in sorted(self._items.get(realm, {}).items())]
