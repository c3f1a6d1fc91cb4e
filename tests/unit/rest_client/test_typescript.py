"""The TypeScript client: written from the document, strictly typed, and run under Node against a real server."""

import asyncio
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.node import installed, node_command
from tests.unit.rest_client.served import served
from tools.web_client import TYPES, WEB, types


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The web folder with its packages."""
    shutil.copytree(WEB, tmp_path / "web", ignore=shutil.ignore_patterns("node_modules"))
    (tmp_path / "web" / "node_modules").symlink_to(installed(WEB) / "node_modules")
    return tmp_path / "web"


@pytest.mark.slow
@pytest.mark.requirement("rest_client.written")
def test_the_types_are_what_the_generator_writes() -> None:
    assert TYPES.read_text(encoding="utf-8") == types(), "run `python -m tools.web_client`"


@pytest.mark.slow
@pytest.mark.requirement("rest_client.typescript")
def test_the_client_compiles_strictly(project: Path) -> None:
    command = node_command("typescript/bin/tsc", "--project", str(project), home=WEB)
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (answer.stdout, answer.returncode) == ("", 0)


@pytest.mark.slow
@pytest.mark.requirement("rest_client.typescript")
async def test_the_client_calls_a_real_server_under_node(project: Path) -> None:
    [node, _] = node_command("typescript/bin/tsc", home=WEB)
    async with served() as (_, url):
        script = str(project / "src" / "checks" / "smoke.ts")
        program = await asyncio.create_subprocess_exec(
            node, "--no-warnings", script, url, "owner", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, errors = await program.communicate()
    assert program.returncode == 0, errors.decode()
    found = json.loads(out)
    assert (found["data"], found["problem"], len(found["names"])) == ([{"name": "Acme"}], "not_found", 2)
    assert found["events"][-1] == "done"
