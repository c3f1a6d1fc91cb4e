"""Which CPython runs in jails: this process's own, unless those who run in jails may not read it."""

import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PYTHON: Final = "/python/bin/python3"
"""Where it is inside."""
_OLDEST: Final = 11
"""Minor version."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An installed CPython."""

    prefix: Path
    minor: int
    """Of its version 3."""

    @property
    def program(self) -> Path:
        """Its executable."""
        return self.prefix / "bin" / f"python3.{self.minor}"

    @property
    def is_public(self) -> bool:
        """Whether everybody on the machine may run it."""
        program = self.program.resolve()
        return all(folder.stat().st_mode & stat.S_IXOTH for folder in (program, *program.parents))

    def binds(self) -> Iterator[tuple[Path, str]]:
        """What of it is seen inside, and where: the program, its library, its standard library."""
        yield self.program.resolve(), PYTHON
        for folder in ("lib", "lib64"):
            library = self.prefix / folder / f"python3.{self.minor}"
            if library.is_dir():
                yield library, f"/python/{folder}/python3.{self.minor}"
        if self.prefix != Path("/usr"):
            for library in (self.prefix / "lib").glob("libpython3*.so*"):
                yield library.resolve(), f"/python/lib/{library.name}"


def find_interpreter(*, for_others: bool) -> Interpreter:
    """The interpreter for jails.

    Args:
        for_others: Whether it should be one that everybody may run: jails are started under another user.
    """
    own = Interpreter(Path(sys.base_prefix), sys.version_info.minor)
    if not for_others or own.is_public:
        return own
    return next((found for found in _of_system() if found.is_public), own)


def _of_system() -> Iterator[Interpreter]:
    for prefix in (Path("/usr/local"), Path("/usr")):
        for minor in range(_OLDEST, sys.version_info.minor + 10):
            found = Interpreter(prefix, minor)
            if os.access(found.program, os.X_OK):
                yield found
