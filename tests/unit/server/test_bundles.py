"""Bundles over REST: who may read a run gets it in one file."""

import io

import pytest

from tests.unit.server.client import Server, checked
from toolcrib.crib.runs.bundles import replay_file

pytestmark = pytest.mark.requirement("bundles.rest")
ACME = {"params": {"company": "Acme"}}


async def test_who_may_read_a_run_gets_a_file_that_replays(server: Server):
    run_id = (await server.post("/ai/tools/search/invoke", ACME))["meta"]["run_id"]

    answer = await server.client.get(f"/api/v1/executions/{run_id}/bundle")

    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/zip")
    assert answer.headers["content-disposition"] == f'attachment; filename="{run_id}.bundle"'
    found = await replay_file(io.BytesIO(answer.content))
    assert (found.run_id, found.same) == (run_id, True)


async def test_a_bundle_of_another_realm_cannot_be_told_from_none(server: Server):
    run_id = (await server.post("/ai/tools/search/invoke", ACME))["meta"]["run_id"]

    async with server.client_of("stranger") as stranger:
        checked(await stranger.get(f"/api/v1/executions/{run_id}/bundle"), 404)
    async with server.client_of(None) as nobody:
        checked(await nobody.get(f"/api/v1/executions/{run_id}/bundle"), 401)
