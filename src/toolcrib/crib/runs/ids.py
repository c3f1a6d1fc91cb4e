"""Finds the id of a run, instance, conversation, approval or API key by its first characters, or as `latest`.

The store is asked for the ids with the prefix; it reads a range of an index, never all ids.
"""

from collections.abc import Awaitable, Callable
from typing import Final, Literal, TypeAlias

from toolcrib.contracts import Conflict, NotFound
from toolcrib.contracts.workflows import InstancePage
from toolcrib.infrastructure.store import ApprovalFilter, Store

IdKind: TypeAlias = Literal["run", "instance", "conversation", "approval", "key"]
"""What an id names."""

LATEST: Final = "latest"
_NEWEST: Final = {"run", "instance", "conversation", "approval"}
_SHOWN: Final = 10
_LEAST: Final = 8
"""Characters of a prefix: with fewer, a slip of the keyboard means the only run that there is."""


class Ids:
    """Ids of one realm, all of which the application may see.

    Args:
        open_store: Opens the store, if it is not open.
        realm: The realm.
        newest_instance: Reads the newest run of a workflow; a page of at most one.
    """

    def __init__(
        self,
        open_store: Callable[[], Awaitable[Store]],
        realm: str,
        newest_instance: Callable[[], Awaitable[InstancePage]],
    ) -> None:
        self._open = open_store
        self._realm = realm
        self._newest_instance = newest_instance

    async def find(self, kind: IdKind, text: str) -> str:
        """The id that is meant.

        Args:
            kind: What the id names.
            text: The id, or its first characters, at least eight and as many as no other id has; or `latest`, for the
                newest run, instance or conversation, or for the only approval that waits.

        Returns:
            The id; the text itself if nothing begins with it, so that the error of its reader names it.

        Raises:
            Conflict: Several ids begin with the text; the message names them, ten at most. Or it is too short. Or
                `latest`, and several approvals wait: a decision must not hit another call than the person has seen.
            NotFound: `latest`, and there is none.

        Example:
            result = await crib.invoke("search_deals", {"company": "Acme"})
            assert await crib.ids.find("run", result.run_id[:20]) == result.run_id
            assert await crib.ids.find("run", "latest") == result.run_id
        """
        store = await self._open()
        if text == LATEST and kind in _NEWEST:
            found = await self._newest(store, kind)
            if found is None:
                what = "no approval waits" if kind == "approval" else f"there is no {kind} yet"
                raise NotFound(f"{what}, so none is the latest; toolcrib {kind} list shows what there is")
            return found
        tables = {"approval": store.approvals, "conversation": store.conversations, "key": store.api_keys}
        table = tables.get(kind, store.journal)
        ids = await table.find_ids(self._realm, text, limit=_SHOWN + 1) if text else ()
        if text in ids or not ids:
            return text
        if len(ids) > 1:
            more = ", and more" if len(ids) > _SHOWN else ""
            known = ", ".join(ids[:_SHOWN])
            raise Conflict(f"several {kind} ids begin with {text!r}: {known}{more}; give more characters")
        if len(text) < _LEAST:
            msg = f"{text!r} is too short to mean {kind} {ids[0]}; give at least {_LEAST} characters"
            raise Conflict(msg)
        return ids[0]

    async def _newest(self, store: Store, kind: IdKind) -> str | None:
        if kind == "run":
            return next((run.run_id for run in await store.journal.runs(self._realm, limit=1)), None)
        if kind == "instance":
            return next((instance.run_id for instance in (await self._newest_instance()).items), None)
        if kind == "approval":
            return await self._only_approval(store)
        return next((each.conversation_id for each in await store.conversations.list(self._realm, limit=1)), None)

    async def _only_approval(self, store: Store) -> str | None:
        waiting = await store.approvals.page(self._realm, ApprovalFilter("waiting"), limit=_SHOWN)
        if len(waiting) > 1:
            known = ", ".join(each.approval_id for each in waiting)
            raise Conflict(f"several approvals wait: {known}; give the id of one")
        return waiting[0].approval_id if waiting else None
