"""The book: what tools did and what was done to processes, written outside of the system under test.

A line is one `write` to a file opened for appending, so that it stands there whatever happens to its writer afterwards,
and lines of all processes stand in the order in which they were written. Times are nanoseconds of the machine's clock.
"""

import fcntl
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

Mark: TypeAlias = Literal["begun", "effect", "ended", "frozen", "thawed"]
"""What a tool came to, in this order; or what befell the process of that id."""


class Line(NamedTuple):
    """One thing that happened."""

    at: int
    pid: int
    mark: Mark
    tool: str = "-"
    key: str = "-"
    """The idempotency key of the call: run and position."""


class Book:
    """The file.

    Args:
        folder: Where it lies.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "book"
        self._keys = folder / "keys"

    def write(self, mark: Mark, tool: str = "-", key: str = "-", *, pid: int | None = None) -> None:
        """Add a line."""
        line = " ".join(map(str, Line(time.time_ns(), pid or os.getpid(), mark, tool, key)))
        descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(descriptor, f"{line}\n".encode())
        finally:
            os.close(descriptor)

    def write_once(self, tool: str, key: str) -> None:
        """What an outside system does with a request that carries a key: it takes effect the first time.

        The line itself is the memory of the key, because a process may be killed between any two writes.
        """
        self._keys.mkdir(exist_ok=True)
        with (self._keys / key.replace("/", "_")).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if f" effect {tool} {key}\n".encode() not in self._file.read_bytes():
                self.write("effect", tool, key)

    def has(self, mark: Mark, tool: str, key: str) -> bool:
        """Whether there is such a line."""
        return any((line.mark, line.tool, line.key) == (mark, tool, key) for line in self.lines())

    def lines(self) -> Sequence[Line]:
        """All of it, in order."""
        return [read_line(text) for text in self._file.read_text().splitlines()] if self._file.exists() else []


def read_line(text: str) -> Line:
    """A line of the file."""
    at, pid, mark, tool, key = text.split(" ")
    return Line(int(at), int(pid), _MARKS[mark], tool, key)


_MARKS: dict[str, Mark] = {
    "begun": "begun",
    "effect": "effect",
    "ended": "ended",
    "frozen": "frozen",
    "thawed": "thawed",
}
