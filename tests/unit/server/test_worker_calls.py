"""Calls of Python functions that the server lacks and a worker beside it has: real processes on one store."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.unit.server.client import checked
from tests.unit.server.test_serving import client, key_from
from toolcrib import Crib, SharingOptions
from toolcrib.contracts import Unavailable

PROGRAM = Path(sys.executable).with_name("toolcrib")
APPLICATION = '''
from toolcrib import Crib, tool

@tool(side_effects="reads")
def double(number: int) -> int:
    """Double a number."""
    return number * 2

@tool(side_effects="reads")
def fail() -> int:
    """Fail."""
    raise LookupError("no such number")

crib = Crib.from_settings()
crib.add(double, fail)
'''
pytestmark = [pytest.mark.requirement("engines.left_to_worker"), pytest.mark.slow]


class Shop:
    """A server without an application, and workers with one, on one store."""

    def __init__(self, folder: Path, store: str, stack: ExitStack) -> None:
        (folder / "shop_worked.py").write_text(APPLICATION)
        self._folder, self._stack = folder, stack
        self.store = store
        self.environment = {
            **os.environ,
            "TOOLCRIB_STORE": store,
            "TOOLCRIB_PEPPER": "p" * 32,
            "TOOLCRIB_WORKER_WAIT_S": "60",
        }

    def rewrite(self, application: str) -> None:
        """Give the workers another application."""
        (self._folder / "shop_worked.py").write_text(application)

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [PROGRAM, *arguments],
            cwd=self._folder,
            env={**self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._stack.callback(self._stop, process)
        return process

    @staticmethod
    def _stop(process: subprocess.Popen[str]) -> None:
        process.kill()
        process.communicate()

    def worker(self) -> subprocess.Popen[str]:
        worker = self.start("worker", "shop_worked:crib")
        assert _line(worker) == "A worker drives the runs of the store\n"
        return worker

    def server(self, **environment: str) -> httpx2.Client:
        server = self.start("up", "--port", "0", **environment)
        address = _line(server).split()[-1]
        return self._stack.enter_context(client(address, key_from(_line(server))))

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAM, *arguments],
            cwd=self._folder,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()
    return line


@pytest.fixture(params=["sqlite", "postgres"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Shop]:
    is_sqlite = request.param == "sqlite"
    store = f"sqlite:///{tmp_path}/crib.db" if is_sqlite else request.getfixturevalue("postgres_store")
    with ExitStack() as stack:
        yield Shop(tmp_path, store, stack)


def test_a_worker_completes_the_calls_of_functions_that_the_server_lacks(shop: Shop) -> None:
    shop.worker()
    session = shop.server()

    invoked = checked(session.post("/api/v1/ai/tools/double/invoke", json={"params": {"number": 21}}), 200)
    executed = checked(session.post("/api/v1/ai/tools/double/execute", json={"params": {"number": 4}}), 200)
    failed = checked(session.post("/api/v1/ai/tools/fail/execute", json={}), 200)
    body = {"params": {"number": 5}, "wait": False}
    run_id = checked(session.post("/api/v1/ai/tools/double/invoke", json=body), 202)["meta"]["run_id"]
    session.get(f"/api/v1/executions/{run_id}/events/stream")  # until it has ended
    called = shop.run("tool", "call", "double", "--input", '{"number": 6}')

    assert (invoked["success"], invoked["data"], invoked["meta"]["warnings"]) == (True, 42, [])
    assert (executed["status"], executed["output"]) == ("success", 8)
    assert failed["status"] == "error"
    assert "no such number" in failed["error"]["message"]
    assert checked(session.get(f"/api/v1/executions/{run_id}"), 200)["run"]["output"] == 10
    assert (called.returncode, called.stdout, called.stderr) == (0, "12\n", "")


def test_without_a_worker_the_run_stays_queued_and_the_next_worker_completes_it(shop: Shop) -> None:
    worker = shop.worker()  # it saves the definitions
    worker.terminate()
    worker.communicate(timeout=60)
    session = shop.server(TOOLCRIB_WORKER_WAIT_S="0")

    invoked = checked(session.post("/api/v1/ai/tools/double/invoke", json={"params": {"number": 21}}), 202)
    executed = checked(session.post("/api/v1/ai/tools/double/execute", json={"params": {"number": 4}}), 202)
    called = shop.run("tool", "call", "double", "--input", '{"number": 6}', TOOLCRIB_WORKER_WAIT_S="0")
    run_ids = [invoked["meta"]["run_id"], executed["run_id"], called.stderr.split()[2]]

    said = "this process lacks the Python function of double@1.0.0, and no worker claimed the run within 0 s"
    assert (invoked["success"], invoked["meta"]["status"], executed["status"]) == (False, "queued", "queued")
    assert said in invoked["meta"]["warnings"][0]
    assert said in executed["warnings"][0]
    assert (called.returncode, called.stdout) == (1, "")
    assert f"toolcrib: run {run_ids[2]} is queued: {said}; start one with toolcrib worker MODULE:CRIB" in called.stderr

    shop.worker()
    outputs: list[Any] = []
    for run_id in run_ids:
        session.get(f"/api/v1/executions/{run_id}/events/stream")
        outputs.append(checked(session.get(f"/api/v1/executions/{run_id}"), 200)["run"]["output"])
    assert outputs == [42, 8, 12]
    shown = json.loads(shop.run("run", "list", "--json").stdout)
    assert {run["status"] for run in shown} == {"completed"}


async def test_a_call_in_python_says_that_it_waits_for_a_worker(shop: Shop) -> None:
    worker = shop.worker()
    worker.terminate()
    worker.communicate(timeout=60)
    async with Crib(shop.store, sharing=SharingOptions(worker_wait_s=0)) as crib:
        result = await crib.invoke("double", {"number": 2})
        with pytest.raises(Unavailable, match=r"lacks the Python function of double@1\.0\.0"):
            await crib.call("double", number=2)
    assert (result.status, len(result.warnings)) == ("queued", 1)
