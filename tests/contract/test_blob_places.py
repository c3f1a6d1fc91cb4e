"""The promises of blobs, wherever their bytes lie."""

from collections.abc import AsyncGenerator, Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.servers.s3 import CREDENTIALS, SECRET, S3Server, running_s3
from toolcrib.contracts import NotFound, Unavailable, digest
from toolcrib.infrastructure.store import Blobs, open_store

PLAN = b"a plan"


@pytest.fixture(scope="module")
def s3() -> Generator[S3Server]:
    with running_s3() as server:
        yield server


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(params=["memory", "beside", "database", "folder", "bucket", "bucket of a database"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str | None]:
    """The URLs of a store and of the place of its blobs."""
    file, param = f"sqlite:///{tmp_path}/crib.db", str(request.param)
    if "bucket" in param:
        s3: S3Server = request.getfixturevalue("s3")
        store = request.getfixturevalue("postgres_store") if "database" in param else file
        return store, s3.url(s3.bucket(), "of/tests")
    if param == "database":
        return request.getfixturevalue("postgres_store"), None
    if param == "folder":
        return file, f"file://{tmp_path}/else where"
    return ("memory://" if param == "memory" else file), None


@pytest.fixture
async def blobs(place: tuple[str, str | None]) -> AsyncGenerator[Blobs]:
    url, where = place
    store = open_store(url, blobs=where)
    await store.open()
    yield store.blobs
    await store.close()


@pytest.mark.requirement("shared_state.blob_places")
async def test_a_blob_is_named_by_its_digest_and_read_back(blobs: Blobs) -> None:
    for data in (b"", PLAN, bytes(range(256)) * 20_000):
        name = await blobs.put(data, realm="default", made_by="owner")
        assert name == digest(data)
        assert await blobs.get("default", name) == data


@pytest.mark.requirement("shared_state.blob_places")
async def test_a_blob_may_be_put_again_by_anybody_of_its_realm(blobs: Blobs) -> None:
    names = {await blobs.put(PLAN, realm="default", made_by=who) for who in ("ann", "ben", "ann")}
    assert names == {digest(PLAN)}
    assert await blobs.get("default", digest(PLAN)) == PLAN


@pytest.mark.requirement("shared_state.blob_places", "shared_state.blob_failures")
@pytest.mark.parametrize("name", [digest(b"never stored"), "../../crib.db", "", digest(PLAN).upper()])
async def test_what_a_realm_does_not_have_is_not_found(blobs: Blobs, name: str) -> None:
    await blobs.put(PLAN, realm="other", made_by="owner")
    for realm in ("default", "other"):
        with pytest.raises(NotFound):
            await blobs.get(realm, name)
    with pytest.raises(NotFound):
        await blobs.get("default", digest(PLAN))


@pytest.mark.requirement("shared_state.blob_places")
async def test_old_blobs_are_removed_also_if_some_are_gone_already(blobs: Blobs) -> None:
    old, other = [await blobs.put(data, realm="default", made_by="owner") for data in (PLAN, b"another")]
    wanted = [old, other, digest(b"never stored")]
    assert list(await blobs.remove("default", wanted, untouched_since=datetime(2020, 1, 1, tzinfo=UTC))) == []
    later = datetime.now(UTC) + timedelta(hours=1)
    assert set(await blobs.remove("default", wanted, untouched_since=later)) == {old, other}
    assert list(await blobs.remove("default", wanted, untouched_since=later)) == []
    for name in (old, other):
        with pytest.raises(NotFound):
            await blobs.get("default", name)
    assert await blobs.put(PLAN, realm="default", made_by="owner") == old
    assert await blobs.get("default", old) == PLAN


class InBucket:
    """Blobs in a bucket, whose objects can be tampered with."""

    def __init__(self, s3: S3Server, blobs: Blobs, bucket: str) -> None:
        self.s3, self.blobs, self._bucket = s3, blobs, bucket

    def path(self, data: bytes, realm: str = "default") -> str:
        name = digest(data)
        return f"{self._bucket}/of/tests/{digest(realm.encode())[:32]}/{name[:2]}/{name[2:4]}/{name}"


@pytest.fixture
async def bucket(s3: S3Server, tmp_path: Path) -> AsyncGenerator[InBucket]:
    name = s3.bucket()
    store = open_store(f"sqlite:///{tmp_path}/crib.db", blobs=s3.url(name, "of/tests/"))
    await store.open()
    yield InBucket(s3, store.blobs, name)
    await store.close()


@pytest.mark.requirement("shared_state.blob_places")
async def test_an_object_stands_under_its_realms_hash_and_its_digest(bucket: InBucket) -> None:
    await bucket.blobs.put(PLAN, realm="../other", made_by="owner")
    assert bucket.s3.read(bucket.path(PLAN, "../other")) == PLAN


@pytest.mark.requirement("shared_state.blob_places")
async def test_an_object_that_is_there_is_not_written_again(bucket: InBucket) -> None:
    bucket.s3.write(bucket.path(PLAN), b"somebody was here")
    await bucket.blobs.put(PLAN, realm="default", made_by="owner")
    assert bucket.s3.read(bucket.path(PLAN)) == b"somebody was here"


@pytest.mark.requirement("shared_state.blob_failures")
async def test_a_blob_whose_object_is_gone_can_still_be_removed(bucket: InBucket) -> None:
    names = [await bucket.blobs.put(data, realm="default", made_by="owner") for data in (PLAN, b"another")]
    bucket.s3.remove(bucket.path(PLAN))
    later = datetime.now(UTC) + timedelta(hours=1)
    assert set(await bucket.blobs.remove("default", names, untouched_since=later)) == set(names)


@pytest.mark.requirement("shared_state.blob_failures")
async def test_a_damaged_object_and_a_missing_one_are_told_apart(bucket: InBucket) -> None:
    name = await bucket.blobs.put(PLAN, realm="default", made_by="owner")
    bucket.s3.write(bucket.path(PLAN), b"a plaN")
    with pytest.raises(Unavailable, match=f"blob {name} of realm 'default' is damaged: s3://{bucket.path(PLAN)} has"):
        await bucket.blobs.get("default", name)
    bucket.s3.remove(bucket.path(PLAN))
    with pytest.raises(Unavailable, match=f"is missing: nothing is at s3://{bucket.path(PLAN)}; restore"):
        await bucket.blobs.get("default", name)


@pytest.mark.requirement("shared_state.blob_failures")
@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("s3://no-bucket/of?endpoint=SERVER", "NoSuchBucket"),
        ("s3://nobody/of?endpoint=http://127.0.0.1:9", "no answer"),
    ],
)
async def test_a_bucket_that_cannot_be_used_is_unavailable_by_name(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, why: str
) -> None:
    monkeypatch.setattr("toolcrib.infrastructure.store.blobs.buckets._RETRIES", 0)
    store = open_store(f"sqlite:///{tmp_path}/crib.db", blobs=place.replace("SERVER", s3.address))
    await store.open()
    with pytest.raises(Unavailable, match=f"cannot write s3://no[a-z-]+/of/[0-9a-f/]+: {why}; check") as failed:
        await store.blobs.put(PLAN, realm="default", made_by="owner")
    assert SECRET not in str(failed.value)
    with pytest.raises(Unavailable, match=f"cannot read s3://no[a-z-]+/of/[0-9a-f/]+: {why}; check"):
        await store.blobs.get("default", digest(PLAN))
    await store.close()
