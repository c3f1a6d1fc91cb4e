"""Bundles: one ZIP file with a run and everything needed to replay it.

It has `manifest.json`, one `runs/ID.jsonl` per run (its row and signals, then its events), one `definitions/HASH.json`
per revision, and one `blobs/DIGEST` per text. The manifest has the SHA-256 of every entry, and the archive's comment
is the manifest's. Reading a bundle runs nothing and writes nothing to disk, and checks every size, name and digest.
JSON is read up to 200 levels deep.
"""

import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import IO, Final, NoReturn, TypeVar, cast

from msgspec import Struct
from pydantic import AwareDatetime, Field, ValidationError
from pydantic_core import from_json, to_json

from toolcrib.contracts import (
    Contract,
    InvalidInput,
    Json,
    JsonObject,
    LifeCycle,
    Record,
    Run,
    RunEvent,
    RunStarted,
    Signal,
    digest,
)
from toolcrib.contracts.base.base import release
from toolcrib.core.runs.journal.history import StoredRun
from toolcrib.infrastructure.store import Definition, DefinitionKind

FORMAT: Final = 1
"""Version of the format that this release writes; it reads all earlier ones."""
MOST_ENTRIES: Final = 100_000
MOST_ENTRY_BYTES: Final = 256 * 1024 * 1024
MOST_BYTES: Final = 1024 * 1024 * 1024
"""Of all entries together, unpacked."""
MOST_RATIO: Final = 200
"""Bytes that one byte of the file may unpack to, beyond `_SMALL`."""
_SMALL: Final = 16 * 1024 * 1024
_ENCRYPTED: Final = 0x1
_MANIFEST: Final = "manifest.json"
_NAME: Final = re.compile(r"runs/[A-Za-z0-9_-]{1,128}\.jsonl|definitions/[0-9a-f]{64}\.json|blobs/[0-9a-f]{64}")
_MOMENT: Final = (1980, 1, 1, 0, 0, 0)
"""Of every entry, so that the same run makes the same bytes."""

_ContractT = TypeVar("_ContractT", bound=Contract | Record)


class LeftOut(Contract):
    """Something that a bundle does not hold."""

    what: str
    why: str


class Manifest(Contract):
    """What is in a bundle, and what is not."""

    format: int = FORMAT
    release: str
    """Version of the release that has written it."""
    run_id: str
    """The run that it was made for."""
    root_run_id: str
    """The outermost run of its family."""
    nested: tuple[str, ...]
    """The runs of the family, the outermost among them; the others in the bundle were only read by it."""
    entries: dict[str, str]
    """SHA-256 of each entry by its name."""
    removed: tuple[str, ...] = ()
    """Content hashes of the definitions whose names had been removed: found by hash, and by nothing else."""
    left_out: tuple[LeftOut, ...] = ()


class Bundle(Struct, frozen=True):
    """What a bundle holds, read and checked."""

    manifest: Manifest
    runs: Mapping[str, StoredRun]
    definitions: Sequence[Definition]
    blobs: Mapping[str, bytes]


class _Row(Contract):
    run: Run
    signals: dict[str, Signal]


class _Body(Contract):
    """A revision of a definition."""

    kind: DefinitionKind
    realm: str
    name: str
    version: str
    revision: int = Field(ge=0)
    content_hash: str
    body: JsonObject
    made_by: str
    created_at: AwareDatetime
    status: LifeCycle = "active"
    status_message: str | None = None
    sunset: AwareDatetime | None = None
    replacement: str | None = None


class BundleWriter:
    """Writes one bundle, entry by entry.

    Args:
        file: Where to; it must be able to seek.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED)
        self._entries: dict[str, str] = {}
        self.payload_bytes = 0
        """What was written, before it was packed."""

    def run(self, stored: StoredRun) -> None:
        """Add a run."""
        row = _Row(run=stored.run, signals=dict(stored.signals))
        lines = [_dump(row.model_dump(mode="json")), *(_dump(_as_written(entry)) for entry in stored.events)]
        self._add(f"runs/{stored.run.run_id}.jsonl", b"\n".join(lines))

    def definition(self, found: Definition) -> None:
        """Add a revision of a definition."""
        body = _Body.model_validate({name: getattr(found, name) for name in _Body.model_fields})
        data = _dump(body.model_dump(mode="json"))
        self._add(f"definitions/{digest(data)}.json", data)

    def blob(self, data: bytes) -> None:
        """Add a text."""
        self._add(f"blobs/{digest(data)}", data)

    def close(
        self,
        *,
        run_id: str,
        root_run_id: str,
        nested: Sequence[str],
        removed: Sequence[str],
        left_out: Sequence[LeftOut],
    ) -> Manifest:
        """Add the manifest, and finish the file."""
        manifest = Manifest(
            release=release(),
            run_id=run_id,
            root_run_id=root_run_id,
            nested=tuple(nested),
            removed=tuple(removed),
            entries=self._entries,
            left_out=tuple(left_out),
        )
        data = _dump(manifest.model_dump(mode="json"))
        self._write(_MANIFEST, data)
        self._zip.comment = digest(data).encode()
        self._zip.close()
        return manifest

    def _add(self, name: str, data: bytes) -> None:
        if name not in self._entries:
            self._entries[name] = digest(data)
            self.payload_bytes += len(data)
            self._write(name, data)

    def _write(self, name: str, data: bytes) -> None:
        info = zipfile.ZipInfo(name, _MOMENT)
        info.compress_type = zipfile.ZIP_DEFLATED
        self._zip.writestr(info, data)


def read_bundle(file: IO[bytes], name: str = "bundle") -> Bundle:
    """Read a bundle, and check every part of it.

    Args:
        file: The archive; it must be able to seek.
        name: Of the file, for messages.

    Raises:
        InvalidInput: It is no bundle, was written by a newer release, is damaged, or is too large. Names the entry.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            return _Reader(archive, name).bundle()
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError) as problem:
        msg = f"{name} is not a bundle, or is damaged: {problem}"
        raise InvalidInput(msg) from problem
    except (UnicodeDecodeError, ValueError) as problem:
        msg = f"{name} is damaged: {str(problem)[:200]}"
        raise InvalidInput(msg) from problem


class _Reader:
    """Reads one archive."""

    def __init__(self, archive: zipfile.ZipFile, file: str) -> None:
        self._archive = archive
        self._file = file
        self._left = MOST_BYTES

    def bundle(self) -> Bundle:
        infos = self._entries_by_name()
        manifest = self._manifest(infos)
        texts = {name: self._entry(infos[name], expected) for name, expected in manifest.entries.items()}
        runs = {
            stored.run.run_id: stored
            for name, data in texts.items()
            if name.startswith("runs/")
            for stored in (self._run(name, data),)
        }
        missing = [run_id for run_id in (manifest.root_run_id, manifest.run_id, *manifest.nested) if run_id not in runs]
        if missing:
            self._refuse(_MANIFEST, f"names the run {missing[0]!r}, which is not there")
        if not {manifest.root_run_id, manifest.run_id} <= {*manifest.nested}:
            self._refuse(_MANIFEST, "does not count its own run to the family")
        return Bundle(
            manifest,
            runs,
            [self._definition(name, data) for name, data in texts.items() if name.startswith("definitions/")],
            {name.removeprefix("blobs/"): data for name, data in texts.items() if name.startswith("blobs/")},
        )

    def _entries_by_name(self) -> Mapping[str, zipfile.ZipInfo]:
        found: dict[str, zipfile.ZipInfo] = {}
        infos = self._archive.infolist()
        if len(infos) > MOST_ENTRIES:
            self._refuse(_MANIFEST, f"there are {len(infos)} entries, and {MOST_ENTRIES} is the most")
        for info in infos:
            if info.filename in found:
                self._refuse(info.filename, "is there twice")
            if info.filename != _MANIFEST and not _NAME.fullmatch(info.filename):
                self._refuse(info.filename, "is not a valid name of an entry")
            if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED} or info.flag_bits & _ENCRYPTED:
                self._refuse(info.filename, "is packed in a way that bundles are not")
            found[info.filename] = info
        return found

    def _manifest(self, infos: Mapping[str, zipfile.ZipInfo]) -> Manifest:
        if _MANIFEST not in infos:
            self._refuse(_MANIFEST, "is missing, so this is not a bundle")
        data = self._entry(infos[_MANIFEST], self._archive.comment.decode("ascii", "replace"))
        value = self._json(_MANIFEST, data)
        written = cast("JsonObject", value).get("format") if isinstance(value, dict) else None
        if written != FORMAT:
            self._refuse(
                _MANIFEST, f"has format {str(written)[:20]!r}, and this release reads {FORMAT}; use a newer one"
            )
        manifest = self._valid(_MANIFEST, Manifest, data)
        unnamed = sorted(infos.keys() - manifest.entries.keys() - {_MANIFEST})
        absent = sorted(manifest.entries.keys() - infos.keys())
        if unnamed or absent:
            self._refuse((unnamed or absent)[0], "is not named in the manifest" if unnamed else "is missing")
        return manifest

    def _entry(self, info: zipfile.ZipInfo, expected: str) -> bytes:
        most = min(MOST_ENTRY_BYTES, self._left, max(_SMALL, info.compress_size * MOST_RATIO))
        with self._archive.open(info) as packed:
            data = packed.read(most + 1)
        if len(data) > most:
            self._refuse(info.filename, f"unpacks to more than {most} bytes")
        self._left -= len(data)
        if digest(data) != expected:
            self._refuse(info.filename, f"has the digest {digest(data)}, and {expected[:64]} was written")
        return data

    def _run(self, name: str, data: bytes) -> StoredRun:
        first, *rest = data.split(b"\n")
        row = self._valid(name, _Row, first)
        if name != f"runs/{row.run.run_id}.jsonl":
            self._refuse(name, f"holds the run {row.run.run_id!r}")
        events = [self._valid(name, RunEvent, line) for line in rest]
        numbers = [entry.number for entry in events]
        if numbers != list(range(1, len(events) + 1)) or {entry.run_id for entry in events} - {row.run.run_id}:
            self._refuse(name, "has events that are not numbered from 1, or are another run's")
        if not events or not isinstance(events[0].event, RunStarted):
            self._refuse(name, "does not begin with run_started")
        return StoredRun(row.run, events, row.signals)

    def _definition(self, name: str, data: bytes) -> Definition:
        body = self._valid(name, _Body, data)
        return Definition(**{field: getattr(body, field) for field in _Body.model_fields})

    def _json(self, name: str, data: bytes) -> Json:
        try:
            return from_json(data, allow_inf_nan=False)
        except ValueError as problem:
            self._refuse(name, f"is not valid JSON: {str(problem)[:200]}")

    def _valid(self, name: str, contract: type[_ContractT], data: bytes) -> _ContractT:
        self._json(name, data)
        try:
            return contract.model_validate_json(data)
        except ValidationError as problem:
            first = problem.errors(include_url=False, include_input=False)[0]
            self._refuse(
                name, f"has something else at {'.'.join(map(str, first['loc']))[:200]!r}: {first['msg'][:200]}"
            )

    def _refuse(self, entry: str, why: str) -> NoReturn:
        msg = f"{self._file}: entry {entry[:200]!r} {why}"
        raise InvalidInput(msg)


def _as_written(entry: RunEvent) -> JsonObject:
    """An event with the fields that were written then: what an older release did not know stays out."""
    return {**entry.model_dump(mode="json", exclude={"event"}), "event": entry.event.as_written()}


def _dump(value: Json) -> bytes:
    return to_json(value)
