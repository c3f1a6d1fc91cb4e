"""The tree of the command line, for the reference and for tests that compare pages with it."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup

from toolcrib.interfaces.cli.app import app


class Command(NamedTuple):
    """One command: `toolcrib run trace` has the words `run` and `trace`."""

    words: tuple[str, ...]
    command: Any
    """Click's command; a group if others are below it."""

    @property
    def is_group(self) -> bool:
        """Whether others are below it."""
        return isinstance(self.command, TyperGroup)

    @property
    def options(self) -> frozenset[str]:
        """Its options as they are written: `--json`."""
        names = [name for parameter in self.command.params for name in (*parameter.opts, *parameter.secondary_opts)]
        return frozenset(name for name in names if name.startswith("-"))


def tree() -> Iterator[Command]:
    """Every group and command, each group before what is below it."""
    yield from _below(Command((), typer.main.get_command(app)))


def _below(one: Command) -> Iterator[Command]:
    yield one
    if one.is_group:
        context = typer.Context(one.command, info_name=one.words[-1] if one.words else "toolcrib")
        for name in one.command.list_commands(context):
            yield from _below(Command((*one.words, name), one.command.get_command(context, name)))


def find(words: list[str]) -> Command | None:
    """The command that a line begins with; null if there is none. Words after it are its arguments."""
    known = {one.words: one for one in tree()}
    for length in range(len(words), 0, -1):
        if found := known.get(tuple(words[:length])):
            return found
    return None
