"""The promises of counters, in every store and in Redis."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.servers.redis import RedisTestServer, running_redis
from tests.unit.store.samples import opened_at
from toolcrib.infrastructure.redis import RedisCounters, RedisServer
from toolcrib.infrastructure.store import Charge, Counters, Reserved

NOW = datetime.now(UTC)
SOON = NOW + timedelta(minutes=15)
"""Redis goes by a clock of its own, so all that is far from now is far for it too."""


@pytest.fixture(scope="module")
def running() -> Generator[RedisTestServer]:
    with running_redis() as server:
        yield server


@pytest.fixture(params=["memory", "sqlite", "postgres", "redis"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store, or of a Redis server, that has counted nothing yet."""
    if request.param == "redis":
        server: RedisTestServer = request.getfixturevalue("running")
        server.forget()
        return server.url()
    if request.param == "postgres":
        return request.getfixturevalue("postgres_store")
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/crib.db"


@pytest.fixture
async def counters(place: str) -> AsyncGenerator[Counters]:
    if place.startswith("redis:"):
        server = RedisServer(place)
        yield RedisCounters(server, lambda: NOW)
        await server.close()
        return
    async with opened_at(place) as store:
        yield store.counters


def charge(key: str = "a", amount: int = 10, limit: int = 25) -> Charge:
    return Charge("default", "ann", key, amount, limit, NOW + timedelta(days=1))


async def reserve(counters: Counters, ticket: str, *charges: Charge, until: datetime = SOON) -> Reserved:
    return await counters.reserve(ticket, charges, now=NOW, until=until)


@pytest.mark.requirement("shared_state.counters")
async def test_amounts_are_reserved_until_the_limit(counters: Counters) -> None:
    assert await reserve(counters, "t1", charge()) == Reserved((0,))
    assert await reserve(counters, "t2", charge()) == Reserved((10,))
    assert await reserve(counters, "t3", charge()) == Reserved((20,), 0)
    assert await reserve(counters, "t3", charge(amount=5)) == Reserved((20,))
    assert await reserve(counters, "t4", charge(amount=0)) == Reserved((25,))
    assert await reserve(counters, "t5", charge(amount=1)) == Reserved((25,), 0)


@pytest.mark.requirement("shared_state.counters")
async def test_what_was_spent_counts_in_the_place_of_what_was_reserved(counters: Counters) -> None:
    await reserve(counters, "t1", charge())
    await counters.settle("t1", [charge(amount=3)])
    assert await reserve(counters, "t2", charge()) == Reserved((3,))
    await counters.settle("t2", [charge(amount=30)])
    await counters.settle("unknown", [charge(amount=1)])
    assert await reserve(counters, "t3", charge(amount=0)) == Reserved((34,), 0)


@pytest.mark.requirement("shared_state.counters")
async def test_of_several_counters_all_take_an_amount_or_none(counters: Counters) -> None:
    await reserve(counters, "t1", charge("a", 20))
    refused = await reserve(counters, "t2", charge("b"), charge("a"), charge("c", 99))
    assert refused == Reserved((0, 20, 0), 1)
    assert await reserve(counters, "t3", charge("b", 0), charge("a", 5)) == Reserved((0, 20))


@pytest.mark.requirement("shared_state.counters")
async def test_a_ticket_that_reserves_again_replaces_what_it_had(counters: Counters) -> None:
    await reserve(counters, "t1", charge(amount=20))
    assert await reserve(counters, "t1", charge(amount=25)) == Reserved((0,))
    assert await reserve(counters, "t2", charge(amount=0)) == Reserved((25,))


@pytest.mark.requirement("shared_state.counters")
async def test_a_reservation_that_nobody_settles_is_over_in_the_end(counters: Counters) -> None:
    await reserve(counters, "t1", charge(amount=20), until=NOW - timedelta(seconds=1))
    assert await reserve(counters, "t2", charge(amount=20)) == Reserved((0,))
    await counters.settle("t1", [charge(amount=2)])
    assert await reserve(counters, "t3", charge(amount=3)) == Reserved((22,))


@pytest.mark.requirement("shared_state.counters")
async def test_of_many_at_once_no_more_succeed_than_fit(counters: Counters) -> None:
    done = await asyncio.gather(*(reserve(counters, f"t{number}", charge()) for number in range(20)))
    assert sum(each.refused is None for each in done) == 2


@pytest.mark.requirement("shared_state.counters")
async def test_what_has_expired_is_forgotten(counters: Counters) -> None:
    await reserve(counters, "t1", charge())
    await counters.settle("t1", [charge()])
    await reserve(counters, "t2", charge())
    assert await counters.purge(now=NOW) == 0
    if not isinstance(counters, RedisCounters):  # where keys go away by themselves
        assert await counters.purge(now=SOON) == 1
        assert await counters.purge(now=NOW + timedelta(days=1)) == 1
    assert await counters.purge(now=NOW + timedelta(days=1)) == 0
