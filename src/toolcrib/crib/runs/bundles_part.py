"""Bundles: a run is written into one file, and replayed from it alone, without a store, settings or a network."""

import tempfile
from dataclasses import replace
from typing import IO, Final

from pydantic import ValidationError

from toolcrib.contracts import Conflict, InvalidInput, Replay, RunFinished, RunStarted
from toolcrib.core.engines import SystemClock
from toolcrib.core.engines.replay import RecordedFamily
from toolcrib.core.runs import StoredRun, result_of
from toolcrib.core.runs.journal.bundles import Bundle, read_bundle
from toolcrib.crib.container.container import Parts
from toolcrib.crib.container.outside import Outside
from toolcrib.crib.container.plugins import NO_PLUGINS
from toolcrib.crib.runs.bundles import Capture
from toolcrib.crib.runs.replays import replay_recording
from toolcrib.infrastructure.net import EgressPolicy
from toolcrib.infrastructure.sandbox import Sandbox
from toolcrib.infrastructure.store import Entry, Lease, MemoryStore, RunChange, Store
from toolcrib.llm.base.prices import Prices

_IN_MEMORY: Final = 16 * 1024 * 1024
"""Bytes of a bundle that is replayed at once; a larger one lies on the disk meanwhile."""


async def replay_run(parts: Parts, run_id: str, *, parked: bool = False) -> Replay:
    """Make the events of a run again from what its store has of it, and tell where they are others.

    A nested run is replayed with its callers, on whose budget it drew; what is told is of itself.

    Args:
        parts: Have the store.
        run_id: The run.
        parked: Replay also a run that has not ended, as far as it has come.

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
    return await replay_bundle(bundle, parts.outside)


async def replay_file(file: IO[bytes], name: str = "bundle") -> Replay:
    """Make the events of a run again from its bundle alone, and tell where they are others.

    Nothing of the machine is needed but this package: no store, no settings, no functions of an application.

    Args:
        file: The bundle; it must be able to seek.
        name: Of the file, for messages.

    Raises:
        InvalidInput: It is no bundle, is damaged, or is too large.
    """
    return await replay_bundle(read_bundle(file, name), nothing_outside(MemoryStore()), name)


async def replay_bundle(bundle: Bundle, outside: Outside, name: str = "bundle") -> Replay:
    """Replay a bundle.

    Args:
        bundle: The bundle.
        outside: Has the prices and the rules of packages that count; nothing else of it is used.
        name: As of `replay_file`.

    Raises:
        InvalidInput: What is in it does not fit together.
    """
    store = MemoryStore()
    realm = bundle.runs[bundle.manifest.root_run_id].run.realm
    await _fill(store, bundle)
    parts = Parts.wire(_quiet(outside, store), lease_s=60.0)
    try:
        await _read_definitions(parts, realm, name)
        family = {run_id: bundle.runs[run_id] for run_id in bundle.manifest.nested}
        recording = RecordedFamily(bundle.manifest.root_run_id, family)
        return await replay_recording(parts, recording, bundle.manifest.run_id, past=store.journal)
    finally:
        await parts.close()


async def _read_definitions(parts: Parts, realm: str, name: str) -> None:
    try:
        await parts.catalogue.read(realm)
    except ValidationError as problem:
        found = problem.errors(include_url=False, include_input=False)[0]
        msg = f"{name} has a definition with something else at {'.'.join(map(str, found['loc']))!r}: {found['msg']}"
        raise InvalidInput(msg) from problem


def nothing_outside(store: Store) -> Outside:
    """A world in which there is nothing but a store."""
    return Outside(
        store=store,
        clock=SystemClock(),
        egress=EgressPolicy(),
        environment={},
        released=(),
        models={},
        prices=Prices(),
        sandbox=Sandbox(()),
        mcp_commands=(),
        plugins=NO_PLUGINS,
        model_services={},
    )


def _quiet(outside: Outside, store: Store) -> Outside:
    """A world with the same prices and rules, in which nothing can be reached."""
    nothing = nothing_outside(store)
    return replace(
        nothing,
        models=outside.models,
        prices=outside.prices,
        plugins=outside.plugins,
        model_services=outside.model_services,
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
    await store.journal.append(stored.run.run_id, 1, [Entry.of(entry) for entry in rest], change)
