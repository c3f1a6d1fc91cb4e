"""The commands on the pages are run in a folder and a store that have what they name."""

import asyncio
import io
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Final

import pytest

from tests.docs import commands_world as world
from tests.docs.test_walkthroughs import PAGES as FOLLOWED
from tests.twins import MASTER_KEYS
from toolcrib.interfaces.cli.app import main
from tools.docs import pages

pytestmark = pytest.mark.requirement("docs.commands")

ROOT: Final = Path(__file__).parents[2]
NOT_RUN: Final = {
    r"mcp( serve)?( -| \S+:|$)|guard\b": "speaks MCP to the client that has started it; tests/unit/mcp_server does",
    r"up\b|worker\b": "serves until it is stopped; the tests of the server and of workers start it",
    r"demo\b": "the tests of the demonstration run it",
    r"model add": "downloads a model",
    r"tool import(-mcp|-graphql|-a2a)? .*(https?|grpcs?)://|tool import-mcp": "asks another system",
    r"provider (test|discover|sync|connect|disconnect)\b": "asks another system",
    r"agent run|run fork|eval tasks|tool (test-prompt|revert)|tool regenerate .*--by-model": "asks a model",
    r"approval (settle|reject)|run (settle|answer)\b|attachment show|workflow materialize": "needs a call that waits",
}
"""Commands that have no counterpart here, each with the reason. That they exist, with their options, is tested too."""
PREPARED: Final = {
    "tool accept crm_update_deal": "tool import crm.yaml --name crm",
    "tool reject crm_update_deal": "tool import openapi.yaml --name crm",
    "secret remove CRM_TOKEN": "secret set CRM_TOKEN",
    "replay run.bundle": "run export ID -o run.bundle",
}
"""What is run before a command, so that there is something to do."""


def lines_of(text: str) -> list[str]:
    """The commands in the indented blocks of a page, without comments, and without what is optional."""
    lines = re.findall(r"^    \$? ?toolcrib ([^#\n]*)", text, re.MULTILINE)
    return [re.sub(r" \[.*\]| [<>] \S+$", "", line.strip()) for line in lines]


def is_left_out(line: str) -> bool:
    """Whether a command has no counterpart here."""
    return any(re.match(pattern, line) for pattern in NOT_RUN)


def pages_with_tests() -> set[str]:
    """Pages whose own tests, outside of this folder, read them: they run what is on them."""
    sources = (file for file in (ROOT / "tests").rglob("test_*.py") if file.parent != Path(__file__).parent)
    of_tests = re.compile(r'"docs(?:/|" / ")([a-z/-]+\.md)"')
    reserved = set(pages.config(ROOT)["extra"]["reserved"])
    return {page for file in sources for page in of_tests.findall(file.read_text(encoding="utf-8"))} & reserved


def commands() -> Iterator[tuple[str, list[str]]]:
    """The commands that are run, by page."""
    tested = FOLLOWED.keys() | pages_with_tests()
    for path, text in pages.pages(ROOT).items():
        lines = [line for line in lines_of(text) if not is_left_out(line)]
        if lines and path not in tested:
            yield path, lines


COMMANDS: Final = dict(commands())


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mapping[str, str]]:
    """The folder, and the ids in its store."""
    folder = tmp_path_factory.mktemp("world")
    world.write_files(folder)
    return folder, asyncio.run(world.fill(f"sqlite:///{folder / 'toolcrib.db'}"))


@pytest.fixture
def folder(prepared: tuple[Path, Mapping[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folder, for one page."""
    copy = tmp_path / "world"
    shutil.copytree(prepared[0], copy)
    (copy / "examples").symlink_to(ROOT / "examples")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TOOLCRIB_SECRET_SHOP_URL", f"sqlite:///{copy / 'shop.db'}")
    monkeypatch.setenv("TOOLCRIB_MASTER_KEYS", MASTER_KEYS)
    monkeypatch.delenv("TOOLCRIB_STORE", raising=False)
    return copy


def run(line: str, ids: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> tuple[object, str]:
    """Exit status and output of a command."""
    subject = line.split(maxsplit=1)[0]
    meant = {"run": "run", "conversation": "conversation", "instance": "instance"}.get(subject, "run")
    stand_for = {"ID": ids[meant], "RUN": ids["run"], "OTHER": ids["other"]}
    words = [stand_for.get(word, word) for word in shlex.split(line)]
    printed, status = io.StringIO(), None
    monkeypatch.setattr(sys, "argv", ["toolcrib", *words])
    monkeypatch.setattr(sys, "stdin", io.StringIO("a-token\n"))
    with redirect_stdout(printed), redirect_stderr(printed):
        try:
            main()
        except SystemExit as ended:
            status = ended.code
    return status, printed.getvalue()


@pytest.mark.parametrize("path", COMMANDS)
def test_the_commands_of_a_page_succeed(
    path: str, prepared: tuple[Path, Mapping[str, str]], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path == "providers.md":
        shutil.copyfile(folder / "provider.yaml", folder / "crm.yaml")
    with chdir(folder):
        for line in COMMANDS[path]:
            for before in [PREPARED[line]] if line in PREPARED else []:
                run(before, prepared[1], monkeypatch)
            status, printed = run(line, prepared[1], monkeypatch)
            assert not status, f"toolcrib {line}\n{printed}"


def test_the_list_of_commands_that_are_not_run_is_short_and_each_of_it_occurs() -> None:
    everything = [line for text in pages.pages(ROOT).values() for line in lines_of(text)]
    left_out = [line for line in everything if is_left_out(line)]
    assert all(any(re.match(pattern, line) for line in everything) for pattern in NOT_RUN)
    assert len(NOT_RUN) <= 8
    assert len(left_out) < len(everything) / 2
