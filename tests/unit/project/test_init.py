"""`toolcrib init`: the commands that it prints, run in an empty folder."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import jsonschema_rs
import pytest

from tests.unit.cli.command import toolcrib
from toolcrib.crib.project import Project, project_schema

pytestmark = pytest.mark.requirement("projects.init")
BIN = Path(sys.executable).parent
SECONDS = 120


@pytest.mark.slow
def test_the_commands_that_a_new_project_prints_work(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "TOOLCRIB_SERVER_PORT": "0"}
    environment = {name: value for name, value in environment.items() if not name.endswith("_API_KEY")}

    def run(command: str) -> str:
        done = subprocess.run(
            shlex.split(command),
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    run("toolcrib init .")
    commands = json.loads(toolcrib("init", tmp_path / "other", "--json").stdout)["next"]
    printed = toolcrib("init", tmp_path / "third").stdout
    assert all(f"  {command}\n" in printed for command in commands)
    apply, work, call, test = commands
    assert "applied" in run(apply)
    assert run(apply) == "no changes: project 'shop' is as the store has it\n"
    server = subprocess.Popen(shlex.split(work), cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        assert server.stdout.readline().startswith("A worker drives")
        assert json.loads(run(call)) == 20.0
    finally:
        server.kill()
        server.communicate()
    assert "1 passed" in run(f"{test} -p no:cacheprovider")


def test_a_folder_with_files_of_the_project_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("mine")
    refused = toolcrib("init", tmp_path)
    assert (refused.exit_code, "shop.py is there already" in refused.stderr) == (2, True)
    assert [file.name for file in tmp_path.iterdir()] == ["shop.py"]


def test_the_schema_for_editors_accepts_the_documents_and_refuses_a_misspelt_one(tmp_path: Path) -> None:
    toolcrib("init", tmp_path)
    schema = json.loads((tmp_path / ".toolcrib" / "project.schema.json").read_text())
    assert schema == json.loads(json.dumps(project_schema()))
    committed = Path(__file__).parents[3] / "docs" / "schemas" / "project.json"
    assert schema == json.loads(committed.read_text()), "run `toolcrib schema --write docs/schemas`"
    assert schema == json.loads(toolcrib("schema", "project").stdout)
    assert set(re.findall(r'"\$ref": "([^"#]*)', json.dumps(schema))) == {""}, "editors must fetch nothing"
    for file in (tmp_path / "definitions").iterdir():
        line = file.read_text().partition("\n")[0]
        named = line.removeprefix("# yaml-language-server: $schema=")
        assert json.loads((file.parent / named).read_text()) == schema
    [tool] = [each for each in schema["oneOf"] if each["title"] == "tool"]
    assert tool["properties"]["timeout_s"]["description"]
    validator = jsonschema_rs.validator_for(schema)
    documents = Project.read(tmp_path / "definitions").documents
    assert len(documents) == 5
    for each in documents:
        assert validator.is_valid({"kind": each.kind, **each.content}), each.name
    assert not validator.is_valid({"kind": "fragment", "name": "x", "txt": "y"})
    assert not validator.is_valid({"kind": "fragmnt", "name": "x", "text": "y"})
