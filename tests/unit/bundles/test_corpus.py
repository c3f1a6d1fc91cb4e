"""The corpus: at least 300 runs of every kind, each in a bundle, replayed where nothing outside can be reached."""

import asyncio
import io
import json
import sys
import zipfile
from pathlib import Path

import pytest

from tests.unit.bundles.corpus import corpus

ROOT = Path(__file__).parents[3]


def payload(bundle: bytes) -> int:
    """Bytes of what a bundle holds, each thing once, unpacked; the manifest is not what anybody wants to have."""
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        return sum(info.file_size for info in archive.infolist() if info.filename != "manifest.json")


async def replayed_in_a_cell(folder: Path) -> dict[str, dict[str, object]]:
    """What the replays of a folder's bundles come to, in a process that may reach nothing."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.unit.bundles.blocked", str(folder), cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    assert process.returncode == 0
    return json.loads(said)


@pytest.mark.requirement("bundles.same_events", "bundles.alone", "bundles.size")
@pytest.mark.parametrize("size", [300, pytest.param(1500, marks=pytest.mark.soak)])
async def test_all_runs_of_the_corpus_make_the_same_events_where_nothing_can_be_reached(tmp_path: Path, size: int):
    bundles = await corpus(size)
    for run_id, data in bundles.items():
        (tmp_path / run_id).write_bytes(data)

    found = await replayed_in_a_cell(tmp_path)

    assert len(found) == len(bundles) >= size
    assert {run_id: one["divergence"] for run_id, one in found.items() if not (one["same"] and one["equal"])} == {}
    assert [run_id for run_id, data in bundles.items() if len(data) > 1.2 * payload(data)] == []
