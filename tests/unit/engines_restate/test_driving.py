"""Runs that workers of a real Restate server drive."""

from collections.abc import Generator
from pathlib import Path

import orjson
import pytest

from tests.servers.restate import RestateServer, running_restate
from tests.unit.engines_restate.crews import Crew
from tests.unit.engines_restate.shop import MARK, Shop, until
from toolcrib.contracts import RunResumed

pytestmark = [pytest.mark.slow, pytest.mark.requirement("restate.drives")]


@pytest.fixture(scope="module")
def server() -> Generator[RestateServer]:
    with running_restate() as running:
        yield running


@pytest.fixture
def shop(server: RestateServer, tmp_path: Path) -> Shop:
    return Shop(tmp_path, server.options)


def invocations(server: RestateServer, run_id: str) -> list[str]:
    """How the invocations stand by which a run is driven."""
    rows = server.query(f"SELECT status FROM sys_invocation WHERE target_service_key = '{run_id}'")
    return [row["status"] for row in rows]


async def test_a_run_that_one_process_begins_is_driven_by_a_worker(shop: Shop, server: RestateServer):
    shop.open()
    async with Crew(shop, server) as crew, shop.crib() as crib:
        await crew.hire()
        result = await crib.invoke("put", {"what": MARK})

        assert result.summary.status == "completed"
        assert shop.ledger.counts().total() == 2
        run = await crib.store.journal.run(result.run_id)
        assert run.epoch == 1


@pytest.mark.requirement("restate.holds_ids")
async def test_restate_holds_nothing_of_what_a_run_is_about(shop: Shop, server: RestateServer):
    shop.open()
    async with Crew(shop, server) as crew, shop.crib() as crib:
        await crew.hire()
        result = await crib.invoke("rests", {})

    assert result.summary.status == "completed"
    kept = [server.query(f"SELECT * FROM {table}") for table in ("sys_invocation", "sys_journal", "state")]
    assert result.run_id in orjson.dumps(kept).decode()
    assert MARK not in orjson.dumps(kept).decode()


@pytest.mark.requirement("restate.waiting")
async def test_a_run_that_waits_for_a_person_takes_no_invocation_and_goes_on_once_it_was_decided(
    shop: Shop, server: RestateServer
):
    shop.open()
    async with Crew(shop, server) as crew, shop.crib() as crib:
        await crew.hire()
        waiting = await crib.invoke("sign", {"what": MARK})
        assert waiting.summary.status == "awaiting_approval"
        await until(lambda: set(invocations(server, waiting.run_id)) == {"completed"})

        (asked,) = await crib.pending_approvals(waiting.run_id)
        assert await crib.decide(waiting.run_id, asked.position, approve=True)
        result = await crib.resume(waiting.run_id)

    assert result.summary.status == "completed"
    assert shop.times("sign") == 1
    assert [event.event.cause for event in result.events if isinstance(event.event, RunResumed)] == ["approval"]


@pytest.mark.requirement("restate.waiting")
async def test_nested_runs_that_wait_for_moments_and_people_wake_those_above_them(shop: Shop, server: RestateServer):
    shop.open()
    async with Crew(shop, server) as crew, shop.crib() as crib:
        await crew.hire()
        waiting = await crib.invoke("nests", {})
        assert waiting.summary.status == "awaiting_approval"
        assert shop.times("put") == 1

        (inbox,) = (await crib.approvals.page()).items
        assert await crib.decide(inbox.run_id, inbox.position, approve=True)
        result = await crib.resume(waiting.run_id)

    assert result.summary.status == "completed"
    assert (shop.times("put"), shop.times("sign")) == (1, 1)
