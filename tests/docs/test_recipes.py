"""The recipes and the page about the synchronous crib run as they stand there."""

import asyncio
import io
import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.docs.test_snippets import snippets
from toolcrib import ScriptedModel, sync
from toolcrib.contracts import AgentRequest

pytestmark = pytest.mark.requirement("docs.snippets")

RECIPES = Path("docs") / "recipes.md"
WAIT_S = 60
ROOT = Path(__file__).parents[2]


def blocks(title: str) -> list[str]:
    """The Python blocks of the recipes that have a title."""
    text = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    return re.findall(rf'^```python title="{re.escape(title)}"\n(.*?)^```', text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with all modules of the recipes."""
    text = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    for name in set(re.findall(r'^```python title="(\w+\.py)"', text, re.MULTILINE)):
        (tmp_path / name).write_text("\n\n".join(blocks(name)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(title: str) -> dict[str, Any]:
    """The names of a module of the recipes."""
    names: dict[str, Any] = {"__name__": title.removesuffix(".py")}
    sys.modules.pop(names["__name__"], None)
    for block in blocks(title):
        exec(compile(block, title, "exec"), names)
    return names


@pytest.fixture
def web(folder: Path) -> Iterator[TestClient]:
    """The application of FastAPI, which is open."""
    del folder
    with TestClient(run("web.py")["app"], headers={"X-User": "ann"}) as client:
        yield client


def test_fastapi_answers_as_the_user_of_the_request(web: TestClient):
    answered = web.post("/ask", json={"message": "Where is order A-1?"}).json()
    assert (answered["answer"], answered["status"]) == ("It is shipped.", "completed")
    again = web.post("/ask", json={"message": "Sure?", "conversation_id": answered["conversation_id"]}).json()
    assert again["conversation_id"] == answered["conversation_id"]
    stolen = web.post(
        "/ask", json={"message": "?", "conversation_id": answered["conversation_id"]}, headers={"X-User": "bob"}
    )
    assert stolen.status_code == 404
    assert "there is no conversation" in stolen.json()["error"]


def test_fastapi_streams(web: TestClient):
    streamed = web.post("/ask/stream", json={"message": "Where is order A-1?"})
    events = [json.loads(line.removeprefix("data: ")) for line in streamed.text.splitlines() if line[:5] == "data:"]
    assert "".join(event["text"] for event in events if event["type"] == "text_delta") == "It is shipped."
    assert events[-1]["type"] == "done"
    assert streamed.headers["content-type"].startswith("text/event-stream")


def test_cells_of_a_notebook_run(folder: Path):
    script = """
        import json, sys
        from IPython.core.interactiveshell import InteractiveShell

        shell = InteractiveShell()
        for cell in json.load(sys.stdin):
            result = shell.run_cell(cell)
            result.raise_error()
            print(repr(result.result))
        print(shell.user_ns["output"])
    """
    made = subprocess.run(
        [sys.executable, "-c", dedent(script)],
        check=False,
        input=json.dumps(blocks("notebook")),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        cwd=folder,
        env={"IPYTHONDIR": str(folder), "HOME": str(folder), "PATH": ""},
    )
    assert made.returncode == 0, made.stderr + made.stdout
    assert made.stdout.split("\n")[-2] == "4"
    assert "'Two deals.'" in made.stdout


def test_a_worker_drives_what_a_client_submits(folder: Path):
    program = str(Path(sys.executable).with_name("toolcrib"))
    [command] = re.findall(r"^\$ toolcrib (worker .*)$", (ROOT / RECIPES).read_text(encoding="utf-8"), re.MULTILINE)
    with subprocess.Popen([program, *command.split()], cwd=folder, stdout=-1, stderr=-1, text=True) as worker:
        try:
            client = subprocess.run(
                [sys.executable, "client.py"], check=False, cwd=folder, capture_output=True, text=True, timeout=WAIT_S
            )
        finally:
            worker.terminate()
        assert client.stdout == "completed: Report of May\n", client.stderr


def test_a_job_of_a_queue_calls_the_synchronous_crib(folder: Path):
    del folder
    job = run("tasks.py")["report_job"]
    assert [job(month) for month in ("May", "June")] == ["Report of May", "Report of June"]


def test_a_view_of_flask_asks_as_the_user_of_the_request(folder: Path):
    del folder
    names = run("views.py")
    with names["the_crib"](), names["app"].test_client() as client:
        answered = client.post("/ask", json={"message": "Where is order A-1?"}, headers={"X-User": "ann"})
        assert answered.json == {"answer": "It is shipped.", "status": "completed"}


def test_logs_are_lines_of_json_with_ids(folder: Path):
    del folder
    logger = logging.getLogger("toolcrib")
    handlers, level = list(logger.handlers), logger.level
    try:
        names = run("logs.py")
        names["handler"].setStream(stream := io.StringIO())
        asyncio.run(names["main"]())
    finally:
        logger.handlers[:] = handlers
        logger.setLevel(level)
    [line] = [json.loads(text) for text in stream.getvalue().splitlines() if "looking for" in text]
    assert (line["logger"], line["message"], line["tool"]) == (
        "toolcrib.tools.find_order",
        "looking for A-1",
        "find_order",
    )
    assert line["run_id"]
    assert line["call_id"]


def test_the_page_about_the_synchronous_crib_runs(folder: Path, capsys: pytest.CaptureFixture[str]):
    del folder
    script, show = snippets("synchronous")
    exec(compile(script, "synchronous.md", "exec"), {"__name__": "script"})
    assert capsys.readouterr().out == "{'order': 'A-1', 'status': 'shipped'}\nIt is shipped.\n"

    names: dict[str, Any] = {}
    exec(compile(show, "synchronous.md", "exec"), names)
    with sync.Crib("memory://", models={"scripted:m": ScriptedModel(["Fine."])}) as crib:
        crib.agent("desk", model="scripted:m")
        names["show"](crib, crib.executions.submit("desk", AgentRequest(message="How is it?")).run_id)
    assert capsys.readouterr().out == "Fine."
