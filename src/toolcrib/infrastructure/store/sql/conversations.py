"""Conversations in SQL."""

from collections.abc import Sequence
from typing import Any, Final

import orjson
import sqlalchemy as sa

from toolcrib.contracts import SCHEMA_VERSION, Conversation
from toolcrib.infrastructure.queries.grammar import Condition
from toolcrib.infrastructure.store.database.database import Database
from toolcrib.infrastructure.store.database.dialect import insert_new
from toolcrib.infrastructure.store.database.session import Row, Session
from toolcrib.infrastructure.store.database.tables import CONVERSATIONS
from toolcrib.infrastructure.store.ports.queried_fields import CONVERSATION_FIELDS, StoreQuery
from toolcrib.infrastructure.store.ports.records import (
    ANY_CONVERSATION,
    ConversationFilter,
    exists,
    no_conversation,
    require_next,
)
from toolcrib.infrastructure.store.sql.queries import QueriedTable
from toolcrib.infrastructure.store.sql.rows import encode, ids_with_prefix, to_micros, to_moment

_C: Final = CONVERSATIONS.c
_THIS: Final = (_C.conversation_id == sa.bindparam("this_one"), _C.realm == sa.bindparam("this_realm"))
_MOMENTS: Final = ("created_at", "updated_at")
_FIXED: Final = frozenset({"conversation_id", "realm", "agent", "made_by", "created_at"})

_INSERT: Final = insert_new(CONVERSATIONS)
_GET: Final = sa.select(CONVERSATIONS).where(*_THIS)
_LOCKED: Final = _GET.with_for_update()
_DELETE: Final = sa.delete(CONVERSATIONS).where(*_THIS)
_DELETE_AT: Final = _DELETE.where(_C.revision == sa.bindparam("at_revision"))
_REPLACE: Final = (
    sa.update(CONVERSATIONS)
    .where(*_THIS)
    .values({column.name: sa.bindparam(f"new_{column.name}") for column in _C if column.name not in _FIXED})
)


class SqlConversations:
    """Conversations, in the table `conversations`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, conversation: Conversation) -> None:
        row = _row(conversation)

        def work(session: Session) -> None:
            if not session.run(_INSERT, row):
                raise exists(conversation.conversation_id)

        await self._database.write(work)

    async def get(self, realm: str, conversation_id: str) -> Conversation | None:
        row = await self._database.read(lambda session: session.row(_GET, _key(realm, conversation_id)))
        return None if row is None else _conversation(row)

    async def list(
        self,
        realm: str,
        wanted: ConversationFilter = ANY_CONVERSATION,
        *,
        before: str | None = None,
        limit: int = 50,
    ) -> Sequence[Conversation]:
        given = {"realm": realm, "made_by": wanted.principal, "agent": wanted.agent, "status": wanted.status}

        def work(session: Session) -> list[Conversation]:
            page = sa.select(CONVERSATIONS).order_by(_C.created_at.desc(), _C.conversation_id.desc()).limit(limit)
            page = page.where(*(_C[name] == value for name, value in given.items() if value is not None))
            if before is not None:
                last = session.row(_GET, _key(realm, before))
                if last is None:
                    raise no_conversation(before)
                page = page.where(sa.tuple_(_C.created_at, _C.conversation_id) < (last["created_at"], before))
            return [_conversation(dict(row)) for row in session.connection.execute(page).mappings()]

        return await self._database.read(work)

    async def find(self, realm: str, query: StoreQuery) -> Sequence[Conversation]:
        return await self._database.read(lambda session: _QUERIED.page(session, realm, query))

    async def count(self, realm: str, condition: Condition) -> int:
        return await self._database.read(lambda session: _QUERIED.count(session, realm, condition))

    async def find_ids(self, realm: str, prefix: str, *, limit: int) -> Sequence[str]:
        found = ids_with_prefix(_C.conversation_id, realm, prefix, limit)
        return await self._database.read(lambda session: session.connection.execute(found).scalars().all())

    async def replace(self, conversation: Conversation) -> None:
        key = _key(conversation.realm, conversation.conversation_id)
        changes = {f"new_{name}": value for name, value in _row(conversation).items() if name not in _FIXED}

        def work(session: Session) -> None:
            known = session.row(_LOCKED, key)
            require_next(conversation, known["revision"] if known else None)
            session.run(_REPLACE, {**key, **changes})

        await self._database.write(work)

    async def remove(self, realm: str, conversation_id: str, *, revision: int | None = None) -> bool:
        key = _key(realm, conversation_id)
        deletion = (_DELETE, key) if revision is None else (_DELETE_AT, {**key, "at_revision": revision})
        return await self._database.write(lambda session: session.run(*deletion) > 0)


def _key(realm: str, conversation_id: str) -> dict[str, Any]:
    return {"this_realm": realm, "this_one": conversation_id}


def _row(conversation: Conversation) -> dict[str, Any]:
    context = encode(conversation.shared_context, f"the shared context of {conversation.conversation_id!r}")
    moments = {name: to_micros(getattr(conversation, name)) for name in _MOMENTS}
    row = conversation.model_dump(exclude={"principal", "shared_context", *_MOMENTS})
    row |= {**moments, "made_by": conversation.principal, "shared_context": context}
    return row | {"schema_version": SCHEMA_VERSION}


def _conversation(row: Row) -> Conversation:
    fields: dict[str, Any] = {name: value for name, value in row.items() if name in Conversation.model_fields}
    fields |= {name: to_moment(row[name]) for name in _MOMENTS}
    fields |= {"principal": row["made_by"], "shared_context": orjson.loads(row["shared_context"])}
    return Conversation(**fields)


_QUERIED: Final = QueriedTable(
    CONVERSATIONS,
    CONVERSATION_FIELDS,
    {"principal": _C.made_by, "text": _C.title, "turns": _C.turn_count},
    _conversation,
)
