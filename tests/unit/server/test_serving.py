import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.unit.cli.command import toolcrib
from tests.unit.server.client import body_of, checked, http_tool
from toolcrib.interfaces.server.serving import open_listener

PROGRAM = """
import sys
from toolcrib.interfaces.server import serve
from toolcrib.crib.settings import load_settings
serve(load_settings({"store": sys.argv[1] or None, "server.port": 0}).settings)
"""


@dataclass
class Deals:
    """A system that keeps its first request waiting; it never gets an answer if it is not let through."""

    url: str
    asked: threading.Semaphore
    answer: threading.Event
    release: threading.Event

    def let_first_through(self) -> None:
        self.answer.set()
        self.release.set()


@contextmanager
def foreign_system() -> Generator[Deals]:
    asked, first, release, answer = threading.Semaphore(0), threading.Event(), threading.Event(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.release()
            if not first.is_set():
                first.set()
                release.wait(60)
                if not answer.is_set():
                    return
            body = json.dumps({"deals": 3}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Say nothing."""

    system = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=system.serve_forever)
    thread.start()
    try:
        yield Deals(f"http://127.0.0.1:{system.server_port}/deals", asked, answer, release)
    finally:
        release.set()
        system.shutdown()
        thread.join()
        system.server_close()


@contextmanager
def server_process(store: str, settings: Mapping[str, str]) -> Generator[tuple[subprocess.Popen[str], str]]:
    """The process, and the address that its first line names."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, store],
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("Toolcrib listens on http://127.0.0.1:"), process.communicate()
        yield process, line.split()[-1]
    finally:
        process.kill()
        process.communicate()


def key_from(line: str) -> str:
    """The first API key, from the file that a server's second line names; only its owner can read it."""
    file = Path(line.removeprefix("The first API key is in ").removesuffix("\n"))
    assert file.stat().st_mode & 0o777 == 0o600
    return file.read_text().strip()


def client(address: str, key: str) -> httpx2.Client:
    return httpx2.Client(base_url=address, headers={"Authorization": f"Bearer {key}"}, timeout=60)


def finished(session: httpx2.Client, run_id: str) -> Any:
    session.get(f"/api/v1/executions/{run_id}/events/stream")
    return checked(session.get(f"/api/v1/executions/{run_id}"), 200)


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.requirement("server.process")
def test_a_killed_server_s_run_is_finished_by_the_next_one_which_shows_no_key(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/crib.db"
    with foreign_system() as deals:
        origin = deals.url.removeprefix("http://").removesuffix("/deals")
        settings = {"TOOLCRIB_EGRESS_ALLOW": origin, "TOOLCRIB_LEASE_S": "0.5"}
        with server_process(store, settings) as (process, address):
            assert process.stdout is not None
            key = key_from(process.stdout.readline())
            assert key.startswith("tcb_")
            with client(address, key) as session:
                checked(session.post("/api/v1/ai/tools", json=body_of(http_tool("deals", deals.url))), 201)
                invoked = session.post("/api/v1/ai/tools/deals/invoke", json={"wait": False})
                run_id = checked(invoked, 202)["meta"]["run_id"]
                assert deals.asked.acquire(timeout=60)
            process.kill()
            out, err = process.communicate()
            assert (out, err) == ("", "")
        with server_process(store, settings) as (process, address):
            with client(address, key) as session:
                view = finished(session, run_id)
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=60)
            assert (out, err) == ("", "")
    assert (view["run"]["status"], view["run"]["output"], view["run"]["epoch"]) == ("completed", {"deals": 3}, 2)
    kept = [file for file in tmp_path.iterdir() if file.is_file() and file.name != "crib-api-key"]
    assert key.encode() not in b"".join(file.read_bytes() for file in kept)


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.requirement("server.reattach")
def test_a_subscriber_whose_server_was_killed_goes_on_at_another_one_where_it_was(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/crib.db"
    with foreign_system() as deals:
        origin = deals.url.removeprefix("http://").removesuffix("/deals")
        settings = {"TOOLCRIB_EGRESS_ALLOW": origin, "TOOLCRIB_LEASE_S": "0.5"}
        with server_process(store, settings) as (process, address):
            assert process.stdout is not None
            key = key_from(process.stdout.readline())
            with client(address, key) as session:
                checked(session.post("/api/v1/ai/tools", json=body_of(http_tool("deals", deals.url))), 201)
                run_id = checked(session.post("/api/v1/ai/tools/deals/invoke", json={"wait": False}), 202)["meta"][
                    "run_id"
                ]
                assert deals.asked.acquire(timeout=60)
                with server_process(store, settings) as (_, other), client(other, key) as elsewhere:
                    path = f"/api/v1/executions/{run_id}/events/stream"
                    with session.stream("GET", path) as stream:
                        heard = [line for _, line in zip(range(2), ids(stream), strict=False)]
                        process.kill()
                    with elsewhere.stream("GET", path, headers={"Last-Event-ID": heard[-1]}) as stream:
                        heard += list(ids(stream))
                    last = checked(elsewhere.get(f"/api/v1/executions/{run_id}"), 200)["run"]
    assert heard == [*map(str, range(1, last["events"] + 1)), str(last["events"])]  # the last one says that it is done
    assert (last["status"], last["output"], last["epoch"]) == ("completed", {"deals": 3}, 2)


def ids(stream: httpx2.Response) -> Iterator[str]:
    """The ids of messages, as they come."""
    return (line.removeprefix("id: ") for line in stream.iter_lines() if line.startswith("id: "))


@pytest.mark.slow
@pytest.mark.requirement("server.process")
def test_of_several_servers_that_find_no_key_one_issues_the_first(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/crib.db"
    with server_process(store, {}) as (one, first), server_process(store, {}) as (other, second):
        wait_for(first)
        wait_for(second)
        one.send_signal(signal.SIGTERM)
        other.send_signal(signal.SIGTERM)
        said = one.communicate(timeout=60)[0] + other.communicate(timeout=60)[0]
    assert said.count("The first API key is in ") == 1


def wait_for(address: str) -> None:
    """Until a server answers, so that it has said what it says at its start."""
    httpx2.get(f"{address}/health", timeout=60).raise_for_status()


@pytest.mark.requirement("server.settings")
def test_a_malformed_setting_stops_the_start(tmp_path: Path) -> None:
    environment = {"TOOLCRIB_EGRESS_ALLOW": "localhost", "TOOLCRIB_STORE": f"sqlite:///{tmp_path}/crib.db"}
    command = [sys.executable, "-c", PROGRAM, ""]
    started = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    assert started.returncode != 0
    assert "TOOLCRIB_EGRESS_ALLOW: egress entry 'localhost' needs a port" in started.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.requirement("server.process")
def test_a_port_that_is_taken_is_named_with_what_to_set(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = toolcrib("up", "--port", str(port), store=f"sqlite:///{tmp_path}/crib.db")

    said = f"the server cannot listen on 127.0.0.1 port {port}: Address already in use; set server.host or server.port"
    assert (refused.exit_code, refused.stderr) == (2, f"toolcrib: {said}\n")


@pytest.mark.requirement("server.process", "leaving.queued")
def test_a_server_that_is_told_to_stop_lets_a_call_end_and_leaves_its_run_to_the_next_one(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/crib.db"
    with foreign_system() as deals:
        origin = deals.url.removeprefix("http://").removesuffix("/deals")
        settings = {"TOOLCRIB_EGRESS_ALLOW": origin, "TOOLCRIB_LEASE_S": "3600", "TOOLCRIB_SERVER_DRAIN_S": "30"}
        with server_process(store, settings) as (process, address):
            assert process.stdout is not None
            key = key_from(process.stdout.readline())
            with client(address, key) as session:
                checked(session.post("/api/v1/ai/tools", json=body_of(http_tool("deals", deals.url))), 201)
                steps = [
                    {"name": "first", "tool": "deals"},
                    {"name": "second", "tool": "deals", "depends_on": ["first"]},
                ]
                twice = {"definition": {"name": "twice", "steps": steps}}
                checked(session.post("/api/v1/ai/workflows/twice/publish", json=twice), 200)
                invoked = session.post("/api/v1/ai/tools/twice/invoke", json={"wait": False})
                run_id = checked(invoked, 202)["meta"]["run_id"]
                assert deals.asked.acquire(timeout=60)
            process.send_signal(signal.SIGTERM)
            deals.let_first_through()
            out, err = process.communicate(timeout=60)
            assert (out, err) == ("", "")
        with server_process(store, settings) as (_, address), client(address, key) as session:
            view = finished(session, run_id)
    causes = [step["cause"] for step in view["trace"]["steps"] if step["type"] == "resumption"]
    assert (view["run"]["status"], causes) == ("completed", ["shutdown"])


@pytest.mark.requirement("server.no_delay")
def test_an_answer_on_a_kept_connection_does_not_wait_for_an_acknowledgement():
    with open_listener("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
