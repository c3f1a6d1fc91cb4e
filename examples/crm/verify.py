"""Judge a database afterwards: did a company's deals, all of them and only they, get to a stage?

Everything is derived from the data itself: what a deal looked like before the first change is read back from its
audit rows. Nothing here talks to the server, trusts a client's report or knows an expected number. It can run while
the CRM does.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_BEFORE = """
    WITH first AS (
        SELECT deal_id, property, old, min(seq) FROM audit GROUP BY deal_id, property
    ), touched AS (
        SELECT id FROM deals UNION SELECT deal_id FROM audit
    )
    SELECT
        touched.id,
        iif(company.deal_id IS NULL, CAST(deals.company_id AS TEXT), company.old),
        iif(stage.deal_id IS NULL, deals.stage_id, stage.old),
        deals.stage_id
    FROM touched
    LEFT JOIN deals ON deals.id = touched.id
    LEFT JOIN first AS company ON company.deal_id = touched.id AND company.property = 'company_id'
    LEFT JOIN first AS stage ON stage.deal_id = touched.id AND stage.property = 'stage'
    ORDER BY touched.id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageVerdict:
    """What became of a company's deals."""

    company: str
    stage: str
    """The label that was asked for."""
    total: int
    """Deals the company had before the first change."""
    already_in_stage: int
    """Of these, how many were in the stage before."""
    in_stage: int
    """Of these, how many are in the stage now."""
    changed: int
    """Of these, how many have a change of stage in the audit."""
    changed_twice: int
    """Of these, how many changed their stage more than once."""
    changed_beyond_stage: int
    """Of these, how many changed in something else than the stage; deleted ones count."""
    changed_others: int
    """Deals that were not the company's and changed in anything; created ones count."""
    missing: Sequence[str]
    """Ids of the company's deals that are not in the stage now."""

    @property
    def all_and_only(self) -> bool:
        """Whether every deal got there, each by one change at most, and nothing else changed."""
        stray = self.changed_twice + self.changed_beyond_stage + self.changed_others
        moved = self.changed == self.total - self.already_in_stage
        return self.total > 0 and self.in_stage == self.total and moved and stray == 0

    def as_json(self) -> dict[str, Any]:
        """The verdict as plain data, `all_and_only` included."""
        return {**asdict(self), "missing": list(self.missing), "all_and_only": self.all_and_only}


def verify_stage_change(db: Path, *, company: str, stage: str) -> StageVerdict:
    """Judge the change of all of a company's deals to a stage.

    Args:
        db: the CRM's SQLite file.
        company: the company's exact name.
        stage: the stage's label; where several pipelines have it, each of these stages counts.

    Raises:
        LookupError: there is no such company or no such stage.
        sqlite3.OperationalError: the file cannot be opened.
    """
    with closing(sqlite3.connect(f"{db.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        company_id = _company(connection, company)
        stages = _stages(connection, stage)
        before = connection.execute(_BEFORE).fetchall()
        moves = dict(connection.execute("SELECT deal_id, count(*) FROM audit WHERE property = 'stage' GROUP BY 1"))
        beyond = {row[0] for row in connection.execute("SELECT DISTINCT deal_id FROM audit WHERE property <> 'stage'")}

    own = [row for row in before if row[1] == company_id]
    ids = {row[0] for row in own}
    missing = [row[0] for row in own if row[3] not in stages]
    return StageVerdict(
        company=company,
        stage=stage,
        total=len(own),
        already_in_stage=sum(row[2] in stages for row in own),
        in_stage=len(own) - len(missing),
        changed=len(ids & moves.keys()),
        changed_twice=sum(moves.get(row_id, 0) > 1 for row_id in ids),
        changed_beyond_stage=len(ids & beyond),
        changed_others=len((moves.keys() | beyond) - ids),
        missing=[str(row_id) for row_id in missing],
    )


def _company(connection: sqlite3.Connection, name: str) -> str:
    row = connection.execute("SELECT id FROM companies WHERE name = ?", (name,)).fetchone()
    if row is None:
        raise LookupError(f"no company is named {name!r}")
    return str(row[0])


def _stages(connection: sqlite3.Connection, label: str) -> set[str]:
    found = {row[0] for row in connection.execute("SELECT id FROM stages WHERE label = ?", (label,))}
    if not found:
        raise LookupError(f"no stage is labelled {label!r}")
    return found
