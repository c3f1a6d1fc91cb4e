"""Cancelling runs over HTTP."""

import pytest

from tests.unit.server.client import Server, checked, serving
from tests.unit.server.test_executions import ACME, waiting

pytestmark = pytest.mark.requirement("server.cancel")


async def test_a_waiting_run_is_cancelled_with_a_reason_that_the_record_keeps(server: Server) -> None:
    run_id = await waiting(server)

    answer = await server.post(f"/executions/{run_id}/cancel", {"reason": "not this one"}, status=202)

    assert answer == {"run_id": run_id, "status": "cancelled", "warnings": []}
    run = (await server.get(f"/executions/{run_id}"))["run"]
    assert (run["stop_reason"], run["error"]["details"]["reason"]) == ("cancelled", "cancelled")
    assert "by 'owner': not this one" in run["error"]["message"]
    again = await server.post(f"/executions/{run_id}/cancel", status=409)
    assert "is cancelled and cannot be cancelled any more" in again["detail"]


async def test_a_second_wish_to_cancel_a_run_that_still_goes_on_is_told_of_the_first() -> None:
    async with serving(driven=False) as server:
        run_id = (await server.post("/ai/tools/search/invoke", {**ACME, "wait": False}, status=202))["meta"]["run_id"]
        journal, now = server.crib.store.journal, server.crib.clock.now()
        assert await journal.claim(run_id, owner="another process", now=now, lease_s=60)

        first = await server.post(f"/executions/{run_id}/cancel", status=202)
        second = await server.post(f"/executions/{run_id}/cancel", status=409)

    assert first["status"] == "running"
    assert "is being cancelled already" in second["detail"]


async def test_cancelling_needs_a_grant_and_a_run_of_the_same_realm(server: Server) -> None:
    run_id = await waiting(server)
    async with server.client_of("reader") as reader:
        refused = checked(await reader.post(f"/api/v1/executions/{run_id}/cancel", json={}), 403)
    async with server.client_of("stranger") as stranger:
        checked(await stranger.post(f"/api/v1/executions/{run_id}/cancel", json={}), 404)

    assert "ai://runs/update/execute" in refused["detail"]
    assert (await server.get(f"/executions/{run_id}"))["run"]["status"] == "awaiting_approval"
