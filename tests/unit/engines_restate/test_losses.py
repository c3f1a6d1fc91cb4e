"""What becomes of runs when workers, Restate, its data, or the process that began them are lost, on a real server."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.servers.restate import RestateServer, running_restate
from tests.unit.engines_restate.crews import Crew
from tests.unit.engines_restate.shop import MARK, Shop, until
from toolcrib.contracts import CallFinished, Reason, RunResumed
from toolcrib.core.engines.restate import RestateEngine
from toolcrib.core.runs import Result

pytestmark = [pytest.mark.slow, pytest.mark.chaos]

_QUICK_TO_GIVE_UP = {
    "RESTATE_WORKER__INVOKER__HTTP2_KEEP_ALIVE_INTERVAL": "1s",
    "RESTATE_WORKER__INVOKER__HTTP2_KEEP_ALIVE_TIMEOUT": "1s",
}
"""So that a test with a frozen worker takes seconds; the file says half a minute."""


@pytest.fixture(scope="module")
def running() -> Generator[RestateServer]:
    with running_restate(_QUICK_TO_GIVE_UP) as server:
        yield server


@pytest.fixture
def server(running: RestateServer) -> Generator[RestateServer]:
    yield running
    running.kill()
    running.start()


@pytest.fixture
def shop(server: RestateServer, tmp_path: Path) -> Shop:
    return Shop(tmp_path, server.options)


def causes(result: Result) -> list[str]:
    return [entry.event.cause for entry in result.events if isinstance(entry.event, RunResumed)]


def reasons(result: Result) -> list[Reason | None]:
    envelopes = [entry.event.envelope for entry in result.events if isinstance(entry.event, CallFinished)]
    return [envelope.error.reason for envelope in envelopes if envelope.error is not None]


@pytest.mark.requirement("restate.worker_lost")
async def test_a_call_that_may_be_repeated_is_when_its_worker_is_killed(shop: Shop, server: RestateServer):
    async with Crew(shop, server) as crew, shop.crib() as crib:
        first = await crew.hire()
        run_id = await crib.submit("put", {"what": MARK})
        await shop.until("put-begun")
        await crew.kill(first)
        shop.open()
        await crew.hire()
        result = await crib.resume(run_id)

    assert result.summary.status == "completed"
    assert causes(result) == ["crash"]
    assert (shop.times("put-begun"), shop.times("put")) == (2, 1)


@pytest.mark.requirement("restate.worker_lost")
async def test_an_unsafe_call_is_not_repeated_when_its_worker_is_killed(shop: Shop, server: RestateServer):
    async with Crew(shop, server) as crew, shop.crib() as crib:
        first = await crew.hire()
        run_id = await crib.submit("post", {"what": MARK})
        await shop.until("post-begun")
        await crew.kill(first)
        shop.open()
        await crew.hire()
        result = await crib.resume(run_id)

    assert reasons(result) == [Reason.OUTCOME_UNKNOWN]
    assert (shop.times("post-begun"), shop.times("post")) == (1, 0)


@pytest.mark.requirement("restate.connection", "restate.server_lost")
async def test_a_call_is_not_cut_off_when_restate_is_killed(shop: Shop, server: RestateServer):
    async with Crew(shop, server) as crew, shop.crib() as crib:
        await crew.hire()
        run_id = await crib.submit("post", {"what": MARK})
        await shop.until("post-begun")
        server.kill()
        server.start()
        shop.open()
        result = await crib.resume(run_id)

    assert result.summary.status == "completed"
    assert causes(result) == []
    assert (shop.times("post-begun"), shop.times("post")) == (1, 1)


@pytest.mark.requirement("restate.worker_lost", "restate.server_lost")
async def test_a_run_goes_on_when_its_worker_and_restate_are_killed(shop: Shop, server: RestateServer):
    async with Crew(shop, server) as crew, shop.crib() as crib:
        first = await crew.hire()
        run_id = await crib.submit("put", {"what": MARK})
        await shop.until("put-begun")
        server.kill()
        await crew.kill(first)
        shop.open()
        server.start()
        await crew.hire()
        result = await crib.resume(run_id)

    assert result.summary.status == "completed"
    assert (shop.times("put-begun"), shop.times("put")) == (2, 1)


@pytest.mark.requirement("restate.worker_lost")
async def test_a_frozen_worker_s_run_is_taken_over_and_what_it_does_when_it_wakes_is_fenced_off(
    shop: Shop, server: RestateServer
):
    async with Crew(shop, server) as crew, shop.crib() as crib:
        frozen = await crew.hire()
        run_id = await crib.submit("put", {"what": MARK})
        await shop.until("put-begun")
        crew.freeze(frozen)
        await crew.hire()
        await shop.until("put-begun", 2)
        shop.open()
        result = await crib.resume(run_id)
        crew.wake(frozen)
        await crew.stop(frozen)

        assert result.summary.status == "completed"
        assert await crib.store.journal.events(run_id) == result.events


@pytest.mark.requirement("restate.server_lost", "restate.outbox")
async def test_a_run_that_is_begun_while_restate_is_away_is_driven_once_it_is_back(shop: Shop, server: RestateServer):
    shop.open()
    async with Crew(shop, server) as crew, shop.crib() as crib:
        await crew.hire()
        assert (await crib.invoke("put", {"what": MARK})).ok
        server.stop()
        run_id = await crib.submit("put", {"what": MARK})
        assert (await crib.store.journal.run(run_id)).status == "queued"
        server.start()
        result = await crib.resume(run_id)

    assert result.summary.status == "completed"
    assert shop.times("put") == 2


@pytest.mark.requirement("restate.server_lost", "restate.waiting")
async def test_runs_that_wait_outlive_the_loss_of_all_that_restate_has_kept(shop: Shop, server: RestateServer):
    shop.open()
    async with Crew(shop, server) as crew, shop.crib() as crib:
        await crew.hire()
        waiting = await crib.invoke("nests", {})
        server.stop()
        server.wipe()
        server.start()
        (asked,) = (await crib.approvals.page()).items
        assert await crib.decide(asked.run_id, asked.position, approve=True)
        result = await crib.resume(waiting.run_id)

    assert result.summary.status == "completed"
    assert (shop.times("put"), shop.times("sign")) == (1, 1)


@pytest.mark.requirement("restate.journal_missing")
async def test_a_run_that_the_store_does_not_have_fails_once_and_for_good(shop: Shop, server: RestateServer):
    async with Crew(shop, server) as crew, shop.crib() as crib:
        await crew.hire()
        shop.open()
        assert (await crib.invoke("put", {"what": MARK})).ok
        crib.engine.begin("run_of_an_older_store")
        missing = (
            "SELECT * FROM sys_invocation WHERE target_service_key = 'run_of_an_older_store' AND status = 'completed'"
        )
        await until(lambda: server.query(missing))

    (invocation,) = server.query(missing)
    assert "journal_missing" in invocation["completion_failure"]
    assert invocation.get("retry_count", 0) <= 1


@pytest.mark.requirement("restate.outbox")
async def test_a_run_whose_maker_dies_before_restate_is_told_is_found_by_a_worker(shop: Shop, server: RestateServer):
    shop.open()
    async with Crew(shop, server) as crew, shop.crib() as crib:
        await crew.hire()
        told = await crib.invoke("put", {"what": MARK})
        request = (await crib.store.journal.run(told.run_id)).request
        assert isinstance(crib.engine, RestateEngine)
        run_id = await crib.engine.local.create(request)
        result = await crib.resume(run_id)

    assert result.summary.status == "completed"
    assert shop.times("put") == 2


@pytest.mark.requirement("restate.drain")
async def test_a_worker_that_is_told_to_stop_leaves_its_run_in_good_order(shop: Shop, server: RestateServer):
    async with Crew(shop, server) as crew, shop.crib() as crib:
        first = await crew.hire()
        run_id = await crib.submit("nests", {})
        await shop.until("put-begun")
        shop.open()
        await crew.stop(first)
        await crew.hire()
        result = await crib.resume(run_id)

        assert result.summary.status == "awaiting_approval"
        assert shop.times("put-begun") == 1
        assert "crash" not in causes(result)


@pytest.mark.requirement("restate.drain")
async def test_a_worker_stops_also_when_a_call_does_not_end_in_time(shop: Shop, server: RestateServer):
    async with Crew(shop, server) as crew, shop.crib() as crib:
        first = await crew.hire(drain_s=0.2)
        run_id = await crib.submit("put", {"what": MARK})
        await shop.until("put-begun")
        await crew.stop(first)
        shop.open()
        await crew.hire()
        result = await crib.resume(run_id)

    assert result.summary.status == "completed"
    assert shop.times("put") == 1


@pytest.mark.requirement("restate.unable")
async def test_a_worker_that_lacks_a_function_leaves_the_run_to_one_that_has_it(shop: Shop, server: RestateServer):
    shop.open()
    async with Crew(shop, server) as crew, shop.crib() as crib:
        await crew.hire(tools=False)
        run_id = await crib.submit("put", {"what": MARK})
        failing = f"SELECT * FROM sys_invocation WHERE target_service_key = '{run_id}' AND retry_count > 1"
        await until(lambda: server.query(failing))
        (attempt, *_) = server.query(failing)
        await crew.hire()
        result = await crib.resume(run_id)

    assert result.summary.status == "completed"
    assert "lacks the Python function of put@1.0.0" in attempt["last_failure"]
    assert "Traceback" not in attempt["last_failure"]


@pytest.mark.requirement("restate.connection")
async def test_a_run_that_takes_longer_than_restate_is_patient_is_not_driven_twice(shop: Shop, server: RestateServer):
    impatient = Shop(shop.folder, server.options.model_copy(update={"inactivity_s": 1, "abort_s": 1}))
    async with Crew(impatient, server) as crew, impatient.crib() as crib:
        await crew.hire()
        run_id = await crib.submit("post", {"what": MARK})
        tried = f"SELECT * FROM sys_invocation WHERE target_service_key = '{run_id}' AND retry_count > 1"
        await until(lambda: server.query(tried))
        impatient.open()
        result = await crib.resume(run_id)

    assert result.summary.status == "completed"
    assert causes(result) == []
    assert (shop.times("post-begun"), shop.times("post")) == (1, 1)
