"""The protocol's own conformance suite against our client: what a revision requires, but for what is written down.

`fixtures/mcp_conformance.yaml` names what we do not do, with the reason. The suite fails for anything else that does
not pass, and for an entry that does.
"""

import asyncio
from pathlib import Path

import pytest

from tests.node import node_command
from tests.wire.mcp_conformance import client_command

pytestmark = [pytest.mark.requirement("mcp_client.conformance"), pytest.mark.slow]

SUITE = "@modelcontextprotocol/conformance/dist/index.js"
KNOWN = Path(__file__).parent / "fixtures" / "mcp_conformance.yaml"
MOST_SHOWN = 4_000


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_the_client_does_what_a_revision_of_the_protocol_requires(revision: str, tmp_path: Path):
    async with client_command(tmp_path) as command:
        options = ("--requirements", revision, "--expected-failures", str(KNOWN), "--output-dir", str(tmp_path / "out"))
        suite = await asyncio.create_subprocess_exec(
            *node_command(SUITE, "client", "--command", command, "--timeout", "120000", *options),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await suite.communicate()
    assert suite.returncode == 0, said.decode(errors="replace")[-MOST_SHOWN:]
