"""Bundles as files: what is in them, and what is refused."""

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from random import Random

import pytest

from tests.unit.bundles.corpus import approvals, conversations, crib_of, nested, single_calls
from toolcrib import Crib, tool
from toolcrib.contracts import InvalidInput, SecretReference, digest
from toolcrib.core.runs.journal import bundles
from toolcrib.core.runs.journal.bundles import BundleWriter, read_bundle
from toolcrib.crib.runs.bundles import replay_file


async def a_bundle() -> bytes:
    """The bundle of a small run."""
    return next(iter((await approvals(Random(1))).values()))


def entries_of(data: bytes) -> dict[str, bytes]:
    """The entries of a bundle."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(entries: Mapping[str, bytes], *, signed: bool = True) -> bytes:
    """A bundle of entries; the manifest is made to fit, if it shall be."""
    entries = dict(entries)
    if signed:
        manifest = json.loads(entries["manifest.json"])
        named = {name: digest(data) for name, data in entries.items() if name != "manifest.json"}
        entries["manifest.json"] = json.dumps({**manifest, "entries": named}).encode()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
        archive.comment = digest(entries.get("manifest.json", b"")).encode()
    return file.getvalue()


@pytest.mark.requirement("bundles.manifest")
async def test_the_manifest_says_what_is_there_and_what_is_not():
    async with crib_of() as crib:
        result = await crib.invoke("search_deals", {"company": "Acme"}, conversation_id="c")
        file = io.BytesIO()
        manifest = await crib.export_run(result.run_id, file)

    found = entries_of(file.getvalue())
    assert manifest.format == 1
    assert manifest.nested == (manifest.root_run_id,) == (result.run_id,)
    assert manifest.entries == {name: digest(data) for name, data in found.items() if name != "manifest.json"}
    assert [name.partition("/")[0] for name in sorted(manifest.entries)] == ["definitions", "runs"]
    assert read_bundle(file).manifest == manifest


@pytest.mark.requirement("bundles.manifest")
async def test_the_turns_before_are_in_the_bundle_of_a_turn_and_what_is_gone_is_named():
    found = await conversations(Random(3))
    read = [read_bundle(io.BytesIO(data)) for data in found.values()]

    assert {len(bundle.runs) for bundle in read} == set(range(1, len(found) + 1))
    assert {bundle.manifest.left_out for bundle in read} == {()}


@pytest.mark.requirement("bundles.size")
def test_what_is_there_is_not_written_twice():
    file = io.BytesIO()
    writer = BundleWriter(file)
    for _ in range(2):
        writer.blob(b"the same text")
    writer.close(run_id="run_1", root_run_id="run_1", nested=(), removed=(), left_out=())

    assert [name for name in entries_of(file.getvalue()) if name.startswith("blobs/")] == [
        f"blobs/{digest(b'the same text')}"
    ]
    assert writer.payload_bytes == len(b"the same text")


@pytest.mark.requirement("bundles.no_secrets")
async def test_no_secret_that_a_tool_got_is_in_the_bundle():
    @tool(secrets=(SecretReference(name="key", reference="${env:PLANTED}"),))
    async def look() -> str:
        """Looks."""
        return "the planted-secret-4711 was seen"

    async with Crib("memory://", environment={"PLANTED": "planted-secret-4711"}) as crib:
        crib.add(look)
        result = await crib.invoke("look", {})
        file = io.BytesIO()
        await crib.export_run(result.run_id, file)

    assert result.ok
    assert not [name for name, data in entries_of(file.getvalue()).items() if b"planted-secret-4711" in data]


def without(name: str) -> Callable[[dict[str, bytes]], bytes]:
    """Leaves an entry out, the manifest unchanged."""
    return lambda entries: packed(
        {key: data for key, data in entries.items() if not key.startswith(name)}, signed=False
    )


def with_entry(name: str, data: bytes, *, signed: bool = True) -> Callable[[dict[str, bytes]], bytes]:
    """Adds an entry, or replaces it."""
    return lambda entries: packed({**entries, name: data}, signed=signed)


def with_run(change: Callable[[bytes], bytes]) -> Callable[[dict[str, bytes]], bytes]:
    """Changes the run's entry, and the manifest with it."""

    def made(entries: dict[str, bytes]) -> bytes:
        return packed({name: change(data) if name.startswith("runs/") else data for name, data in entries.items()})

    return made


def twice(entries: dict[str, bytes]) -> bytes:
    """One name two times."""
    file = io.BytesIO(packed(entries))
    with zipfile.ZipFile(file, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("manifest.json", b"{}")
    return file.getvalue()


NUMBER = b'"number":' + b"9" * 4000
DEEP = b'{"a":' * 500 + b"1" + b"}" * 500


def with_nested(entries: dict[str, bytes]) -> bytes:
    """The manifest names a nested run that is not there."""
    manifest = json.loads(entries["manifest.json"])
    changed = {**manifest, "nested": [*manifest["nested"], "run_0"]}
    return packed({**entries, "manifest.json": json.dumps(changed).encode()})


def of_no_family(entries: dict[str, bytes]) -> bytes:
    """The manifest counts no run to the family."""
    manifest = json.loads(entries["manifest.json"])
    changed = {**manifest, "nested": list[str]()}
    return packed({**entries, "manifest.json": json.dumps(changed).encode()})


def with_name(entries: dict[str, bytes]) -> bytes:
    """A definition, which cannot be read, has no name."""
    body = json.loads(next(data for name, data in entries.items() if name.startswith("definitions/")))
    changed = json.dumps({**body, "name": "", "body": {}, "content_hash": "sha256:0"}).encode()
    return with_entry(f"definitions/{digest(changed)}.json", changed)(entries)


HOSTILE: Mapping[str, tuple[Callable[[dict[str, bytes]], bytes], str]] = {
    "no archive": (lambda _: b"PK nothing", "is not a bundle, or is damaged"),
    "empty": (lambda _: b"", "is not a bundle, or is damaged"),
    "no manifest": (without("manifest.json"), "is not a bundle, or is damaged|is missing, so this is not a bundle"),
    "no run": (without("runs/"), "is missing"),
    "path": (with_entry("../../etc/passwd", b"x"), r"'\.\./\.\./etc/passwd' is not a valid name of an entry"),
    "absolute": (with_entry("/blobs/x", b"x"), "is not a valid name of an entry"),
    "unnamed": (with_entry(f"blobs/{'0' * 64}", b"x", signed=False), "is not named in the manifest"),
    "twice": (twice, "'manifest.json' is there twice"),
    "no nested run": (with_nested, "names the run 'run_0', which is not there"),
    "no family": (of_no_family, "does not count its own run to the family"),
    "no events": (with_run(lambda data: data.split(b"\n")[0]), "does not begin with run_started"),
    "no name": (with_name, "has a definition with something else at 'name'"),
    "format": (with_entry("manifest.json", b'{"format": 2}', signed=False), "has format '2', and this release reads 1"),
    "no JSON": (with_run(lambda data: data + b"\n{"), "is not valid JSON"),
    "deep": (with_run(lambda data: data + b"\n" + DEEP), "is not valid JSON: recursion limit exceeded"),
    "infinite": (with_run(lambda data: data + b"\n[1e999]"), "has something else at|is no JSON"),
    "number": (
        with_run(lambda data: data.replace(b'"number":2', b'"number":' + b"9" * 4000)),
        "not numbered from 1|has",
    ),
    "left out": (
        with_run(lambda data: b"\n".join(data.split(b"\n")[:2] + data.split(b"\n")[3:])),
        "not numbered from 1",
    ),
    "other run": (with_run(lambda data: data.replace(b'"run_id":"run_', b'"run_id":"ran_')), "holds the run 'ran_"),
    "no event": (with_run(lambda data: data + b'\n{"type": "nothing"}'), "has something else at"),
}


@pytest.mark.requirement("bundles.hostile")
@pytest.mark.parametrize("what", HOSTILE)
async def test_a_hostile_bundle_is_refused_with_what_is_wrong(what: str):
    change, message = HOSTILE[what]
    changed = change(entries_of(await a_bundle()))

    with pytest.raises(InvalidInput, match=message) as refused:
        await replay_file(io.BytesIO(changed), "x.bundle")
    assert str(refused.value).startswith("x.bundle")


@pytest.mark.requirement("bundles.hostile")
async def test_every_bit_that_flips_is_seen_or_does_not_matter():
    data = await a_bundle()
    whole = read_bundle(io.BytesIO(data))
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1 << (place % 8)
        try:
            read = read_bundle(io.BytesIO(bytes(changed)))
        except InvalidInput:
            continue
        assert read == whole


@pytest.mark.requirement("bundles.hostile")
async def test_every_bundle_that_is_cut_off_is_refused():
    data = await a_bundle()
    for length in range(len(data)):
        with pytest.raises(InvalidInput):
            read_bundle(io.BytesIO(data[:length]))


@pytest.mark.requirement("bundles.hostile")
@pytest.mark.parametrize(("limit", "value"), [("MOST_ENTRIES", 1), ("MOST_ENTRY_BYTES", 100), ("MOST_BYTES", 100)])
async def test_what_is_too_much_is_refused(monkeypatch: pytest.MonkeyPatch, limit: str, value: int):
    data = await a_bundle()
    monkeypatch.setattr(bundles, limit, value)

    with pytest.raises(InvalidInput, match=r"is the most|unpacks to more than"):
        read_bundle(io.BytesIO(data))


@pytest.mark.requirement("bundles.hostile")
async def test_an_entry_that_unpacks_to_far_more_than_it_is_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bundles, "_SMALL", 1000)
    zeros = b"0" * 5_000_000
    changed = packed({**entries_of(await a_bundle()), f"blobs/{digest(zeros)}": zeros})

    with pytest.raises(InvalidInput, match="unpacks to more than"):
        read_bundle(io.BytesIO(changed))


@pytest.mark.requirement("bundles.old")
async def test_what_events_of_an_older_release_do_not_have_is_not_compared():
    data = next(iter((await single_calls(Random(0))).values()))
    entries = entries_of(data)

    def older(text: bytes) -> bytes:
        first, *lines = text.split(b"\n")
        events = [json.loads(line) for line in lines]
        for entry in events:
            entry["event"].pop("tokens", None)
            entry["event"].pop("wrote", None)
            entry["event"].get("envelope", {}).pop("tainted", None)
        return b"\n".join([first, *(json.dumps(entry).encode() for entry in events)])

    changed = packed({name: older(text) if name.startswith("runs/") else text for name, text in entries.items()})

    assert (await replay_file(io.BytesIO(changed))).same


@pytest.mark.requirement("bundles.nested")
async def test_a_nested_run_is_told_about_by_itself():
    found = read_bundle(io.BytesIO(next(iter((await nested(Random(2))).values()))))
    assert len(found.manifest.nested) > 1
