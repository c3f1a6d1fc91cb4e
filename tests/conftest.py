"""Rules for the whole suite: a test without a known requirement is a collection error.

The other direction (every requirement has a test) needs the whole suite and is checked by
`tools/requirements_check.py`, so that any part of the suite can still be run alone.
"""

from collections.abc import Generator, Iterable, Mapping

import pytest
from hypothesis import settings

from tests.contract import manifest

settings.register_profile("suite", deadline=None, derandomize=True)
settings.load_profile("suite")

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
