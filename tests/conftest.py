"""Rules for the whole suite: a test without a known requirement is a collection error. And what many tests stand on.

The other direction (every requirement has a test) needs the whole suite and is checked by
`tools/requirements_check.py`, so that any part of the suite can still be run alone.
"""

import asyncio
import gc
import os
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.contract import manifest
from tests.servers.postgres import PostgresServer, running_postgres
from tools import shares

settings.register_profile("suite", deadline=None, derandomize=True)
settings.load_profile("suite")

_COVERAGE = "COVERAGE_PROCESS_CONFIG"
"""The variable by which coverage measures the processes that a test starts."""
_COLLECTED_AFTER = 50_000
"""New objects after which the collector looks at the youngest; with Python's own 700 it takes an eighth of all time."""
_REQUIREMENTS = pytest.StashKey[Mapping[str, manifest.Requirement]]()


def pytest_configure(config: pytest.Config) -> None:
    """Read the manifest once per process.

    Raises:
        pytest.UsageError: The manifest is malformed.
    """
    try:
        config.stash[_REQUIREMENTS] = manifest.load()
    except manifest.ManifestError as error:
        raise pytest.UsageError(f"requirement manifest: {error}") from error


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the files that take longest begin first, so that no process is left with one of them in the end."""
    recorded = shares.durations()
    items.sort(key=lambda item: -recorded.get(item.nodeid.partition("::")[0], 0.0))


def pytest_collection_finish() -> None:
    """Spare the garbage collector what lives until the end, and have it look less often for what a test has left."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECTED_AFTER, 20, 50)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test of an unmeasured suite without coverage, and so the processes that it starts."""
    found = shares.load()
    plugin: Any = item.config.pluginmanager.getplugin("_cov")
    coverage: Any = plugin.cov_controller if plugin else None
    if found is None or coverage is None or found.suite_of(item.nodeid) not in found.unmeasured:
        return (yield)
    config = os.environ.pop(_COVERAGE, None)
    coverage.pause()
    try:
        return (yield)
    finally:
        coverage.resume()
        if config is not None:
            os.environ[_COVERAGE] = config


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn a module's collection into an error when one of its tests names no requirement, or an unknown one."""
    report = yield
    tests = (node for node in report.result if isinstance(node, pytest.Item))
    faults = list(_faults(tests, collector.config.stash[_REQUIREMENTS]))
    if not faults:
        return report
    return pytest.CollectReport(report.nodeid, "failed", "\n".join(faults), result=[])


def _faults(tests: Iterable[pytest.Item], known: Mapping[str, manifest.Requirement]) -> Iterable[str]:
    for test in tests:
        named = [str(id_) for mark in test.iter_markers("requirement") for id_ in mark.args]
        if not named:
            yield f"{test.nodeid}: names no requirement; add @pytest.mark.requirement('id')"
        for id_ in named:
            if id_ not in known:
                yield f"{test.nodeid}: unknown requirement {id_!r}; add it to tests/contract/requirements/*.yaml"


@pytest.fixture(scope="session")
def postgres() -> Generator[PostgresServer]:
    """A server for all tests of the process; whoever stops it starts one of their own."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def kept_postgres_store(postgres: PostgresServer) -> str:
    """The URL of a store that has its tables, for one test after the other."""
    from toolcrib.infrastructure.store import open_store

    async def make_tables(url: str) -> str:
        store = open_store(url)
        await store.open()
        await store.close()
        return url

    return asyncio.run(make_tables(postgres.database()))


@pytest.fixture
def postgres_store(postgres: PostgresServer, kept_postgres_store: str) -> Generator[str]:
    """The URL of an empty store on PostgreSQL."""
    yield kept_postgres_store
    postgres.clear(kept_postgres_store.rpartition("/")[2])


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store of each kind."""
    if request.param == "postgres":
        return request.getfixturevalue("postgres_store")
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/crib.db"
