"""Conversations: the promises of their rows, on every store."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.store.samples import NOON, later, opened, opened_at
from toolcrib.contracts import Conflict, Conversation, InvalidInput, NotFound
from toolcrib.infrastructure.store import ConversationFilter, Store

pytestmark = pytest.mark.requirement("conversations.store")


@pytest.fixture
async def store(store_url: str) -> AsyncGenerator[Store]:
    async with opened_at(store_url) as opened_store:
        yield opened_store


def conversation(conversation_id: str = "c1", **fields: Any) -> Conversation:
    values: dict[str, Any] = {
        "conversation_id": conversation_id,
        "realm": "default",
        "agent": "helper",
        "principal": "ann",
        "created_at": NOON,
        "updated_at": NOON,
    }
    return Conversation(**(values | fields))


async def test_a_conversation_is_read_back_as_it_was_stored(store: Store):
    whole = conversation(
        title="Größe",
        status="completed",
        turn_count=3,
        ended_turns=2,
        tokens=2**40,
        summary="all said",
        summarized_turns=1,
        shared_context={"a": {"b": [1, None, "ü"]}},
        updated_at=later(0.000001),
    )
    await store.conversations.add(whole)

    assert await store.conversations.get("default", "c1") == whole
    assert await store.conversations.get("default", "c2") is None


async def test_an_id_is_used_once_in_all_realms(store: Store):
    await store.conversations.add(conversation())

    with pytest.raises(Conflict, match="a conversation 'c1' already exists"):
        await store.conversations.add(conversation(realm="other"))


async def test_a_revision_is_written_only_after_the_one_that_its_author_has_read(store: Store):
    first = conversation()
    await store.conversations.add(first)
    second = first.model_copy(update={"title": "new", "revision": 2, "shared_context": {"x": 1}})
    await store.conversations.replace(second)

    with pytest.raises(Conflict, match="has revision 2 and this would be revision 2"):
        await store.conversations.replace(first.model_copy(update={"title": "late", "revision": 2}))
    assert await store.conversations.get("default", "c1") == second


async def test_nothing_of_another_realm_is_read_changed_or_removed(store: Store):
    await store.conversations.add(conversation())

    assert await store.conversations.get("other", "c1") is None
    assert list(await store.conversations.list("other")) == []
    assert not await store.conversations.remove("other", "c1")
    with pytest.raises(NotFound, match="there is no conversation 'c1'"):
        await store.conversations.replace(conversation(realm="other", revision=2))


async def test_conversations_are_listed_newest_first_page_by_page(store: Store):
    for number in range(5):
        await store.conversations.add(conversation(f"c{number}", created_at=later(number // 2)))

    first = await store.conversations.list("default", limit=2)
    second = await store.conversations.list("default", before=first[-1].conversation_id, limit=2)
    rest = await store.conversations.list("default", before=second[-1].conversation_id, limit=2)
    assert [[each.conversation_id for each in page] for page in (first, second, rest)] == [
        ["c4", "c3"],
        ["c2", "c1"],
        ["c0"],
    ]
    with pytest.raises(NotFound, match="'gone'"):
        await store.conversations.list("default", before="gone")


async def test_they_are_listed_by_principal_agent_and_status(store: Store):
    await store.conversations.add(conversation("c1"))
    await store.conversations.add(conversation("c2", principal="bob"))
    await store.conversations.add(conversation("c3", agent="other", status="archived"))

    async def ids(wanted: ConversationFilter) -> list[str]:
        return [each.conversation_id for each in await store.conversations.list("default", wanted)]

    assert await ids(ConversationFilter()) == ["c3", "c2", "c1"]
    assert await ids(ConversationFilter(principal="ann")) == ["c3", "c1"]
    assert await ids(ConversationFilter("ann", "helper", "active")) == ["c1"]
    assert await ids(ConversationFilter(status="completed")) == []


async def test_a_conversation_is_removed_once(store: Store):
    await store.conversations.add(conversation())

    assert await store.conversations.remove("default", "c1")
    assert not await store.conversations.remove("default", "c1")
    assert await store.conversations.get("default", "c1") is None


async def test_variables_that_are_no_json_are_refused_by_name_in_sql(tmp_path: Path):
    async with opened("sqlite", tmp_path) as store:
        with pytest.raises(InvalidInput, match="the shared context of 'c1' cannot be written as JSON"):
            await store.conversations.add(conversation(shared_context={"x": object()}))
