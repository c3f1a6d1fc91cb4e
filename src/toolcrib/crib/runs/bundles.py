"""Bundles: export a run to one file, and replay it from that file without a store, settings or a network.

A bundle contains the run, its nested runs, and everything in the store that they refer to. Each value that looks like
a definition's hash, a blob's digest or a run id is looked up, recursively, so that future event types are covered too.
Because any text may contain such values, data of other realms, or that the recipient may not see, is left out.
"""

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import IO, Final, TypeAlias, cast

from pydantic import ValidationError
from pydantic_core import to_json

from toolcrib.contracts import (
    DELEGATES,
    ChildStarted,
    Conflict,
    InvalidInput,
    InvalidSettings,
    Json,
    JsonObject,
    LLMConfig,
    NotFound,
    Replay,
    Run,
    RunFinished,
    RunKind,
    RunStarted,
)
from toolcrib.core.engines import SystemClock
from toolcrib.core.engines.replay import (
    Hear,
    RecordedFamily,
    ReplayEngine,
    ReplayModels,
    ReplaySandbox,
    ReplayServices,
    replay_of,
)
from toolcrib.core.runs import EndedRuns, Program, StoredRun, result_of, turn_run_id
from toolcrib.core.runs.journal.bundles import Bundle, BundleWriter, LeftOut, Manifest, read_bundle
from toolcrib.crib.container.container import CribServices
from toolcrib.crib.container.environment import DefinitionOptions, Environment, SharingOptions
from toolcrib.infrastructure.net import EgressPolicy
from toolcrib.infrastructure.sandbox import Sandbox
from toolcrib.infrastructure.store import Definition, DefinitionKind, Lease, MemoryStore, RunChange, Store
from toolcrib.kinds.dispatch import DelegateRuntime, RuntimeDispatcher
from toolcrib.llm import Cost, TokenUsage


async def replay_recording(
    parts: CribServices, recording: RecordedFamily, run_id: str, *, past: EndedRuns, hear: Hear | None = None
) -> Replay:
    """Replay a recording with the code and the definitions of a crib.

    Args:
        parts: The parts of the crib.
        recording: The family of runs.
        run_id: The run of the bundle to report on.
        past: Reads the other runs that it has read.
        hear: Is told of each request to a model.
    """

    def programs(models: ReplayModels, sandbox: ReplaySandbox) -> Mapping[RunKind, Program]:
        return parts.programs(models.model, sandbox)

    def price(llm: LLMConfig, usage: TokenUsage, at: datetime) -> Cost:
        try:
            return parts.models.model(llm).cost(usage, at)
        except InvalidSettings as problem:
            return Cost(None, f"unknown: {problem}")

    engine = ReplayEngine(
        recording,
        ReplayServices(
            parts.registry,
            programs,
            RuntimeDispatcher(dict.fromkeys(DELEGATES, DelegateRuntime())),
            parts.accounts,
            parts.executor.guardrails,
            parts.outside.store.blobs,
            past,
            price,
            hear=hear,
        ),
    )
    await engine.replay()
    return replay_of(engine.stage, run_id)


_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}")
_DIGEST: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_RUN: Final = re.compile(r"run_[0-9a-f]{32}")
_MOST_READ: Final = 1_000
"""Runs that a family has read, at most."""
_UNSEEN: Final = "it was named, and whom this is for may not read it"

Sees: TypeAlias = Callable[[Run | Definition], bool]
"""Whether the recipient of a bundle may read something; the run itself, its callers and nested runs are not checked."""


class Capture:
    """Reads what belongs to one run.

    Args:
        store: Where from.
        run_id: The run.
        sees: What may be in the bundle.
    """

    def __init__(self, store: Store, run_id: str, sees: Sees = lambda _: True) -> None:
        self._store = store
        self._run_id = run_id
        self._sees = sees
        self._left_out: list[LeftOut] = []
        self._hashes: set[str] = set()
        self._digests: set[str] = set()
        self._mentioned: set[str] = set()
        self._seen: set[str] = set()
        """Hashes and digests that were looked up."""

    async def write(self, file: IO[bytes]) -> Manifest:
        """Write the bundle.

        Raises:
            NotFound: There is no such run.
        """
        run = await self._store.journal.run(self._run_id)
        root_id = run.request.root_run_id or self._run_id
        writer = BundleWriter(file)
        family = await self._family(writer, root_id)
        await self._read_by(writer, family, run.realm)
        found = dict[str, Definition]()
        while self._hashes or self._digests:
            await self._blobs(writer, run.realm)
            await self._definitions(run.realm, found)
        definitions = sorted(found.values(), key=lambda one: (one.kind, one.name, one.revision))
        for definition in definitions:
            writer.definition(definition)
        return writer.close(
            run_id=self._run_id,
            root_run_id=root_id,
            nested=family,
            removed=[one.content_hash for one in definitions if not await self._is_listed(one)],
            left_out=self._left_out,
        )

    async def _family(self, writer: BundleWriter, root_id: str) -> Sequence[str]:
        """Write a run with all its nested runs; returns their ids."""
        family, waiting = list[str](), [root_id]
        while waiting:
            run_id = waiting.pop(0)
            try:
                stored = await self._load_run(run_id)
            except NotFound:
                if run_id == root_id:
                    raise
                self._leave_out(f"run {run_id}", "it was announced, and it is not in the store: never made, or pruned")
                continue
            family.append(run_id)
            self._write(writer, stored)
            request = stored.run.request
            if request.conversation_id is not None:
                turns = range(1, request.turn or 1)
                self._mentioned |= {turn_run_id(request.conversation_id, turn) for turn in turns}
            waiting += [entry.event.child_run_id for entry in stored.events if isinstance(entry.event, ChildStarted)]
        return family

    async def _read_by(self, writer: BundleWriter, family: Iterable[str], realm: str) -> None:
        """Write the other runs that these refer to: earlier turns, and runs that they continue."""
        known = set(family)
        while waiting := sorted(self._mentioned - known):
            for run_id in waiting:
                known.add(run_id)
                if len(known) > _MOST_READ:
                    self._leave_out(f"run {run_id}", f"it was named, and {_MOST_READ} runs are the most of a bundle")
                    continue
                try:
                    stored = await self._load_run(run_id)
                except NotFound:
                    stored = None
                if stored is None or stored.run.realm != realm:
                    self._leave_out(f"run {run_id}", "it was named, and it is not in the store")
                elif not self._sees(stored.run):
                    self._leave_out(f"run {run_id}", _UNSEEN)
                else:
                    self._write(writer, stored)

    async def _load_run(self, run_id: str) -> StoredRun:
        journal = self._store.journal
        run = await journal.run(run_id)
        return StoredRun(run, await journal.events(run_id), await journal.signals(run_id))

    def _write(self, writer: BundleWriter, stored: StoredRun) -> None:
        writer.run(stored)
        self._note(stored.run.request.model_dump(mode="json"))
        for entry in stored.events:
            self._note(entry.event.model_dump(mode="json"))

    def _note(self, value: Json) -> None:
        """Remember what a JSON value names."""
        self._note_text(to_json(value).decode())

    def _note_text(self, text: str) -> None:
        self._hashes |= set(_HASH.findall(text))
        self._digests |= set(_DIGEST.findall(text))
        self._mentioned |= set(_RUN.findall(text))

    async def _blobs(self, writer: BundleWriter, realm: str) -> None:
        """Write the texts that were named, and remember what they name."""
        waiting, self._digests = sorted(self._digests - self._seen), set()
        for name in waiting:
            self._seen.add(name)
            try:
                data = await self._store.blobs.get(realm, name)
            except NotFound:
                continue  # it is the hash of something else, such as arguments
            writer.blob(data)
            self._note_text(data.decode(errors="replace"))

    async def _definitions(self, realm: str, found: dict[str, Definition]) -> None:
        """Find the revisions that were named by hash, and what they name by name: providers and accounts."""
        definitions = self._store.definitions
        waiting, self._hashes = sorted(self._hashes - self._seen), set()
        for content_hash in waiting:
            self._seen.add(content_hash)
            revision = await definitions.get(realm, content_hash)
            if revision is None or not self._keep(revision, content_hash, found):
                continue
            self._note(revision.body)
            for kind, name in sorted(set(_names(revision.body))):
                revisions = await definitions.revisions(kind, realm, name)
                if revisions:
                    self._keep(revisions[-1], f"{kind}/{name}", found)
                else:
                    self._leave_out(f"{kind} {name}", "it was named, and it is not in the store any more")

    def _keep(self, revision: Definition, key: str, found: dict[str, Definition]) -> bool:
        """Take a revision into the bundle, or say why not."""
        if not self._sees(revision):
            self._leave_out(f"{revision.kind} {revision.name}", _UNSEEN)
            return False
        found[key] = revision
        return True

    async def _is_listed(self, definition: Definition) -> bool:
        return bool(await self._store.definitions.revisions(definition.kind, definition.realm, definition.name))

    def _leave_out(self, what: str, why: str) -> None:
        self._left_out.append(LeftOut(what=what, why=why))


def _names(value: Json) -> Iterator[tuple[DefinitionKind, str]]:
    """Providers and accounts that a definition names, however deep."""
    if isinstance(value, dict):
        for key, inner in cast("JsonObject", value).items():
            if key == "provider" and isinstance(inner, str):
                yield "provider", inner
            elif key == "principal_ref" and isinstance(inner, str):
                yield "account", inner
            else:
                yield from _names(inner)
    elif isinstance(value, list):
        for inner in cast("list[Json]", value):
            yield from _names(inner)


_IN_MEMORY: Final = 16 * 1024 * 1024
"""Bytes of a bundle that is kept in memory for a replay; a larger one is written to disk."""


async def replay_run(parts: CribServices, run_id: str, *, parked: bool = False, hear: Hear | None = None) -> Replay:
    """Replay a run from its store, and report where it diverges.

    A nested run is replayed with its callers, whose budget it used; the result is about the nested run only.

    Args:
        parts: Have the store.
        run_id: The run.
        parked: Also replay a run that has not ended, up to its last event.
        hear: Is told of each request to a model.

    Raises:
        NotFound: There is no such run.
        Conflict: It has not ended.
    """
    store = parts.outside.store
    run = await store.journal.run(run_id)
    if not run.ended and not parked:
        msg = f"run {run_id} has not ended; resume it, and replay it when it has, or replay it as far as it has come"
        raise Conflict(msg)
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
        await Capture(store, run_id).write(file)
        file.seek(0)
        bundle = read_bundle(file, f"run {run_id}")
    return await replay_bundle(bundle, parts.outside, hear=hear)


async def replay_file(file: IO[bytes], name: str = "bundle") -> Replay:
    """Replay a run from its bundle alone, and report where it diverges.

    Nothing of the machine is needed but this package: no store, no settings, no functions of an application.

    Args:
        file: The bundle; it must be able to seek.
        name: The name of the file, for messages.

    Raises:
        InvalidInput: It is no bundle, is damaged, or is too large.
    """
    return await replay_bundle(read_bundle(file, name), nothing_outside(MemoryStore()), name)


async def replay_bundle(
    bundle: Bundle, outside: Environment, name: str = "bundle", *, hear: Hear | None = None
) -> Replay:
    """Replay a bundle.

    Args:
        bundle: The bundle.
        outside: Has the prices and the rules of packages that count; nothing else of it is used.
        name: As of `replay_file`.
        hear: Is told of each request to a model.

    Raises:
        InvalidInput: What is in it does not fit together.
    """
    store = MemoryStore()
    realm = bundle.runs[bundle.manifest.root_run_id].run.realm
    await _fill(store, bundle)
    parts = CribServices.wire(_quiet(outside, store))
    try:
        await _read_definitions(parts, realm, name)
        family = {run_id: bundle.runs[run_id] for run_id in bundle.manifest.nested}
        recording = RecordedFamily(bundle.manifest.root_run_id, family)
        return await replay_recording(parts, recording, bundle.manifest.run_id, past=store.journal, hear=hear)
    finally:
        await parts.close()


async def _read_definitions(parts: CribServices, realm: str, name: str) -> None:
    try:
        await parts.catalogue.read(realm)
    except ValidationError as problem:
        found = problem.errors(include_url=False, include_input=False)[0]
        msg = f"{name} has a definition with something else at {'.'.join(map(str, found['loc']))!r}: {found['msg']}"
        raise InvalidInput(msg) from problem


def nothing_outside(store: Store) -> Environment:
    """A world in which there is nothing but a store."""
    return Environment(
        store=store,
        clock=SystemClock(),
        egress=EgressPolicy(),
        environment={},
        models={},
        sandbox=Sandbox(()),
        definitions=DefinitionOptions(released=()),
        sharing=SharingOptions(lease_s=60.0),
    )


def _quiet(outside: Environment, store: Store) -> Environment:
    """A world with the same prices and rules, in which nothing can be reached."""
    given = outside.definitions
    return replace(
        nothing_outside(store),
        models=outside.models,
        definitions=DefinitionOptions(
            released=(), prices=given.prices, plugins=given.plugins, model_services=given.model_services
        ),
    )


async def _fill(store: MemoryStore, bundle: Bundle) -> None:
    """Put what a bundle has into a store; the runs of the family are not read from there, but those before them are."""
    root = bundle.runs[bundle.manifest.root_run_id].run
    for definition in sorted(bundle.definitions, key=lambda one: one.revision):
        if definition.realm != root.realm:
            msg = f"the bundle of run {bundle.manifest.run_id} has a definition of realm {definition.realm!r}"
            raise InvalidInput(msg)
        await store.definitions.save(definition)
    for definition in bundle.definitions:
        if definition.content_hash in bundle.manifest.removed:
            await store.definitions.remove(definition.kind, definition.realm, definition.name)
    for data in bundle.blobs.values():
        await store.blobs.put(data, realm=root.realm, made_by=root.made_by)
    for run_id, stored in bundle.runs.items():
        if run_id not in bundle.manifest.nested:
            await _keep(store, stored)


async def _keep(store: MemoryStore, stored: StoredRun) -> None:
    """A run that others have read, as it was."""
    first, rest = stored.events[0].event, stored.events[1:]
    if not isinstance(first, RunStarted):
        msg = f"run {stored.run.run_id} does not begin with run_started"
        raise InvalidInput(msg)
    row = stored.run.model_copy(update={"status": "running", "epoch": 1, "events": 1})
    await store.journal.create(row, first, lease=Lease("bundle", stored.run.updated_at))
    last = rest[-1].event if rest else first
    change = None
    if isinstance(last, RunFinished):
        change = RunChange(status=last.status, result=result_of(stored.run.run_id, last))
    await store.journal.append(stored.run.run_id, 1, list(rest), change)
