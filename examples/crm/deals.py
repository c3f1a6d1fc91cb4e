"""The operations on deals.

Writing functions run inside the caller's transaction and leave the roll-back to it: they raise before or after any
statement, and nothing of a refused request stays. A deal's revision grows by one with each effective change; a change
that sets what already stands there is none, and leaves no trace in the audit.
"""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from examples.crm.checks import Problems, join
from examples.crm.errors import Detail, NotFoundError, StaleRevisionError
from examples.crm.exchange import Call, Reply
from examples.crm.properties import DEALS
from examples.crm.query import run_search
from examples.crm.references import check_deal, check_filters
from examples.crm.search import parse_search
from examples.crm.values import Json, Stored, decode, parse_id

MAX_BATCH: Final = 100

_WRITABLE: Final = {name: entry for name, entry in DEALS.properties.items() if entry.writable}

_SELECT: Final = " ".join(
    (
        "SELECT deals.revision,",
        ", ".join(entry.column for entry in DEALS.properties.values()),
        "FROM",
        DEALS.source,
        "WHERE deals.id = ?",
    )
)
_INSERT: Final = """
    INSERT INTO deals
        (name, amount_cents, pipeline_id, stage_id, close_date, owner_id, company_id, created_at, updated_at)
    VALUES (:name, :amount, :pipeline, :stage, :close_date, :owner_id, :company_id, :now, :now)
"""
_UPDATE: Final = """
    UPDATE deals
    SET name = :name, amount_cents = :amount, pipeline_id = :pipeline, stage_id = :stage, close_date = :close_date,
        owner_id = :owner_id, company_id = :company_id, updated_at = :now, revision = revision + 1
    WHERE id = :id
"""
_AUDIT: Final = "INSERT INTO audit (deal_id, property, old, new, idempotency_key, at) VALUES (?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class Deal:
    """A deal as it stands in the database."""

    row_id: int
    revision: int
    values: Mapping[str, Stored]
    """Every property, read-only ones included."""

    def as_json(self) -> dict[str, Json]:
        """The deal as the API shows it."""
        return DEALS.show(self.row_id, self.revision, self.values)


@dataclass(frozen=True, slots=True)
class Change:
    """The new values of some properties of one deal."""

    row_id: int
    values: Mapping[str, Stored]
    path: str
    """Where it stands in the request; empty for the body itself."""


def search_deals(connection: sqlite3.Connection, call: Call) -> Reply:
    """A page of the deals that a query finds."""
    problems = Problems()
    query = parse_search(DEALS, call.body, problems)
    check_filters(connection, query, problems)
    problems.stop()
    return Reply(body=run_search(connection, DEALS, query))


def get_deal(connection: sqlite3.Connection, call: Call) -> Reply:
    """One deal."""
    return _single(_required(connection, call.object_id))


def create_deal(connection: sqlite3.Connection, call: Call) -> Reply:
    """A new deal; name, pipeline, stage and company must be given."""
    problems = Problems()
    members = problems.mapping(call.body, "", known=("properties",), required=("properties",))
    values = _properties(members.get("properties", {}), "properties", problems)
    if "properties" in members:
        for name, entry in _WRITABLE.items():
            if name not in values and not entry.clearable:
                problems.add(join("properties", name), "is required")
    problems.stop()
    values = dict.fromkeys(_WRITABLE) | values
    check_deal(connection, changed=_WRITABLE, values=values, path="properties", problems=problems)
    problems.stop()
    row_id = connection.execute(_INSERT, {**values, "now": call.now}).lastrowid
    deal = _required(connection, str(row_id))
    _record(connection, deal.row_id, {}, values, call)
    return replace(_single(deal), status=201)


def update_deal(connection: sqlite3.Connection, call: Call) -> Reply:
    """Some properties of one deal, unless `If-Match` names an old revision."""
    deal = _required(connection, call.object_id)
    _match_revision(deal, call)
    problems = Problems()
    members = problems.mapping(call.body, "", known=("properties",), required=("properties",))
    change = Change(deal.row_id, _properties(members.get("properties", {}), "properties", problems), "")
    problems.stop()
    _check(connection, deal, change, problems)
    problems.stop()
    _apply(connection, deal, change, call)
    return _single(_required(connection, call.object_id))


def batch_update_deals(connection: sqlite3.Connection, call: Call) -> Reply:
    """Up to 100 deals, each with its own properties: all of them or none."""
    changes = _batch(call.body)
    deals = {change.row_id: _find(connection, change.row_id) for change in changes}
    missing = [change for change in changes if deals[change.row_id] is None]
    if missing:
        details = [Detail(join(item.path, "id"), f"no deal has the id {str(item.row_id)!r}") for item in missing]
        raise NotFoundError(f"{len(missing)} of the {len(changes)} deals do not exist; nothing was changed", details)

    known = {row_id: deal for row_id, deal in deals.items() if deal is not None}
    problems = Problems()
    for change in changes:
        _check(connection, known[change.row_id], change, problems)
    problems.stop()
    updated = sum(_apply(connection, known[change.row_id], change, call) for change in changes)
    results: list[Json] = [_required(connection, str(change.row_id)).as_json() for change in changes]
    unchanged = len(changes) - updated
    return Reply(body={"status": "COMPLETE", "updated": updated, "unchanged": unchanged, "results": results})


def delete_deal(connection: sqlite3.Connection, call: Call) -> Reply:
    """Remove one deal for good, unless `If-Match` names an old revision."""
    deal = _required(connection, call.object_id)
    _match_revision(deal, call)
    connection.execute("DELETE FROM deals WHERE id = ?", (deal.row_id,))
    _record(connection, deal.row_id, {name: deal.values[name] for name in _WRITABLE}, {}, call)
    return Reply(status=204)


def _batch(body: Json) -> list[Change]:
    """The changes that a batch asks for, each of another deal."""
    problems = Problems()
    members = problems.mapping(body, "", known=("inputs",), required=("inputs",))
    inputs: list[Json] = []
    if "inputs" in members:
        inputs = problems.sequence(members["inputs"], "inputs", least=1, most=MAX_BATCH, noun="deals")
    changes: dict[int, Change] = {}
    for place, entry in enumerate(inputs):
        path = f"inputs[{place}]"
        needed = ("id", "properties")
        input_ = problems.mapping(entry, path, known=needed, required=needed)
        if len(input_) < len(needed):
            continue
        values = _properties(input_["properties"], join(path, "properties"), problems)
        try:
            row_id = parse_id(input_["id"])
        except ValueError as error:
            problems.add(join(path, "id"), str(error))
            continue
        if row_id in changes:
            problems.add(join(path, "id"), f"{str(row_id)!r} stands at {changes[row_id].path} already")
        else:
            changes[row_id] = Change(row_id, values, path)
    problems.stop()
    return list(changes.values())


def _properties(value: Json, path: str, problems: Problems) -> dict[str, Stored]:
    """The writable properties in a request, in stored form."""
    values: dict[str, Stored] = {}
    for name, member in problems.mapping(value, path, known=DEALS.properties).items():
        entry = DEALS.properties[name]
        if not entry.writable:
            problems.add(join(path, name), "is read-only")
        elif member is None and entry.clearable:
            values[name] = None
        elif member is None:
            problems.add(join(path, name), "cannot be empty")
        else:
            values[name] = problems.value(entry.kind, member, join(path, name))
    return values


def _check(connection: sqlite3.Connection, deal: Deal, change: Change, problems: Problems) -> None:
    path = join(change.path, "properties")
    check_deal(connection, changed=change.values, values={**deal.values, **change.values}, path=path, problems=problems)


def _apply(connection: sqlite3.Connection, deal: Deal, change: Change, call: Call) -> bool:
    """Write what differs; whether anything did."""
    after = {name: value for name, value in change.values.items() if value != deal.values[name]}
    if not after:
        return False
    connection.execute(_UPDATE, {**deal.values, **after, "id": deal.row_id, "now": call.now})
    _record(connection, deal.row_id, {name: deal.values[name] for name in after}, after, call)
    return True


def _record(
    connection: sqlite3.Connection, row_id: int, old: Mapping[str, Stored], new: Mapping[str, Stored], call: Call
) -> None:
    """Add an audit row for each property that differs between `old` and `new`."""
    rows = [
        (row_id, name, _shown(name, old.get(name)), _shown(name, new.get(name)), call.idempotency_key, call.now)
        for name in _WRITABLE
        if old.get(name) != new.get(name)
    ]
    connection.executemany(_AUDIT, rows)


def _shown(name: str, value: Stored) -> str | None:
    return None if value is None else str(decode(DEALS.properties[name].kind, value))


def _find(connection: sqlite3.Connection, row_id: int) -> Deal | None:
    row = connection.execute(_SELECT, (row_id,)).fetchone()
    return None if row is None else Deal(row_id, row[0], dict(zip(DEALS.properties, row[1:], strict=True)))


def _required(connection: sqlite3.Connection, text: str) -> Deal:
    try:
        deal = _find(connection, parse_id(text))
    except ValueError:
        deal = None
    if deal is None:
        raise NotFoundError(f"no deal has the id {text!r}")
    return deal


def _match_revision(deal: Deal, call: Call) -> None:
    if call.if_match is None or call.if_match.strip('"') == str(deal.revision):
        return
    raise StaleRevisionError(
        f"deal {deal.row_id} has revision {deal.revision}, but If-Match names {call.if_match}; "
        "read the deal again and decide anew"
    )


def _single(deal: Deal) -> Reply:
    return Reply(body=deal.as_json(), revision=deal.revision)
