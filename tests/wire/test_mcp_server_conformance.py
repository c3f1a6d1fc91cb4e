"""The protocol's own conformance suite against our server, whose fixtures are tools of a crib.

`fixtures/mcp_server_conformance.yaml` names what we do not do, with the reason. The suite fails for anything else that
does not pass, and for an entry that does.
"""

import asyncio
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from tests.node import node_command
from tests.unit.mcp_server.served import on_a_port
from tests.unit.server.client import authenticate
from tests.wire.mcp_conformance_tools import TOOLS, triggers
from toolcrib import Crib
from toolcrib.interfaces.server import create_app

pytestmark = [pytest.mark.requirement("mcp_server.conformance"), pytest.mark.slow]

SUITE = "@modelcontextprotocol/conformance/dist/index.js"
KNOWN = Path(__file__).parent / "fixtures" / "mcp_server_conformance.yaml"
MOST_SHOWN = 4_000


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_the_server_does_what_a_revision_of_the_protocol_requires(revision: str, tmp_path: Path) -> None:
    crib = Crib("memory://")
    crib.add(*TOOLS, *triggers(crib))
    app = create_app(crib, authenticate)

    async def with_a_key(scope: Scope, receive: Receive, send: Send) -> None:
        """The application for clients that send no key."""
        await app({**scope, "headers": [*scope["headers"], (b"authorization", b"Bearer owner")]}, receive, send)

    options = ("--requirements", revision, "--expected-failures", str(KNOWN), "--output-dir", str(tmp_path))
    async with app.router.lifespan_context(app), on_a_port(with_a_key) as url:
        suite = await asyncio.create_subprocess_exec(
            *node_command(SUITE, "server", "--url", url, *options),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await suite.communicate()
    assert suite.returncode == 0, said.decode(errors="replace")[-MOST_SHOWN:]
