"""Databases for the tests of entities: SQLite in a file and a real PostgreSQL server, each test with an empty one."""

from pathlib import Path

import pytest

from tests.servers.postgres import PostgresServer


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of either kind, without a driver in its URL."""
    if request.param == "sqlite":
        file = tmp_path / "shop.db"
        file.touch()
        return f"sqlite:///{file}"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.database()
