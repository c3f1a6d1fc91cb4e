"""`toolcrib store`."""

import json
from pathlib import Path

import pytest

from tests.unit.cli.command import toolcrib
from tests.unit.store.test_migrating import REVISIONS, stamp, write
from toolcrib.infrastructure.store.database.tables import HEAD

pytestmark = pytest.mark.requirement("migrations.cli")


def test_an_old_store_is_looked_at_and_migrated(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/crib.db"
    write(url, "0006", tmp_path / "crib-blobs")

    status = json.loads(toolcrib("store", "show", "--json", store=url).stdout)
    would = toolcrib("store", "migrate", "--dry-run", store=url).stdout
    assert (status["revision"], status["newest"], status["pending"][0]["revision"]) == ("0006", HEAD, "0007")
    assert "0007: What somebody's last run of a tool was" in would
    assert stamp(url) == "0006"

    done = toolcrib("store", "migrate", store=url)
    assert (done.exit_code, stamp(url)) == (0, HEAD)
    assert f"has schema revision {HEAD}; this release has {HEAD}" in " ".join(done.stdout.split())


def test_a_store_that_has_no_schema_or_is_not_there_is_refused(tmp_path: Path) -> None:
    memory = toolcrib("store", "show", store="memory://")
    missing = toolcrib("store", "show", store=f"sqlite:///{tmp_path}/none.db")

    assert (memory.exit_code, "has no schema" in memory.stderr) == (2, True)
    assert missing.exit_code == 1
    assert not (tmp_path / "none.db").exists()
    assert [f"{number:04d}" for number in range(1, 8)] == REVISIONS
