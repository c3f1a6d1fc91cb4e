"""The cache's promises, in the store and in Redis."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.servers.redis import RedisTestServer
from toolcrib.contracts import JsonObject
from toolcrib.core.executor import Results
from toolcrib.infrastructure.redis import RedisResults, RedisServer
from toolcrib.infrastructure.store import MemoryStore, open_store

VALUE: JsonObject = {"output": {"deals": [1, 2.5, None, "Ä"]}}


def now() -> datetime:
    return datetime.now(UTC)


def later(seconds: float) -> datetime:
    return now() + timedelta(seconds=seconds)


@pytest.fixture(params=["memory", "sqlite", "redis"])
async def results(request: pytest.FixtureRequest, server: RedisServer, tmp_path: Path) -> AsyncGenerator[Results]:
    if request.param == "redis":
        yield RedisResults(server, now)
        return
    store = MemoryStore() if request.param == "memory" else open_store(f"sqlite:///{tmp_path}/crib.db")
    await store.open()
    yield store.cache
    await store.close()


async def put(results: Results, key: str, value: JsonObject, expires_at: datetime | None) -> None:
    await results.put(key, value, realm="default", made_by="owner", expires_at=expires_at)


@pytest.mark.requirement("shared_state.results")
async def test_a_result_is_found_until_it_expires_and_can_be_replaced(results: Results) -> None:
    assert await results.get("k", now=now()) is None
    await put(results, "k", VALUE, later(60))
    assert await results.get("k", now=now()) == VALUE
    assert await results.get("other", now=now()) is None
    await put(results, "k", {"output": 2}, None)
    assert await results.get("k", now=now()) == {"output": 2}


@pytest.mark.requirement("shared_state.results")
async def test_what_has_expired_already_is_not_found(results: Results) -> None:
    await put(results, "k", VALUE, later(-1))
    assert await results.get("k", now=now()) is None


@pytest.mark.requirement("shared_state.results")
async def test_a_result_is_not_changed_by_those_who_hold_it(results: Results) -> None:
    value: dict[str, list[int]] = {"output": [1]}
    await put(results, "k", value, None)
    value["output"] += [2]
    found = await results.get("k", now=now())
    assert found is not None
    assert found == {"output": [1]}
    found["output"] += [3]
    assert await results.get("k", now=now()) == {"output": [1]}


@pytest.mark.requirement("shared_state.results")
async def test_every_key_in_redis_ends_by_its_clock(server: RedisServer, running: RedisTestServer) -> None:
    results = RedisResults(server, now)
    await put(results, "short", VALUE, later(60))
    await put(results, "ever", VALUE, None)
    with running.client() as client:
        lives = {key: client.pttl(key) for key in (b"toolcrib:1:result:short", b"toolcrib:1:result:ever")}
    assert 50_000 < lives[b"toolcrib:1:result:short"] <= 60_000
    assert 29 * 86_400_000 < lives[b"toolcrib:1:result:ever"] <= 30 * 86_400_000


@pytest.mark.requirement("shared_state.results")
@pytest.mark.parametrize("stored", ["not JSON", "[1]", '"text"', ""])
async def test_what_others_have_put_in_a_results_place_is_a_miss(server: RedisServer, stored: str) -> None:
    await server.ask("SET", "toolcrib:1:result:k", stored)
    assert await RedisResults(server, now).get("k", now=now()) is None
