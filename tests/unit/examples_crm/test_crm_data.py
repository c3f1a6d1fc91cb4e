"""The CRM's data: what is in it, and that a seed decides it."""

import sqlite3
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from examples.crm.names import DECOY_DEALS
from examples.crm.store import Store

pytestmark = pytest.mark.requirement("crm.deterministic_data")

STAGES_OF_COMPANY = """
    SELECT pipelines.label, stages.label, count(*)
    FROM deals
    JOIN companies ON companies.id = deals.company_id
    JOIN stages ON stages.id = deals.stage_id
    JOIN pipelines ON pipelines.id = deals.pipeline_id
    WHERE companies.name = ?
    GROUP BY stages.id
"""


def dump(path: Path, seed: int) -> list[str]:
    with closing(Store(path, seed=seed)) as store:
        return list(store.connection.iterdump())


@pytest.fixture
def connection(seeded: Path) -> Generator[sqlite3.Connection]:
    with closing(sqlite3.connect(seeded)) as opened:
        yield opened


def test_the_same_seed_makes_the_same_rows_and_another_seed_others(tmp_path: Path) -> None:
    first = dump(tmp_path / "first.db", 11)
    assert dump(tmp_path / "again.db", 11) == first
    assert dump(tmp_path / "other.db", 12) != first


@pytest.mark.parametrize(
    ("table", "rows"), [("deals", 5_000), ("companies", 400), ("contacts", 1_200), ("owners", 25), ("pipelines", 2)]
)
def test_the_tables_have_their_sizes(connection: sqlite3.Connection, table: str, rows: int) -> None:
    assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (rows,)


def test_acme_corp_has_237_deals_in_every_stage_of_the_sales_pipeline(connection: sqlite3.Connection) -> None:
    found = connection.execute(STAGES_OF_COMPANY, ("Acme Corp",)).fetchall()
    sales = {
        row[0]
        for row in connection.execute(
            "SELECT label FROM stages WHERE pipeline_id IN (SELECT id FROM pipelines WHERE label = 'Sales')"
        )
    }
    assert {pipeline for pipeline, _, _ in found} == {"Sales"}
    assert {stage for _, stage, _ in found} == sales
    assert sum(count for _, _, count in found) == 237


def test_only_one_company_has_acme_corp_in_its_name(connection: sqlite3.Connection) -> None:
    names = [row[0] for row in connection.execute("SELECT name FROM companies WHERE lower(name) LIKE '%acme%'")]
    assert sorted(names) == ["Acme Corp", "Acme Motors", "Corp of Acme"]


def test_deals_named_after_acme_corp_belong_to_others_and_acme_deals_need_not_name_it(
    connection: sqlite3.Connection,
) -> None:
    sql = """
        SELECT deals.name, companies.name = 'Acme Corp' FROM deals JOIN companies ON companies.id = deals.company_id
    """
    rows = connection.execute(sql).fetchall()
    assert sorted(name for name, acme in rows if not acme and "acme corp" in name.lower()) == sorted(DECOY_DEALS)
    assert any("Acme" not in name for name, acme in rows if acme)


def test_labels_are_not_ids_and_only_the_sales_pipeline_has_a_negotiation(connection: sqlite3.Connection) -> None:
    rows = connection.execute(
        "SELECT stages.id, stages.label, pipelines.label FROM stages JOIN pipelines ON pipelines.id = pipeline_id"
    ).fetchall()
    assert all(stage.startswith("stg_") and len(stage) == 8 for stage, _, _ in rows)
    assert [pipeline for _, label, pipeline in rows if label == "Negotiation"] == ["Sales"]
    assert len([label for _, label, _ in rows if label == "Closed won"]) == 2


def test_every_reference_holds(connection: sqlite3.Connection) -> None:
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert connection.execute("SELECT count(*) FROM deals WHERE updated_at < created_at").fetchone() == (0,)


def test_an_existing_file_keeps_its_data_until_it_is_reset(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    before = dump(path, 3)
    assert dump(path, 4) == before
    with closing(Store(path, seed=4, reset=True)) as store:
        assert list(store.connection.iterdump()) != before


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE notes (text TEXT)")
    with pytest.raises(ValueError, match="--reset"):
        Store(path, seed=1)
