"""Rate limits in Redis: one window for all processes."""

import asyncio
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.servers.redis import RedisTestServer, running_redis
from toolcrib.contracts import RateLimit
from toolcrib.core.executor import Rates, SlidingWindow
from toolcrib.infrastructure.redis import RedisRates, RedisServer

KEY = "toolcrib:1:rate:a"
TAKER = """
import asyncio, sys
from toolcrib.contracts import RateLimit
from toolcrib.core.executor import SlidingWindow
from toolcrib.infrastructure.redis import RedisRates, RedisServer

async def main():
    server = RedisServer(sys.argv[1])
    rates, limit = RedisRates(server, SlidingWindow()), RateLimit(count=23, per_s=3600)
    took = await asyncio.gather(*(rates.take("crm/search", limit, now=0) for _ in range(40)))
    await server.close()
    print(took.count(None))

asyncio.run(main())
"""


class Late:
    """Refuses everything."""

    async def take(self, key: str, limit: RateLimit, *, now: float) -> float | None:
        del key, limit
        return now


def refusing(server: RedisServer) -> Rates:
    return RedisRates(server, Late())


@pytest.mark.requirement("shared_state.rates")
async def test_a_window_lets_as_many_through_as_the_limit_says_and_tells_the_wait(server: RedisServer) -> None:
    rates, limit = refusing(server), RateLimit(count=3, per_s=60)
    assert [await rates.take("a", limit, now=9.0) for _ in range(3)] == [None, None, None]
    wait = await rates.take("a", limit, now=9.0)
    assert wait is not None
    assert 0 < wait <= 60
    assert await rates.take("b", limit, now=9.0) is None


@pytest.mark.requirement("shared_state.rates")
async def test_a_limit_that_was_lowered_waits_until_fewer_than_it_are_left(server: RedisServer) -> None:
    rates = refusing(server)
    assert await rates.take("a", RateLimit(count=3, per_s=60), now=0) is None
    await server.ask("ZADD", KEY, 1, "long ago")
    first = await rates.take("a", RateLimit(count=1, per_s=60), now=0)
    assert first is not None
    assert 50 < first <= 60


@pytest.mark.requirement("shared_state.rates")
async def test_a_window_takes_no_more_room_than_its_limit_and_goes_away(
    server: RedisServer, running: RedisTestServer
) -> None:
    rates = refusing(server)
    await asyncio.gather(*(rates.take("a", RateLimit(count=5, per_s=60), now=0) for _ in range(40)))
    with running.client() as client:
        assert client.zcard(KEY) == 5
        assert 0 < client.pttl(KEY) <= 60_000


async def let_pass(server: RedisServer, seconds: int) -> None:
    """Make all that was taken so much older, which is what time does."""
    for member in await server.ask("ZRANGE", KEY, 0, -1):
        await server.ask("ZINCRBY", KEY, -seconds * 1_000_000, member)


@pytest.mark.requirement("shared_state.rates")
@settings(max_examples=60)
@given(
    count=st.integers(1, 4),
    steps=st.lists(st.one_of(st.none(), st.integers(1, 9).map(lambda tens: 10 * tens)), max_size=25),
)
def test_any_history_is_answered_as_by_a_window_in_memory(
    running: RedisTestServer, count: int, steps: list[int | None]
) -> None:
    # Time passes in tens of seconds and the window ends between them, so that the few milliseconds of the test count
    # for nothing.
    limit, passed = RateLimit(count=count, per_s=45), 0

    async def play() -> None:
        nonlocal passed
        with running.client() as client:
            client.delete(KEY)
        server, model = RedisServer(running.url()), SlidingWindow()
        rates = refusing(server)
        for step in steps:
            if step is not None:
                passed += step
                await let_pass(server, step)
                continue
            found, expected = await rates.take("a", limit, now=9), await model.take("a", limit, now=passed)
            assert (found is None) == (expected is None)
            assert found is None or expected is None or abs(found - expected) < 5
        await server.close()

    asyncio.run(play())


@pytest.mark.slow
@pytest.mark.requirement("shared_state.rates")
def test_processes_together_take_exactly_what_the_limit_allows(running: RedisTestServer) -> None:
    command = [sys.executable, "-c", TAKER, running.url(1)]
    takers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert sum(int(taker.communicate(timeout=60)[0]) for taker in takers) == 23


@pytest.mark.requirement("shared_state.redis_away")
async def test_without_redis_every_process_keeps_the_limit_by_itself_and_together_when_it_is_back() -> None:
    limit = RateLimit(count=1, per_s=60)
    with running_redis() as running:
        ticks = iter(range(1_000))
        servers = [RedisServer(running.url(), monotonic=lambda: 2.0 * next(ticks)) for _ in range(2)]
        here, there = (RedisRates(server, SlidingWindow()) for server in servers)
        running.stop()
        assert [await rates.take("a", limit, now=0) for rates in (here, there, here)] == [None, None, 60]
        running.start()
        assert await here.take("a", limit, now=0) is None
        wait = await there.take("a", limit, now=0)
        assert wait is not None
        assert 0 < wait <= 60
        for server in servers:
            await server.close()
