"""Two stores on one server, as two processes have them: what both decide on at once."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import AsyncExitStack
from typing import Any

import pytest
import sqlalchemy as sa

from tests.servers.postgres import PostgresServer
from tests.unit.store.samples import FIRST, NOON, claimed, definition, entry, later, new_run, opened_at, signal, started
from toolcrib.contracts import Conflict, Conversation, Json, NotFound, Unavailable
from toolcrib.infrastructure.store import ApiKey, Charge, Doer, Reserved, RunChange, SealedKey, SealedValue, Store
from toolcrib.infrastructure.store.sql.sql_store import SqlStore

pytestmark = [pytest.mark.requirement("postgres.races"), pytest.mark.slow]

TIMES = 20


@pytest.fixture
async def stores(postgres_store: str) -> AsyncGenerator[tuple[Store, Store]]:
    async with AsyncExitStack() as stack:
        yield (
            await stack.enter_async_context(opened_at(postgres_store)),
            await stack.enter_async_context(opened_at(postgres_store)),
        )


async def both(*operations: Awaitable[Any]) -> list[Any]:
    """What they return or raise, begun at once."""
    return await asyncio.gather(*operations, return_exceptions=True)


def deadlocks(postgres: PostgresServer) -> object:
    """How often transactions have waited for each other."""
    with postgres.connect() as connection:
        return connection.execute("SELECT sum(deadlocks) FROM pg_stat_database").fetchone()


async def test_one_run_is_created_by_one(stores: tuple[Store, Store]):
    for number in range(TIMES):
        outcomes = await both(*(store.journal.create(new_run(f"r{number}"), FIRST) for store in stores))

        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict", "NoneType"]
        assert len(await stores[0].journal.events(f"r{number}")) == 1


async def test_one_run_is_claimed_by_one(stores: tuple[Store, Store]):
    for number in range(TIMES):
        run_id = f"r{number}"
        await stores[0].journal.create(new_run(run_id), FIRST)
        claims = await both(
            *(
                store.journal.claim(run_id, owner=f"p{index}", now=later(1), lease_s=10)
                for index, store in enumerate(stores)
            )
        )

        assert sum(claim is not None for claim in claims) == 1
        assert (await stores[0].journal.run(run_id)).epoch == 1


async def test_who_takes_a_run_over_sees_all_that_its_owner_has_written_or_the_owner_is_fenced(
    stores: tuple[Store, Store],
):
    for number in range(TIMES):
        run_id = f"r{number}"
        await started(stores[0].journal, run_id)
        written, claim = await both(
            stores[0].journal.append(run_id, 1, [entry(2, run_id)]),
            stores[1].journal.claim(run_id, owner="p2", now=later(1000), lease_s=10),
        )

        assert len(claim.events) == (2 if written is None else 1)
        assert len(await stores[1].journal.events(run_id)) == len(claim.events)


async def test_a_signal_is_left_once_and_wakes_a_run_that_begins_to_wait_meanwhile(stores: tuple[Store, Store]):
    wait = RunChange("awaiting_approval", waiting_for=("approval:t1.c1",))
    for number in range(TIMES):
        run_id = f"r{number}"
        await started(stores[0].journal, run_id)
        _, *left = await both(
            stores[0].journal.append(run_id, 1, [entry(2, run_id)], wait),
            *(store.journal.signal(run_id, signal()) for store in stores),
        )

        assert sorted(left) == [False, True]
        assert list(await stores[1].journal.claimable(now=NOON, limit=10)) == [run_id]
        await claimed(stores[1].journal, run_id)


async def test_revisions_and_changes_of_a_realm_are_numbered_without_a_gap(stores: tuple[Store, Store]):
    contents = [str(number) for number in range(TIMES)]
    saved = await both(
        *(store.definitions.save(definition(content=f"{index}{content}"))
          for content in contents for index, store in enumerate(stores))
    )  # fmt: skip

    assert sorted(revision.revision for revision in saved) == list(range(1, 2 * TIMES + 1))
    assert await stores[0].definitions.changes("default") == 2 * TIMES


async def test_of_two_changes_to_one_revision_one_is_refused(stores: tuple[Store, Store]):
    await stores[0].definitions.save(definition())
    for number in range(1, TIMES):
        outcomes = await both(
            *(
                store.definitions.save(definition(content=f"{number} by {index}"), after=number)
                for index, store in enumerate(stores)
            )
        )

        assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 1


async def test_what_was_decided_on_definitions_that_change_meanwhile_is_refused(stores: tuple[Store, Store]):
    for number in range(TIMES):
        seen = await stores[0].definitions.changes("default")
        outcomes = await both(
            *(
                store.definitions.save_all("default", [definition(content=f"{number} by {index}")], seen=seen)
                for index, store in enumerate(stores)
            )
        )

        assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 1


async def test_versions_of_a_sealed_value_follow_each_other(stores: tuple[Store, Store]):
    place = SealedKey("default", "realm", "crm")
    for version in range(1, TIMES):
        outcomes = await both(
            *(
                store.sealed.put(SealedValue(place, version, f"by {index}", "owner", NOON))
                for index, store in enumerate(stores)
            )
        )

        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict", "NoneType"]


async def test_a_cached_value_is_added_by_one_and_replaced_by_both(stores: tuple[Store, Store]):
    for number in range(TIMES):
        key, value = f"k{number}", {"n": number}
        terms: Any = {"realm": "default", "made_by": "owner", "expires_at": later(60)}
        added = await both(*(store.cache.add(key, value, now=NOON, **terms) for store in stores))
        replaced = await both(*(store.cache.put(key, value, **terms) for store in stores))

        assert (sorted(added), replaced) == ([False, True], [None, None])
        assert await stores[1].cache.get(key, now=NOON) == value


async def test_one_key_of_an_id_is_made(stores: tuple[Store, Store]):
    key = ApiKey("k1", "default", "owner", "hmac", "owner", NOON)

    outcomes = await both(*(store.api_keys.add(key) for store in stores))

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict", "NoneType"]


async def test_of_two_changes_to_a_conversation_one_is_refused(stores: tuple[Store, Store]):
    conversation = Conversation(
        conversation_id="c", realm="default", agent="a", principal="owner", created_at=NOON, updated_at=NOON
    )
    await stores[0].conversations.add(conversation)
    for revision in range(conversation.revision + 1, conversation.revision + TIMES):
        changed = conversation.model_copy(update={"revision": revision})
        outcomes = await both(*(store.conversations.replace(changed) for store in stores))

        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict", "NoneType"]


@pytest.mark.requirement("postgres.blobs")
async def test_a_blob_that_both_put_is_stored_once(stores: tuple[Store, Store]):
    for number in range(TIMES):
        data = str(number).encode()
        names = await both(*(store.blobs.put(data, realm="default", made_by="owner") for store in stores))

        assert len(set(names)) == 1
        assert await stores[1].blobs.get("default", names[0]) == data


@pytest.mark.requirement("postgres.blobs")
async def test_a_damaged_blob_is_not_served(stores: tuple[Store, Store], postgres: PostgresServer, postgres_store: str):
    name = await stores[0].blobs.put(b"a prompt", realm="default", made_by="owner")
    with postgres.connect(postgres_store.rpartition("/")[2]) as connection:
        connection.execute("UPDATE blob_bytes SET data = 'another'")

    with pytest.raises(Unavailable, match="is damaged: the database has other bytes"):
        await stores[1].blobs.get("default", name)


@pytest.mark.requirement("postgres.blobs")
async def test_a_blob_is_read_in_its_realm_only_and_gone_when_it_was_removed(stores: tuple[Store, Store]):
    name = await stores[0].blobs.put(b"a prompt", realm="default", made_by="owner")
    with pytest.raises(NotFound):
        await stores[1].blobs.get("other", name)
    await stores[0].blobs.remove("default", [name], untouched_since=later(10**9))
    with pytest.raises(NotFound):
        await stores[1].blobs.get("default", name)


@pytest.mark.requirement("effects.transactional")
async def test_work_under_one_key_is_done_once_whichever_runs_ask_for_it(
    stores: tuple[SqlStore, SqlStore], postgres: PostgresServer, postgres_store: str
):
    """Two runs take up the same one, each in a process of its own, and go on with a call of it."""
    with postgres.connect(postgres_store.rpartition("/")[2]) as connection:
        connection.execute("CREATE TABLE orders (item text)")
    for run_id in ("r0", "r1", "r2"):
        await started(stores[0].journal, run_id)

    def work(connection: sa.Connection) -> Json:
        connection.execute(sa.text("INSERT INTO orders VALUES ('x')"))
        return True

    for number in range(TIMES):
        doers = [Doer(run_id, 1, f"r0/s{number}", "ann") for run_id in ("r1", "r2")]
        assert await both(
            *(store.transactions.transact(doer, work) for store, doer in zip(stores, doers, strict=True))
        ) == [True, True]
    with postgres.connect(postgres_store.rpartition("/")[2]) as connection:
        assert connection.execute("SELECT count(*) FROM orders").fetchone() == (TIMES,)


@pytest.mark.requirement("shared_state.counters")
async def test_commits_that_count_and_cache_the_same_in_any_order_never_wait_for_each_other(
    stores: tuple[Store, Store], postgres: PostgresServer
):
    keys = [f"principal{number}" for number in range(12)]
    over = later(3600)

    async def spend(store: Store, key: str, ticket: str) -> Reserved:
        charge = Charge(realm="default", made_by="ann", key=key, amount=1, limit=10**6, expires_at=over)
        return await store.counters.reserve(ticket, [charge], now=NOON, until=later(60))

    async def keep(store: Store, key: str) -> None:
        await store.cache.put(key, {}, realm="default", made_by="ann", expires_at=over)

    before = deadlocks(postgres)
    for number in range(TIMES):
        await asyncio.gather(
            *(spend(stores[0], key, f"a{number}") for key in keys),
            *(keep(stores[0], key) for key in keys),
            *(keep(stores[1], key) for key in reversed(keys)),
            *(spend(stores[1], key, f"b{number}") for key in reversed(keys)),
        )
    assert [(await spend(stores[0], key, "last")).used for key in keys] == [(2 * TIMES,)] * len(keys)
    for store in stores:
        await store.close()  # the server counts what a connection has seen when that ends
    assert deadlocks(postgres) == before


async def test_commits_that_touch_the_same_runs_in_any_order_never_wait_for_each_other(
    stores: tuple[Store, Store], postgres: PostgresServer
):
    """Each process appends to runs of its own, and leaves signals for those of the other, in the other order."""
    mine, others = ([f"{owner}{number}" for number in range(15)] for owner in "ab")
    for store, run_ids in zip(stores, (mine, others), strict=True):
        for run_id in run_ids:
            await started(store.journal, run_id)

    before = deadlocks(postgres)
    for number in range(2, TIMES):
        outcomes = await both(
            *(stores[0].journal.append(run_id, 1, [entry(number, run_id)]) for run_id in mine),
            *(stores[0].journal.signal(run_id, signal(f"s{number}")) for run_id in others),
            *(stores[1].journal.append(run_id, 1, [entry(number, run_id)]) for run_id in reversed(others)),
            *(stores[1].journal.signal(run_id, signal(f"s{number}")) for run_id in reversed(mine)),
        )

        assert set(outcomes) == {None, True}
    for run_id in (*mine, *others):
        assert len(await stores[0].journal.events(run_id)) == TIMES - 1
    for store in stores:
        await store.close()  # the server counts what a connection has seen when that ends
    assert deadlocks(postgres) == before
