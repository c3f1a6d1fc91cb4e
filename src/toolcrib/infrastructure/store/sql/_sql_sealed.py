"""Sealed values in SQL."""

from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa

from toolcrib.infrastructure.store.database.database import Database
from toolcrib.infrastructure.store.database.session import InTurn, Row, Session
from toolcrib.infrastructure.store.database.tables import SEALED
from toolcrib.infrastructure.store.ports.sealed import Place, SealedValue, require_next
from toolcrib.infrastructure.store.sql.rows import to_micros, to_moment

_C: Final = SEALED.c
_PLACE: Final = tuple(_C[name] == sa.bindparam(f"this_{name}") for name in Place._fields)
_ORDER: Final = tuple(_C[name] for name in Place._fields)
_GET: Final = sa.select(SEALED).where(*_PLACE)
_ALL: Final = sa.select(SEALED).order_by(*_ORDER)
_OF_REALM: Final = _ALL.where(_C.realm == sa.bindparam("this_realm"))
_DELETE: Final = sa.delete(SEALED).where(*_PLACE)
_INSERT: Final = sa.insert(SEALED)
_RESEAL: Final = (
    sa.update(SEALED)
    .where(*_PLACE, _C.version == sa.bindparam("old_version"), _C.sealed == sa.bindparam("old_sealed"))
    .values(sealed=sa.bindparam("new_sealed"))
)


class SqlSealedValues:
    """Sealed values, in the table `sealed`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, value: SealedValue) -> None:
        row = {
            **value.place._asdict(),
            "version": value.version,
            "sealed": value.sealed,
            "made_by": value.made_by,
            "created_at": to_micros(value.created_at),
        }

        def work(session: Session) -> None:
            known = session.row(_GET, _key(value.place))
            require_next(value, known["version"] if known else 0)
            session.run(_DELETE, _key(value.place))
            session.run(_INSERT, row)

        await self._database.write(InTurn(work, ("sealed", *value.place)))

    async def get(self, place: Place) -> SealedValue | None:
        row = await self._database.read(lambda session: session.row(_GET, _key(place)))
        return None if row is None else _value(row)

    async def list(self, realm: str | None) -> Sequence[SealedValue]:
        def work(session: Session) -> Sequence[SealedValue]:
            rows = session.rows(_ALL, {}) if realm is None else session.rows(_OF_REALM, {"this_realm": realm})
            return [_value(row) for row in rows]

        return await self._database.read(work)

    async def reseal(self, old: SealedValue, sealed: str) -> bool:
        changes = {"old_version": old.version, "old_sealed": old.sealed, "new_sealed": sealed}
        return await self._database.write(lambda session: session.run(_RESEAL, {**_key(old.place), **changes}) > 0)

    async def remove(self, place: Place) -> bool:
        return await self._database.write(lambda session: session.run(_DELETE, _key(place)) > 0)


def _key(place: Place) -> dict[str, Any]:
    return {f"this_{name}": value for name, value in place._asdict().items()}


def _value(row: Row) -> SealedValue:
    return SealedValue(
        place=Place(row["realm"], row["scope"], row["name"]),
        version=row["version"],
        sealed=row["sealed"],
        made_by=row["made_by"],
        created_at=to_moment(row["created_at"]),
    )
