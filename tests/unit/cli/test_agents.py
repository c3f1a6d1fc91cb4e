"""Agents from the command line."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.command import toolcrib

CHUNK = "data: %s\n\n"


class Speaker(BaseHTTPRequestHandler):
    """A server of the chat API that answers "hello there", whole or word by word."""

    def do_POST(self) -> None:
        """Answer."""
        streams = json.loads(self.rfile.read(int(self.headers["content-length"]))).get("stream", False)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if streams else "application/json")
        self.end_headers()
        usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
        if streams:
            for word in ("hello ", "there"):
                self._send({"choices": [{"index": 0, "delta": {"role": "assistant", "content": word}}]})
            self._send({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage})
            self.wfile.write(b"data: [DONE]\n\n")
            return
        message = {"role": "assistant", "content": "hello there"}
        whole = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}
        self.wfile.write(json.dumps({"id": "1", "model": "local", **whole}).encode())

    def _send(self, chunk: Any) -> None:
        self.wfile.write((CHUNK % json.dumps({"id": "1", "model": "local", **chunk})).encode())

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""


@contextmanager
def speaking() -> Generator[str]:
    """The address of such a server."""
    with HTTPServer(("127.0.0.1", 0), Speaker) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/crib.db"


def add(store: str, folder: Path, *, url: str = "https://models.test/v1", **fields: Any) -> None:
    """Store the desk."""
    llm = {"model": "openai-compatible:local", "base_url": url, "api_key_env": "TOOLCRIB_SECRET_MODEL"}
    definition = {"name": "desk", "llm": llm, "system_prompt": "You answer.", **fields}
    (folder / "desk.yaml").write_text(json.dumps(definition), encoding="utf-8")
    added = toolcrib("agent", "add", folder / "desk.yaml", store=store)
    assert added.exit_code == 0, added.stderr


@pytest.mark.requirement("cli.agents")
def test_an_agent_is_added_from_a_file_listed_shown_and_removed(store: str, tmp_path: Path) -> None:
    file = tmp_path / "desk.yaml"
    file.write_text("name: desk\ndescription: Answers.\nllm: {model: 'openai:gpt-4o'}\ntools: []\n", encoding="utf-8")

    assert toolcrib("agent", "add", file, store=store).stdout == "agent desk@1.0.0 is saved as revision 1\n"
    assert "desk" in toolcrib("agent", "list", store=store).stdout
    [listed] = json.loads(toolcrib("agent", "list", "--json", store=store).stdout)
    shown = json.loads(toolcrib("agent", "show", "desk", store=store).stdout)
    assert listed == shown
    assert (shown["name"], shown["llm"]) == ("desk", {"model": "openai:gpt-4o"})
    assert toolcrib("agent", "remove", "desk", store=store).stdout == "agent desk is removed\n"
    gone = toolcrib("agent", "show", "desk", store=store)
    assert (gone.exit_code, "no agent 'desk'" in gone.stderr) == (1, True)


@pytest.mark.requirement("cli.agents")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name: [", "not YAML"),
        ("- desk", "is not a definition"),
        ("name: desk", "llm: Field required"),
        (
            "name: desk\nllm: {model: 'openai:gpt-4o'}\ncolour: red",
            "desk.yaml:3: error: /colour: there is no field 'colour'",
        ),
    ],
)
def test_a_file_that_is_no_agent_is_refused_in_one_line(store: str, tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "desk.yaml").write_text(text, encoding="utf-8")

    refused = toolcrib("agent", "add", tmp_path / "desk.yaml", store=store)

    assert (refused.exit_code, problem in refused.stderr) == (2, True), refused.stderr


@pytest.mark.requirement("cli.agents")
def test_the_tools_that_an_agent_would_have_are_listed_with_the_reasons(store: str, tmp_path: Path) -> None:
    add(store, tmp_path, name="clerk")
    add(store, tmp_path, delegates=["clerk"], excluded_tools=["clerk"])

    assert "Availability" in toolcrib("agent", "tools", "desk", store=store).stdout
    (told,) = json.loads(toolcrib("agent", "tools", "desk", "--message", "hi", "--json", store=store).stdout)
    assert told["tool"] == "clerk@1.0.0"


@pytest.mark.requirement("cli.agents")
def test_an_agent_is_asked_and_its_answer_printed_whole_or_as_it_is_said(store: str, tmp_path: Path) -> None:
    with speaking() as url:
        add(store, tmp_path, url=url)
        local = {"TOOLCRIB_EGRESS_ALLOW": url.split("/")[2], "TOOLCRIB_SECRET_MODEL": "key"}
        whole = toolcrib("agent", "run", "desk", "hi", store=store, **local)
        said = toolcrib("agent", "run", "desk", "hi", "--stream", store=store, **local)
        told = json.loads(toolcrib("agent", "run", "desk", "hi", "--json", store=store, **local).stdout)
        going_on = toolcrib(
            *("agent", "run", "desk", "and?", "--conversation", told["conversation_id"], "--json"),
            *("--context", '{"region": "EU"}'),
            store=store,
            **local,
        )
        shown = toolcrib("conversation", "show", told["conversation_id"], "--json", store=store)
        refused = toolcrib("agent", "run", "desk", "and?", "--context", "[1]", store=store)

    assert (whole.exit_code, whole.stdout) == (0, "hello there\n"), whole.stderr
    assert "conversation: conv_" in whole.stderr
    assert said.stdout == "hello there\n"
    assert (told["status"], told["response"]) == ("completed", "hello there")
    assert json.loads(going_on.stdout)["conversation_id"] == told["conversation_id"]
    assert json.loads(shown.stdout)["conversation"]["shared_context"] == {"region": "EU"}
    assert (refused.exit_code, "--context" in refused.stderr) == (2, True)


@pytest.mark.requirement("cli.agents")
def test_an_execution_that_fails_says_why_and_ends_with_status_1(store: str, tmp_path: Path) -> None:
    add(store, tmp_path, enabled=False)

    refused = toolcrib("agent", "run", "desk", "hi", store=store)

    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "desk" in refused.stderr
    shown = refused.stderr.split("toolcrib run trace ")[1].split()[0]
    assert toolcrib("run", "trace", shown, store=store).exit_code == 0


@pytest.mark.requirement("cli.agents")
def test_an_execution_that_waits_for_a_person_names_the_commands_that_carry_it_on(store: str, tmp_path: Path) -> None:
    add(store, tmp_path, requires_confirmation=True)

    waiting = toolcrib("agent", "run", "desk", "hi", store=store)
    [approval] = json.loads(toolcrib("approval", "list", "--json", store=store).stdout)

    assert f"`toolcrib approval approve {approval['approval_id']}`" in waiting.stdout
    assert f"`toolcrib run resume {approval['root_run_id']}`" in waiting.stdout
