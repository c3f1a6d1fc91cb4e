"""Compare the requirement manifest with the tests: `python -m tools.requirements_check`.

It collects the whole suite, soak tests included, without running it. A requirement without a test is a fault unless its
entry names a gap; known gaps are listed. That a test names a known requirement is checked by `tests/conftest.py`, at
every collection.
"""

import contextlib
import io
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import pytest

from tests.contract import manifest


class Proofs:
    """A pytest plugin that counts the tests of each requirement."""

    def __init__(self) -> None:
        self.by_requirement: Counter[str] = Counter()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Count when everything was collected without errors."""
        for item in session.items:
            named = (mark.args for mark in item.iter_markers("requirement"))
            self.by_requirement.update(str(id_) for ids in named for id_ in ids)


class CollectionFailedError(Exception):
    """The suite cannot be collected; the message is pytest's own output."""


def collect(arguments: Iterable[str] = ()) -> Counter[str]:
    """Number of tests by requirement id, in the tests that the arguments name (all of `testpaths` when empty).

    Raises:
        CollectionFailedError: A test module does not import, or breaks the rules of `tests/conftest.py`.
    """
    proofs = Proofs()
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        status = pytest.main(
            ["--collect-only", "-qq", "-m", "", "-p", "no:cacheprovider", *arguments], plugins=[proofs]
        )
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise CollectionFailedError(output.getvalue())
    return proofs.by_requirement


def faults(requirements: Mapping[str, manifest.Requirement], proofs: Mapping[str, int]) -> Iterator[str]:
    """One line per requirement that neither a test nor a gap covers."""
    for id_, requirement in requirements.items():
        if requirement.gap is None and not proofs.get(id_):
            yield f"{requirement.source.name}: {id_}: no test names this requirement; write one, or name the gap"


def main() -> int:
    """Print known gaps, faults and a count; returns 1 if there is any fault."""
    try:
        requirements = manifest.load()
        proofs = collect()
    except (manifest.ManifestError, CollectionFailedError) as error:
        print(error)
        return 1
    gaps = [f"known gap: {id_}: {requirement.gap}" for id_, requirement in requirements.items() if requirement.gap]
    found = list(faults(requirements, proofs))
    for line in (*gaps, *found):
        print(f"requirements: {line}")
    print(
        f"requirements: {len(requirements)} in the manifest, {len(gaps)} with a known gap, {len(found)} without a test"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
