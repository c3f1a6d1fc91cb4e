"""What becomes of jails when the process that has made them is killed."""

import os
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

pytestmark = pytest.mark.requirement("sandbox.server_killed")

SERVER = """
import asyncio
import sys
from datetime import UTC, datetime
from toolcrib.infrastructure.sandbox import ToolReply, BwrapBackend, CodeJob, GvisorBackend, MontyBackend

BACKENDS = {"bwrap": (BwrapBackend, "cpython"), "gvisor": (GvisorBackend, "cpython"), "monty": (MontyBackend, "monty")}
SOURCE = "def main():\\n    f()\\n    while True:\\n        pass\\n"

async def serve(name):
    backend, dialect = BACKENDS[name]
    job = CodeJob(SOURCE, {}, datetime(2026, 1, 1, tzinfo=UTC), seed="7", functions=("f",))
    session = await backend().open(job, dialect)
    print(await session.start(), flush=True)
    await session.answer(ToolReply())

asyncio.run(serve(sys.argv[1]))
"""
"""A process that has asked code running, and tells when it runs."""


def parents() -> Mapping[int, int]:
    """The parents of the processes that live."""
    found: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = status.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state not in "ZX":
            found[int(status.parent.name)] = int(parent)
    return found


def descendants(of: int) -> set[int]:
    """What a process has started, and what that has."""
    known, found = parents(), {of}
    while more := {pid for pid, parent in known.items() if parent in found} - found:
        found |= more
    return found - {of}


@pytest.mark.parametrize("backend", ["bwrap", "gvisor", "monty"])
def test_no_jail_outlives_the_process_that_has_made_it(backend: str):
    with subprocess.Popen([sys.executable, "-c", SERVER, backend], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline().startswith(b"ToolRequest")
        jailed = [os.pidfd_open(pid) for pid in descendants(server.pid)]
        server.kill()

    ended = [bool(select.select([file], [], [], 30)[0]) for file in jailed]
    for file in jailed:
        os.close(file)
    assert ended
    assert all(ended)
