"""A place: where one world is, as processes are told it that are to work in it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from tests.chaos.world.book import Book
from tests.servers.postgres import PostgresServer
from tests.servers.restate import RestateServer
from toolcrib.core.engines import SystemClock
from toolcrib.core.engines.restate import RestateOptions


class SteppedClock(SystemClock):
    """The machine's clock, which somebody sets forward and back for all processes at once.

    Args:
        file: Has the seconds by which it is wrong, if it is.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def step(self, seconds: float) -> None:
        """Set it, in one write."""
        new = self._file.with_suffix(".new")
        new.write_text(str(seconds))
        new.replace(self._file)

    def now(self) -> datetime:
        """What processes take for the time."""
        return super().now() + timedelta(seconds=float(self._file.read_text()) if self._file.exists() else 0.0)


@dataclass(frozen=True, slots=True)
class Place:
    """Folder, store and engine of a world."""

    folder: Path
    store: str
    """The URL."""
    restate: RestateOptions | None = None
    """Who calls the processes that drive runs; null if they look for runs themselves."""
    lease_s: float = 1.0
    """Seconds after which a dead process's runs are free."""

    @property
    def clock(self) -> "SteppedClock":
        """The time in it."""
        return SteppedClock(self.folder / "clock")

    @property
    def book(self) -> Book:
        """What is written outside of the system."""
        return Book(self.folder)


def on_sqlite(folder: Path, *, lease_s: float = 1.0) -> Place:
    """A world with a database in its folder."""
    return Place(folder, f"sqlite:///{folder}/crib.db", lease_s=lease_s)


def on_postgres(folder: Path, server: PostgresServer, *, lease_s: float = 1.0) -> Place:
    """A world with a new database."""
    return Place(folder, server.database(), lease_s=lease_s)


def on_restate(folder: Path, server: RestateServer, *, lease_s: float = 1.0) -> Place:
    """A world with a database in its folder, whose processes are called by Restate."""
    return Place(folder, f"sqlite:///{folder}/crib.db", server.options, lease_s)
