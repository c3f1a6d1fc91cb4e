"""URLs of blobs: which there are, and which are refused."""

import re
import tracemalloc
from pathlib import Path

import pytest

from toolcrib import Crib, SharingOptions
from toolcrib.contracts import InvalidSettings
from toolcrib.crib.settings import Settings, load_settings, value_of
from toolcrib.infrastructure.store import MemoryStore
from toolcrib.infrastructure.store.blobs.buckets import BucketObjects
from toolcrib.infrastructure.store.blobs.files import FolderObjects, open_objects


@pytest.mark.requirement("shared_state.blob_urls")
@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("file:///var/lib/crib%20blobs", "/var/lib/crib blobs/aa/bb"),
        ("s3://crib", "s3://crib/aa/bb"),
        ("s3://crib/", "s3://crib/aa/bb"),
        ("s3://crib/of/acme/?region=eu-central-1", "s3://crib/of/acme/aa/bb"),
        ("s3://my.crib/p?endpoint=https://objects.example.com", "s3://my.crib/p/aa/bb"),
        ("s3://crib?endpoint=http://127.0.0.1:9000", "s3://crib/aa/bb"),
        ("s3://crib?endpoint=http://[::1]:9000", "s3://crib/aa/bb"),
        ("s3://crib?endpoint=http://localhost:9000", "s3://crib/aa/bb"),
        ("s3://crib?endpoint=http://10.0.0.7:9000&allow_http=true", "s3://crib/aa/bb"),
    ],
)
def test_a_url_names_a_folder_or_a_bucket(url: str, where: str) -> None:
    objects = open_objects(url)
    assert isinstance(objects, FolderObjects if url.startswith("file") else BucketObjects)
    assert objects.where("aa/bb") == where


@pytest.mark.requirement("shared_state.blob_urls")
@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "names no folder or bucket; use file:///path"),
        ("file://", "names no folder"),
        ("file:///", "names no folder"),
        ("file://host/folder", "names no folder"),
        ("gs://crib", "scheme 'gs'"),
        ("s3://", "bucket ''"),
        ("s3://Crib", "bucket 'Crib'"),
        ("s3://AKIA:swordfish@crib", "must not have credentials: set AWS_ACCESS_KEY_ID"),
        ("s3://AKIA:swordfish#1@crib", "must not have credentials"),
        ("s3://[::1/crib", "has an invalid address"),
        ("s3://crib?endpoint=http://[::1", "must be https://host"),
        ("s3://crib?endpoint=https://objects.example.com:none", "must be https://host"),
        ("s3://crib?secret_access_key=swordfish", "parameter 'secret_access_key'; it may have region, endpoint"),
        ("s3://crib?endpoint=objects.example.com", "must be https://host"),
        ("s3://crib?endpoint=ftp://objects.example.com", "must be https://host"),
        ("s3://crib?endpoint=https://", "must be https://host"),
        ("s3://crib?endpoint=https://AKIA:swordfish@host", "without credentials"),
        ("s3://crib?endpoint=http://10.0.0.7:9000", "plain text to another machine; use https, or add allow_http=true"),
        ("s3://crib?endpoint=http://10.0.0.7&allow_http=yes", "plain text"),
    ],
)
def test_another_url_is_refused_without_what_it_must_not_have(url: str, why: str) -> None:
    with pytest.raises(InvalidSettings, match=re.escape(why)) as refused:
        open_objects(url)
    assert "swordfish" not in str(refused.value)
    with pytest.raises(InvalidSettings, match=re.escape(why)) as unset:
        load_settings({"blobs": url}, environment={})
    assert "swordfish" not in str(unset.value)


@pytest.mark.requirement("shared_state.blob_urls", "settings.effect")
async def test_a_crib_has_its_blobs_where_the_setting_says(tmp_path: Path) -> None:
    settings = Settings(store=f"sqlite:///{tmp_path}/crib.db", blobs=f"file://{tmp_path}/else")
    async with Crib.from_settings(settings) as crib:
        await crib.store.blobs.put(b"a plan", realm="default", made_by="owner")
    assert len([path for path in (tmp_path / "else").rglob("*") if path.is_file()]) == 1
    assert "else" not in repr(settings)
    assert value_of(settings, "blobs") == f"file://{tmp_path}/else"


@pytest.mark.requirement("shared_state.blob_urls")
def test_a_store_that_has_its_blobs_already_takes_no_other_place() -> None:
    with pytest.raises(InvalidSettings, match="a store in memory keeps its blobs in memory"):
        Crib("memory://", sharing=SharingOptions(blobs="file:///folder"))
    with pytest.raises(InvalidSettings, match="a store that was opened before has its blobs"):
        Crib(MemoryStore(), sharing=SharingOptions(blobs="file:///folder"))


@pytest.mark.requirement("shared_state.blob_memory")
async def test_a_large_file_is_in_memory_once_while_it_is_read(tmp_path: Path) -> None:
    objects, large = FolderObjects(tmp_path), 32 * 2**20
    await objects.put("aa/large", bytes(large))
    tracemalloc.start()
    try:
        assert len(await objects.get("aa/large") or b"") == large
        assert tracemalloc.get_traced_memory()[1] < 1.5 * large
    finally:
        tracemalloc.stop()
