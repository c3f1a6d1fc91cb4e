"""The CRM as a process of its own."""

import ast
import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import examples.crm

FOLDER = Path(examples.crm.__path__[0])

pytestmark = pytest.mark.requirement("crm.process")


@asynccontextmanager
async def running(folder: Path, *options: str) -> AsyncGenerator[tuple[Process, dict[str, Any]]]:
    """The server, started in a foreign working directory, and its announcement."""
    script = str(FOLDER / "server.py")
    process = await asyncio.create_subprocess_exec(
        sys.executable, script, "--db", "crm.db", *options, cwd=folder, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            yield process, json.loads(await process.stdout.readline())
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def pipelines(announced: dict[str, Any]) -> int:
    headers = {"Authorization": f"Bearer {announced['token']}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.get(f"{announced['url']}/crm/v1/pipelines") as response,
    ):
        return response.status


async def test_it_announces_itself_serves_and_stops_at_sigterm(tmp_path: Path) -> None:
    async with running(tmp_path, "--rate", "2/60", "--seed", "3") as (process, announced):
        assert announced.keys() == {"url", "token"}
        assert announced["url"].startswith("http://127.0.0.1:")
        assert [await pipelines(announced) for _ in range(3)] == [200, 200, 429]
        process.terminate()
        rest, errors = await process.communicate()
        assert (process.returncode, rest, errors) == (0, b"", b"")
    assert not (tmp_path / "crm.db-wal").exists()


async def test_it_stops_when_its_parents_pipe_closes(tmp_path: Path) -> None:
    async with running(tmp_path, "--exit-with-parent") as (process, announced):
        assert await pipelines(announced) == 200
        assert process.stdin is not None
        process.stdin.close()  # as the death of the parent would
        rest, errors = await process.communicate()
        assert (process.returncode, rest, errors) == (0, b"", b"")


async def test_a_file_of_something_else_ends_it_with_a_message(tmp_path: Path) -> None:
    (tmp_path / "crm.db").write_text("notes of mine, which are no database\n" * 100)
    script = str(FOLDER / "server.py")
    process = await asyncio.create_subprocess_exec(
        sys.executable, script, "--db", "crm.db", cwd=tmp_path, stdout=PIPE, stderr=PIPE
    )
    output, errors = await process.communicate()
    assert (process.returncode, output) == (1, b"")
    assert errors.startswith(b"crm: ")
    assert b"Traceback" not in errors


async def test_a_rate_of_another_form_ends_it_with_a_message(tmp_path: Path) -> None:
    script = str(FOLDER / "server.py")
    process = await asyncio.create_subprocess_exec(
        sys.executable, script, "--db", "crm.db", "--rate", "fast", cwd=tmp_path, stdout=PIPE, stderr=PIPE
    )
    output, errors = await process.communicate()
    assert (process.returncode, output) == (2, b"")
    assert b"N/SECONDS" in errors


DEMONSTRATION = {"demo.py", "planner.py"}
"""What stands beside the CRM and uses it from outside."""


@pytest.mark.requirement("crm.foreign")
@pytest.mark.parametrize(
    "path", sorted(file for file in FOLDER.rglob("*.py") if file.name not in DEMONSTRATION), ids=lambda path: path.name
)
def test_it_imports_only_itself_the_standard_library_aiohttp_and_yaml(path: Path) -> None:
    imported: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module or "")
    tops = {name.partition(".")[0] for name in imported}
    assert imported & {f"examples.crm.{Path(name).stem}" for name in DEMONSTRATION} == set()
    assert tops - sys.stdlib_module_names <= {"examples", "aiohttp", "yaml"}
