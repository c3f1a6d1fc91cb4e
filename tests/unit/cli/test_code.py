"""Code tools on the command line, and what the machine has for them."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.unit.cli.command import toolcrib
from toolcrib import Crib
from toolcrib.contracts import Json

pytestmark = pytest.mark.requirement("cli.code")


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/crib.db"


def test_a_file_becomes_a_tool_that_runs(tmp_path: Path, store: str):
    code, schema = tmp_path / "double.py", tmp_path / "schema.json"
    code.write_text("def main(n):\n    return n * 2\n")
    schema.write_text('{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}')

    saved = toolcrib("tool", "add-code", code, "--name", "double", "--schema", schema, store=store)

    async def run() -> Json:
        async with Crib(store) as crib:
            return (await crib.call("double", n=21)).output

    assert saved.stdout == "tool double@1.0.0 is saved as revision 1\n"
    assert asyncio.run(run()) == 42


def test_javascript_is_told_by_its_name(tmp_path: Path, store: str):
    code = tmp_path / "one.js"
    code.write_text("function main() { return 1 }")

    toolcrib("tool", "add-code", code, "--name", "one", store=store)
    listed = toolcrib("tool", "list", "--json", store=store)

    implementation = json.loads(listed.stdout)[0]["definition"]["implementation"]
    assert (implementation["language"], implementation["kind"]) == ("javascript", "code")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("broken.py",), "its code is no Python"),
        (("code.py", "--interpreter", "perl"), "implementation.code.interpreter: Input should be 'any'"),
        (("code.py", "--schema", "schema.json"), "schema.json cannot be read"),
        (("code.py", "--schema", "code.py"), "code.py is not JSON"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_and_not_run(
    tmp_path: Path, store: str, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], told: str
):
    monkeypatch.chdir(tmp_path)
    Path("broken.py").write_text("def main(:")
    Path("code.py").write_text("raise SystemExit\ndef main(): pass")

    refused = toolcrib("tool", "add-code", *arguments, "--name", "x", store=store)

    assert refused.exit_code == 2
    assert told in refused.stderr


def test_the_doctor_tells_which_sandboxes_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)

    found = json.loads(toolcrib("doctor", "--json").stdout)
    table = toolcrib("doctor").stdout

    assert {(probe["backend"], probe["dialect"]) for probe in found} >= {("monty", "monty"), ("bwrap", "cpython")}
    assert {probe["problem"] for probe in found if probe["backend"] in ("monty", "bwrap")} == {None}
    assert "namespace" in table
