"""`toolcrib up APP`: an application's crib with its Python functions, served by the installed program."""

import os
import pty
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.cli.command import toolcrib
from tests.unit.server.client import checked
from tests.unit.server.test_serving import client, key_from

PROGRAM = Path(sys.executable).with_name("toolcrib")
APPLICATION = '''
from toolcrib import Crib, tool

@tool(side_effects="reads")
def double(number: int) -> int:
    """Double a number."""
    return number * 2

def make():
    crib = Crib.from_settings()
    crib.add(double)
    return crib

def of_store(url):
    return Crib(url)

elsewhere = Crib("sqlite:///elsewhere.db")
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "shop_served.py").write_text(APPLICATION)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "shop_served", raising=False)
    return tmp_path


@contextmanager
def program(folder: Path, *arguments: str, **environment: str) -> Generator[subprocess.Popen[str]]:
    """The installed program, with its output."""
    process = subprocess.Popen(
        [PROGRAM, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()
    return line


@pytest.mark.requirement("cli.up_application")
def test_up_serves_the_python_functions_of_an_application(folder: Path) -> None:
    with program(folder, "up", "shop_served:make", "--port", "0", "--store", f"sqlite:///{folder}/crib.db") as server:
        address = line_of(server).split()[-1]
        with client(address, key_from(line_of(server))) as session:
            done = checked(session.post("/api/v1/ai/tools/double/execute", json={"params": {"number": 21}}), 200)
            submitted = session.post("/api/v1/ai/tools/double/invoke", json={"params": {"number": 4}, "wait": False})
            run_id = checked(submitted, 202)["meta"]["run_id"]
            session.get(f"/api/v1/executions/{run_id}/events/stream")  # until it has ended
            ended = checked(session.get(f"/api/v1/executions/{run_id}"), 200)["run"]
    assert done["output"] == 42
    assert (ended["status"], ended["output"]) == ("completed", 8)


@pytest.mark.requirement("cli.up_application", "cli.errors")
@pytest.mark.parametrize(
    ("application", "message"),
    [
        ("shop_serve:make", "did you mean 'shop_served'? modules here: shop_served"),
        ("shop_served", "is not of the form module:name, such as shop.tools:crib"),
        (
            "shop_served:crib",
            "the module 'shop_served' has no 'crib'; it has cribs: elsewhere; functions without parameters: make",
        ),
        ("shop_served:double", "cannot be called without arguments"),
        ("shop_served:of_store", "cannot be called without arguments"),
        ("shop_served:APPLICATION", "has no 'APPLICATION'"),
        ("shop_served:elsewhere", "make it with Crib.from_settings(), or name its store with --store"),
        ("json:decoder", "'json:decoder' is of type module, not a Crib or a function that returns one; it has no crib"),
    ],
)
def test_an_application_that_cannot_be_served_is_refused_with_what_was_found(
    folder: Path, application: str, message: str
) -> None:
    refused = toolcrib("up", application, store=f"sqlite:///{folder}/crib.db")

    assert refused.exit_code == 2
    assert message in refused.stderr
    assert not (folder / "crib.db").exists()


@pytest.mark.requirement("cli.up_application", "cli.errors")
def test_an_application_with_another_engine_than_the_settings_is_refused(folder: Path) -> None:
    store = f"sqlite:///{folder}/elsewhere.db"
    refused = toolcrib("up", "shop_served:elsewhere", store=store, TOOLCRIB_ENGINE="restate")

    assert refused.exit_code == 2
    assert "has the engine 'local' and the settings say 'restate'" in refused.stderr


@pytest.mark.requirement("cli.first_key")
def test_a_terminal_is_shown_the_first_key_once_and_no_file_has_it(folder: Path) -> None:
    reader, writer = pty.openpty()
    command = [PROGRAM, "up", "--port", "0", "--store", f"sqlite:///{folder}/crib.db"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=writer, text=True)
    try:
        address = line_of(process).split()[-1]
        with os.fdopen(reader) as shown:
            said = shown.readline()
        key = said.split()[-1]
        with client(address, key) as session:
            checked(session.get("/api/v1/ai/tools"), 200)
    finally:
        process.kill()
        out, _ = process.communicate()
        os.close(writer)
    assert said.startswith("API key, shown only now: tcb_")
    assert out == ""
    assert key.encode() not in b"".join(file.read_bytes() for file in folder.iterdir() if file.is_file())


@pytest.mark.requirement("cli.first_key")
def test_a_server_that_cannot_write_the_key_file_says_how_to_make_a_key(folder: Path) -> None:
    with program(folder, "up", "--port", "0", "--store", "memory://") as first:
        line_of(first)
        assert key_from(line_of(first)).startswith("tcb_")
    (folder / "toolcrib-api-key").unlink()

    store = f"sqlite:///{folder}/{'c' * 240}.db"  # the name of the key's file would be too long
    with program(folder, "up", "--port", "0", "--store", store, TOOLCRIB_PEPPER="p" * 32) as second:
        line_of(second)
        assert "cannot be written (File name too long): run toolcrib key add" in line_of(second)
