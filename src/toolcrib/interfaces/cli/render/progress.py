"""Progress of long work on stderr: a bar at a terminal, else a line now and then, and nothing with `--json`."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from toolcrib.interfaces.cli.render.console import JSON_ONLY, console

EVERY: Final = 100
"""Units of work between two lines where stderr is no terminal."""


@contextmanager
def progress(what: str, *, total: int | None = None, every: int = EVERY) -> Generator[Callable[[int], None]]:
    """Show that work is in progress, and how far it is.

    Args:
        what: What is being done: `Importing crm.yaml`.
        total: Units of work; null if that is not known.
        every: Units of work between two lines where stderr is no terminal.

    Yields:
        A function that takes how many units are done, so far.
    """
    if JSON_ONLY.get():
        yield lambda done: None
    elif sys.stderr.isatty():
        yield from _bar(what, total)
    else:
        yield _lines(what, total, every)


def _bar(what: str, total: int | None) -> Generator[Callable[[int], None]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    counted = (BarColumn(), MofNCompleteColumn()) if total is not None else ()
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), *counted, TimeElapsedColumn())
    with Progress(*columns, console=console(sys.stderr), transient=True) as shown:
        task = shown.add_task(what, total=total)
        yield lambda done: shown.update(task, completed=done)


def _lines(what: str, total: int | None, every: int) -> Callable[[int], None]:
    printed = 0

    def advance(done: int) -> None:
        nonlocal printed
        if done // every > printed:
            printed = done // every
            of = "" if total is None else f" of {total}"
            print(f"{what}: {done}{of}", file=sys.stderr, flush=True)

    return advance
