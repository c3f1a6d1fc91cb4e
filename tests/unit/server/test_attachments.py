"""What accompanies an output is fetched over HTTP: whole, in ranges, and by nobody without a right to the run."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.twins import make_definition
from tests.unit.cli.command import toolcrib
from tests.unit.net.servers import serving as loopback
from tests.unit.server.client import Server, checked, serving
from toolcrib import Crib, EgressPolicy, tool
from toolcrib.contracts import JsonObject
from toolcrib.interfaces.server.http.streaming import RangeRequest, file_response
from toolcrib.kinds.http.shape import HttpImplementation

pytestmark = pytest.mark.requirement("server.attachments")

ROWS = [{"id": number, "name": f"deal {number}"} for number in range(400)]


@tool(side_effects="reads", max_output_bytes=1000)
async def every_deal() -> list[dict[str, object]]:
    """More than fits."""
    return [dict(row) for row in ROWS]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncGenerator[Server]:
    async with serving(f"sqlite:///{tmp_path}/crib.db") as started:
        started.crib.add(every_deal)
        yield started


async def truncated(server: Server) -> JsonObject:
    return await server.post("/ai/tools/every_deal/execute")


async def test_f3_a_truncated_output_is_fetched_whole_at_the_address_in_its_envelope(server: Server):
    envelope = await truncated(server)
    [kept] = envelope["attachments"]
    whole = await server.client.get(kept["url"])
    listed = await server.get(f"/executions/{envelope['run_id']}/attachments")

    assert envelope["truncated"]
    assert kept["url"].startswith(f"/api/v1/executions/{envelope['run_id']}/attachments/")
    assert checked(whole, 200) == ROWS
    assert whole.headers["content-type"] == "application/json"
    assert len(whole.content) == kept["bytes"]
    assert listed["items"] == [kept]


async def test_f3_a_table_is_fetched_whole(tmp_path: Path):
    lines = "\n".join(["id,name", *(f"{row['id']},{row['name']}" for row in ROWS)])

    async def handle(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text=lines, content_type="text/csv")

    async with loopback(handle) as port:

        def make(store: Any, **fields: Any) -> Crib:
            fields["egress"] = EgressPolicy(allow=(f"127.0.0.1:{port}",))
            return Crib(store, **fields)

        table = HttpImplementation(method="GET", url=f"http://127.0.0.1:{port}/", response="readable")
        async with serving(f"sqlite:///{tmp_path}/crib.db", make_crib=make) as server:
            await server.crib.save(make_definition("rows", implementation=table, side_effects="reads"))
            envelope = await server.post("/ai/tools/rows/execute")
            [kept] = envelope["attachments"]
            whole = await server.client.get(kept["url"])

    assert (kept["kind"], len(envelope["output"]["rows"])) == ("table", 50)
    assert checked(whole, 200)["rows"] == [[str(row["id"]), row["name"]] for row in ROWS]


async def test_f3_ranges_and_what_the_client_has_are_honoured(server: Server):
    [kept] = (await truncated(server))["attachments"]
    whole = (await server.client.get(kept["url"])).content
    total, tag = len(whole), f'"{kept["url"].rpartition("/")[2]}"'
    asked = {
        "bytes=0-9": (206, whole[:10], f"bytes 0-9/{total}"),
        "bytes=-5": (206, whole[-5:], f"bytes {total - 5}-{total - 1}/{total}"),
        f"bytes={total - 3}-": (206, whole[-3:], f"bytes {total - 3}-{total - 1}/{total}"),
        f"bytes=10-{total * 2}": (206, whole[10:], f"bytes 10-{total - 1}/{total}"),
        f"bytes={total}-": (416, b"", f"bytes */{total}"),
        "bytes=-0": (416, b"", f"bytes */{total}"),
        "bytes=9-3": (200, whole, None),
        "bytes=0-1,4-5": (200, whole, None),
        "lines=1-2": (200, whole, None),
        "bytes=-": (200, whole, None),
    }
    for wanted, (status, content, content_range) in asked.items():
        got = await server.client.get(kept["url"], headers={"range": wanted})
        assert (got.status_code, got.content, got.headers.get("content-range")) == (status, content, content_range)
    stale = await server.client.get(kept["url"], headers={"range": "bytes=0-9", "if-range": '"other"'})
    fresh = await server.client.get(kept["url"], headers={"range": "bytes=0-9", "if-range": tag})
    known = await server.client.get(kept["url"], headers={"if-none-match": f'"other", {tag}'})
    assert (stale.status_code, fresh.status_code, known.status_code, known.content) == (200, 206, 304, b"")


async def test_f3_nobody_reads_an_attachment_without_a_right_to_its_run(server: Server):
    envelope = await truncated(server)
    [kept] = envelope["attachments"]
    digest = kept["url"].rpartition("/")[2]
    other = await server.post("/ai/tools/search/execute", {"params": {"company": "Acme"}})
    elsewhere = await server.client.get(f"/api/v1/executions/{other['run_id']}/attachments/{digest}")
    nothing = await server.client.get(f"/api/v1/executions/{envelope['run_id']}/attachments/{'0' * 64}")
    async with server.client_of("reader") as reader, server.client_of("stranger") as stranger:
        of_others = await reader.get(kept["url"])
        of_another_realm = await stranger.get(kept["url"])
        listed = await reader.get(f"/api/v1/executions/{envelope['run_id']}/attachments")
    async with server.client_of(None) as nobody:
        unknown = await nobody.get(kept["url"])

    assert checked(elsewhere, 404)["detail"].startswith(f"run {other['run_id']} has no attachment")
    assert [found.status_code for found in (nothing, of_others, of_another_realm, listed, unknown)] == [
        404,
        403,
        404,
        403,
        401,
    ]


def test_f3_what_outsiders_have_made_is_saved_and_never_shown():
    shown = file_response(b"<script>", "ab" * 32, "text/html; charset=utf-8", RangeRequest())
    broken = file_response(b"x", "ab" * 32, 'text/html\r\nset-cookie: "a"', RangeRequest())

    assert shown.headers["content-type"] == "text/html; charset=utf-8"
    assert shown.headers["content-disposition"] == 'attachment; filename="abababababababab.html"'
    assert shown.headers["x-content-type-options"] == "nosniff"
    assert shown.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert broken.headers["content-type"] == "application/octet-stream"
    assert broken.headers["content-disposition"] == 'attachment; filename="abababababababab.bin"'


async def test_f3_the_command_line_lists_and_writes_attachments(tmp_path: Path):
    store, file = f"sqlite:///{tmp_path}/crib.db", tmp_path / "deals.json"
    async with serving(store) as server:
        server.crib.add(every_deal)
        run_id = (await truncated(server))["run_id"]

    listed = await asyncio.to_thread(toolcrib, "attachment", "list", run_id, "--json", store=store)
    [kept] = json.loads(listed.stdout)
    digest = kept["url"].rpartition(":")[2]
    table = await asyncio.to_thread(toolcrib, "attachment", "list", run_id, store=store)
    written = await asyncio.to_thread(toolcrib, "attachment", "show", run_id, digest, "-o", file, store=store)
    printed = await asyncio.to_thread(toolcrib, "attachment", "show", run_id, digest, store=store)
    missing = await asyncio.to_thread(toolcrib, "attachment", "show", run_id, "0" * 64, store=store)

    assert digest[:20] in table.stdout
    assert json.loads(file.read_text()) == ROWS == json.loads(printed.stdout)
    assert written.stdout.startswith(f"wrote {file}: {kept['bytes']} bytes")
    assert (missing.exit_code, "has no attachment" in missing.stderr) == (1, True)
