"""Bundles that releases have written: they are read, and replay to the same events, for ever."""

import io
from pathlib import Path

import pytest

from toolcrib.crib.runs.bundles import replay_file

FOLDER = Path(__file__).parent / "bundles"
BUNDLES = sorted(FOLDER.glob("v*/*.bundle"))


def opened(path: Path) -> io.BytesIO:
    """A bundle's bytes."""
    return io.BytesIO(path.read_bytes())


@pytest.mark.requirement("bundles.old", "bundles.same_events")
@pytest.mark.parametrize("path", BUNDLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
async def test_a_bundle_of_every_format_replays_to_the_same_events(path: Path):
    found = await replay_file(opened(path), path.name)

    assert found.divergence is None
    assert (found.same, found.digest) == (True, found.recorded_digest)


@pytest.mark.requirement("bundles.old")
def test_there_are_bundles_of_every_format():
    assert {path.parent.name for path in BUNDLES} == {"v1"}
    assert len(BUNDLES) == 16
