"""A shadow shows what the store behind it has, and keeps to itself what is done in it."""

from datetime import timedelta

import pytest

from tests.unit.store.samples import FIRST, NOON, claimed, definition, entry, new_run, signal, started
from toolcrib.contracts import Conversation, NotFound, PermissionDenied
from toolcrib.infrastructure.store import ApprovalFilter, Definition, MemoryStore, SealedKey, SealedValue
from toolcrib.infrastructure.store.memory.shadow import ShadowStore

pytestmark = pytest.mark.requirement("rehearsal.shadow")

PLACE = SealedKey("default", "realm", "crm")


def value(version: int = 1, place: SealedKey = PLACE) -> SealedValue:
    return SealedValue(place, version, "sealed", "owner", NOON)


def said(conversation_id: str = "c1") -> Conversation:
    return Conversation(
        conversation_id=conversation_id, realm="default", agent="a", principal="owner", created_at=NOON, updated_at=NOON
    )


async def names(store: MemoryStore | ShadowStore) -> list[str]:
    return [each.name for each in await store.definitions.revisions("tool", "default")]


async def test_definitions_are_copied_once_and_changed_apart():
    behind = MemoryStore()
    removed: Definition = await behind.definitions.save(definition("gone"))
    await behind.definitions.remove("tool", "default", "gone")
    await behind.definitions.save(definition())
    shadow = ShadowStore(behind)
    await shadow.take_over("default")

    await shadow.definitions.save(definition("other"))
    await shadow.definitions.remove("tool", "default", "search")
    await shadow.take_over("default")

    assert (await names(shadow), await names(behind)) == (["other"], ["search"])
    assert await shadow.definitions.get("default", removed.content_hash) == removed


async def test_runs_that_are_written_here_hide_those_behind_until_they_are_forgotten():
    behind = MemoryStore()
    await started(behind.journal, "r1")
    await behind.journal.append("r1", 1, [entry(2)])
    shadow = ShadowStore(behind)
    assert len(await shadow.journal.events("r1")) == 2

    await shadow.journal.create(new_run("r1"), FIRST)
    await claimed(shadow.journal, "r1")
    await shadow.journal.signal("r1", signal())
    assert (len(await shadow.journal.events("r1")), len(await shadow.journal.signals("r1"))) == (1, 1)
    assert await shadow.journal.claimable(now=NOON + timedelta(hours=1), limit=9) == ["r1"]
    assert await shadow.journal.renew(["r1"], owner="p1", now=NOON, lease_s=5) == ["r1"]
    assert await shadow.journal.runs_with_signal(signal().name, ["r1"]) == ["r1"]
    assert await shadow.journal.signal_all([("r1", signal("go"))])

    shadow.forget_runs()
    assert (len(await shadow.journal.events("r1")), await shadow.journal.signals("r1")) == (2, {})
    assert [run.run_id for run in await shadow.journal.runs("default")] == ["r1"]
    assert (await shadow.journal.run("r1")).events == 2


async def test_blobs_and_sealed_values_are_read_from_behind_and_written_here():
    behind = MemoryStore()
    name = await behind.blobs.put(b"text", realm="default", made_by="owner")
    await behind.sealed.put(value())
    shadow = ShadowStore(behind)

    mine = await shadow.blobs.put(b"mine", realm="default", made_by="owner")
    assert [await shadow.blobs.get("default", each) for each in (name, mine)] == [b"text", b"mine"]
    assert await shadow.blobs.remove("default", [name, mine], untouched_since=NOON + timedelta(days=10**4)) == [mine]
    with pytest.raises(NotFound):
        await behind.blobs.get("default", mine)

    await shadow.sealed.put(value(2))
    await shadow.sealed.put(value(1, SealedKey("default", "realm", "new")))
    assert [(each.place.name, each.version) for each in await shadow.sealed.list("default")] == [("crm", 2), ("new", 1)]
    assert await shadow.sealed.remove(PLACE)
    assert not await shadow.sealed.remove(PLACE)
    assert [each.place.name for each in await shadow.sealed.list(None)] == ["new"]
    assert await behind.sealed.get(PLACE) == value()
    with pytest.raises(PermissionDenied):
        await shadow.sealed.reseal(value(), "anew")


async def test_conversations_are_read_and_never_changed():
    behind = MemoryStore()
    await behind.conversations.add(said())
    shadow = ShadowStore(behind)
    await shadow.open()

    assert await shadow.conversations.get("default", "c1") == said()
    assert list(await shadow.conversations.list("default")) == [said()]
    for change in (
        shadow.conversations.add(said("c2")),
        shadow.conversations.replace(said()),
        shadow.conversations.remove("default", "c1"),
    ):
        with pytest.raises(PermissionDenied, match="a shadow of a store never"):
            await change
    await shadow.close()


async def test_everything_else_begins_empty():
    shadow = ShadowStore(MemoryStore())

    assert await shadow.cache.get("k", now=NOON) is None
    assert await shadow.api_keys.count() == 0
    assert list(await shadow.retention.realms()) == []
    assert await shadow.counters.purge(now=NOON) == 0
    assert list(await shadow.approvals.page("default", ApprovalFilter())) == []
