"""Follows a page as a reader would: writes its files, runs its commands, and compares what they print.

- A block with a title is a file, which is written into an empty folder.
- A block of `sh` has commands: `toolcrib …`, `python FILE` and `python -m pytest …` (in a process of its own).
  `RUN_ID` and `APPROVAL_ID` stand for the last id that was printed.
- A block of `text` after them is what they print: each of its lines is somewhere in the output, in this order. `…`
  stands for anything.
- A block of Python without a title is compiled and run by itself.
"""

import io
import re
import runpy
import shlex
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from toolcrib.interfaces.cli.app import main

_BLOCK: Final = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
_IDS: Final = {"RUN_ID": r"\brun_[0-9a-f]{32}\b", "APPROVAL_ID": r"\bapr_[0-9a-f]{32}\b"}


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    title: str
    text: str


def blocks(page: str) -> list[Block]:
    """The blocks of a page."""
    return [Block(*found) for found in _BLOCK.findall(page)]


class Reader:
    """Someone who follows a page in an empty folder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.monkeypatch = monkeypatch
        self.printed = ""
        self.place = 0
        """Where in the output of the last commands the next text is looked for."""
        self.ids: dict[str, str] = {}

    def follow(self, page: str) -> int:
        """Follow a page; returns how many commands ran."""
        count = 0
        for block in blocks(page):
            match block.language:
                case _ if block.title:
                    (self.folder / block.title).write_text(block.text, encoding="utf-8")
                case "sh":
                    self.printed, self.place = "", 0
                    for line in block.text.splitlines():
                        self.printed += self.run(line)
                        count += 1
                case "text":
                    self.compare(block.text)
                case "python":
                    exec(compile(block.text, "page", "exec"), {"__name__": "page"})
                case language:
                    pytest.fail(f"a block of {language!r} without a title is neither run nor compared")
        return count

    def run(self, line: str) -> str:
        """What a command prints; it must succeed."""
        for name, known in self.ids.items():
            line = line.replace(name, known)
        words = shlex.split(line)
        if words[:2] == ["python", "-m"]:
            command = [sys.executable, *words[1:], "-p", "no:cacheprovider"]
            done = subprocess.run(command, cwd=self.folder, check=False, capture_output=True, text=True)
            status, printed = done.returncode, done.stdout + done.stderr
        else:
            status, printed = self._run_here(words)
        assert not status, f"{line}: exit status {status}\n{printed}"
        for name, pattern in _IDS.items():
            if found := re.findall(pattern, printed):
                self.ids[name] = found[-1]
        return printed

    def _run_here(self, words: list[str]) -> tuple[object, str]:
        printed = io.StringIO()
        status: object = 0
        before = set(sys.modules)
        with self.monkeypatch.context() as patch, chdir(self.folder):
            patch.setattr(sys, "argv", words if words[0] == "toolcrib" else words[1:])
            patch.setattr(sys, "path", [str(self.folder), *sys.path])
            with redirect_stdout(printed), redirect_stderr(printed):
                try:
                    if words[0] == "toolcrib":
                        main()
                    else:
                        runpy.run_path(words[1], run_name="__main__")
                except SystemExit as ended:
                    status = ended.code
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(self.folder)):
                del sys.modules[name]
        return status, printed.getvalue()

    def compare(self, text: str) -> None:
        """Find each line of a text in what was printed, one after the other."""
        for line in text.splitlines():
            pattern = ".*".join(re.escape(part.strip()) for part in line.strip().split("…"))
            found = re.compile(pattern).search(self.printed, self.place)
            assert found, f"{line!r} was not printed by the commands above it, or in another order:\n{self.printed}"
            self.place = found.end()
