"""Files of blobs in a folder."""

import asyncio
from pathlib import Path

import pytest

from toolcrib.contracts import InvalidSettings
from toolcrib.contracts.base.errors import StoreUnavailable
from toolcrib.infrastructure.store.blobs.files import FolderObjects, open_objects

PATH = "realm/ab/abcdef"


def files(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


@pytest.mark.requirement("store.blob_files")
async def test_a_file_is_written_once_and_nothing_is_left_beside_it(tmp_path: Path):
    objects = FolderObjects(tmp_path / "above" / "blobs")
    await objects.put(PATH, b"first")
    await objects.put(PATH, b"second")

    assert (await objects.get(PATH), await objects.get("realm/none")) == (b"first", None)
    assert files(tmp_path) == [f"above/blobs/{PATH}"]
    assert (tmp_path / "above" / "blobs").stat().st_mode & 0o077 == 0


@pytest.mark.requirement("store.blob_files")
async def test_of_many_who_write_at_once_one_writes(tmp_path: Path):
    objects = [FolderObjects(tmp_path / "blobs") for _ in range(16)]
    await asyncio.gather(*(each.put(PATH, bytes([number]) * 100_000) for number, each in enumerate(objects)))
    written = await objects[0].get(PATH)

    assert written is not None
    assert len(set(written)) == 1
    assert len(written) == 100_000
    assert files(tmp_path) == [f"blobs/{PATH}"]


@pytest.mark.requirement("store.blob_files")
async def test_a_file_that_appears_in_between_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    objects, exists = FolderObjects(tmp_path), Path.exists
    await objects.put(PATH, b"first")

    def not_yet(path: Path) -> bool:
        return path.name != "abcdef" and exists(path)

    monkeypatch.setattr(Path, "exists", not_yet)
    await objects.put(PATH, b"second")

    assert await objects.get(PATH) == b"first"
    assert files(tmp_path) == [PATH]


@pytest.mark.requirement("store.blob_files")
async def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "blobs").write_text("a file")

    with pytest.raises(StoreUnavailable, match=r"cannot write to the blobs' folder .*/blobs"):
        await FolderObjects(tmp_path / "blobs").put(PATH, b"data")


@pytest.mark.requirement("shared_state.blob_urls")
def test_a_bucket_without_its_client_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    def found(_name: str) -> None:
        return None

    monkeypatch.setattr("toolcrib.infrastructure.store.blobs.files.find_spec", found)

    with pytest.raises(InvalidSettings, match=r"needs 'obstore', .*: pip install 'toolcrib\[s3\]'"):
        open_objects("s3://bucket/prefix")
