"""Cribs that share a Redis server."""

import pytest

from tests.servers.redis import RedisTestServer, running_redis
from toolcrib import Crib, SharingOptions, tool
from toolcrib.contracts import ErrorCode, RateLimit


class Deals:
    """A tool that counts how often it ran."""

    def __init__(self) -> None:
        self.asked = 0
        counted = self

        @tool(side_effects="reads", cache="ttl", cache_ttl_s=60)
        async def find_deals(company: str) -> str:
            """Find deals."""
            counted.asked += 1
            return f"{company}: 3"

        @tool(side_effects="writes", rate_limit=RateLimit(count=2, per_s=600))
        async def send_mail(to: str) -> str:
            """Send a mail."""
            counted.asked += 1
            return to

        self.tools = find_deals, send_mail


@pytest.mark.requirement("shared_state.together", "settings.effect")
async def test_a_result_that_one_crib_has_brought_serves_the_other(running: RedisTestServer) -> None:
    deals = Deals()
    for cached in (False, True):
        async with Crib("memory://", sharing=SharingOptions(redis=running.url(2))) as crib:
            crib.add(*deals.tools)
            found = await crib.call("find_deals", {"company": "Acme"})
            assert (found.output, found.cached) == ("Acme: 3", cached)
    assert deals.asked == 1


@pytest.mark.requirement("shared_state.together")
async def test_cribs_keep_a_rate_limit_together(running: RedisTestServer) -> None:
    deals, ended = Deals(), list[ErrorCode | None]()
    for _ in range(3):
        async with Crib("memory://", sharing=SharingOptions(redis=running.url(3))) as crib:
            crib.add(*deals.tools)
            sent = await crib.call("send_mail", {"to": "ann"})
            ended.append(sent.error and sent.error.code)
    assert ended == [None, None, ErrorCode.RATE_LIMIT]


@pytest.mark.requirement("shared_state.redis_away")
async def test_without_redis_calls_run_uncached_and_limited_by_each_process(running: RedisTestServer) -> None:
    deals = Deals()
    with running_redis() as gone:
        gone.stop()
        async with Crib("memory://", sharing=SharingOptions(redis=gone.url())) as crib:
            crib.add(*deals.tools)
            found = [await crib.call("find_deals", {"company": "Acme"}) for _ in range(2)]
            sent = [await crib.call("send_mail", {"to": "ann"}) for _ in range(3)]
    assert [(envelope.ok, envelope.cached) for envelope in found] == [(True, False)] * 2
    assert [envelope.ok for envelope in sent] == [True, True, False]
