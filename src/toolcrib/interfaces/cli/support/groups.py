"""Groups of commands: help with an example for each command, suggestions for mistyped ones, errors as text or JSON.

A command is made with `command(app, "list", example="toolcrib run list")`: none is without an example.
"""

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, Final, TypeVar, cast

import typer
from typer.core import TyperCommand, TyperGroup

from toolcrib.interfaces.cli.render.console import JSON_ONLY
from toolcrib.interfaces.cli.support import failures

SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    "cat": ("show",),
    "create": ("add", "set", "import"),
    "delete": ("remove",),
    "describe": ("show",),
    "destroy": ("remove",),
    "discard": ("remove",),
    "drop": ("remove",),
    "dry-run": ("run",),
    "edit": ("set", "add"),
    "get": ("show", "list"),
    "info": ("show",),
    "inspect": ("show",),
    "install": ("add",),
    "ls": ("list",),
    "new": ("add", "set"),
    "path": ("show",),
    "ps": ("list",),
    "publish": ("add",),
    "put": ("set", "add"),
    "register": ("add",),
    "revoke": ("remove",),
    "rm": ("remove",),
    "roll-back": ("revert",),
    "rollback": ("revert",),
    "save": ("add", "set"),
    "start": ("run", "call"),
    "status": ("show",),
    "uninstall": ("remove",),
    "unset": ("remove",),
    "update": ("set", "add"),
    "upload": ("add",),
    "view": ("show",),
}
"""What other programs call an act, and what it is called here. Only the commands of the group are suggested."""
MOVED: Final[dict[str, str]] = {
    "run approve": "approval approve",
    "run attachment": "attachment show",
    "run attachments": "attachment list",
    "run reject": "approval reject",
    "tool code": "tool add-code",
    "workflow add": "workflow publish",
    "workflow create": "workflow publish",
    "workflow draft": "draft add",
    "workflow drafts": "draft list",
    "workflow discard": "draft remove",
    "workflow undo": "draft undo",
}
"""Commands that one may expect in one group and that are in another."""

_NEAR: Final = 0.6
_WHOLE: Final = 1000
_WIDTH: Final = 80
"""Columns of a help page, as the width of a terminal that is wider."""

FunctionT = TypeVar("FunctionT", bound=Callable[..., object])


class Group(typer.Typer):
    """A group of commands, before its commands are added.

    Args:
        summary: Its line in the help of the group above.
    """

    def __init__(self, summary: str) -> None:
        super().__init__(cls=CommandGroup, help=summary, no_args_is_help=True, rich_markup_mode=None)


def command(app: typer.Typer, name: str, *, example: str, text: str | None = None) -> Callable[[FunctionT], FunctionT]:
    """Add a function to a group as a command.

    Args:
        app: The group.
        name: The command's name in the group.
        example: A line that runs it, with what it needs: `toolcrib run list --limit 5`.
        text: The help, if it is not the function's docstring.
    """
    return app.command(name, cls=LeafCommand, epilog=example, help=text)


class LeafCommand(TyperCommand):
    """A command that does something. Its errors are one line, or one JSON object with `--json`."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The example, as it is typed."""
        if self.epilog:
            formatter.write(f"\nExample:\n  {self.epilog}\n")

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Read the arguments."""
        as_json = "--json" in args
        try:
            return super().make_context(info_name, args, parent, **extra)
        except failures.USAGE_ERROR as problem:
            if not as_json:
                raise
            above = path_of(parent) if parent is not None else ()
            raise failures.report(problem, (*above, str(info_name)), as_json=True) from None

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        as_json = bool(ctx.params.get("as_json"))
        token = JSON_ONLY.set(as_json)
        try:
            return super().invoke(ctx)
        except Exception as problem:
            if not failures.is_refusal(problem, as_json=as_json):
                raise
            siblings = ctx.parent.command.list_commands(ctx.parent) if ctx.parent is not None else ()
            raise failures.report(problem, path_of(ctx), as_json=as_json, siblings=siblings) from None
        finally:
            JSON_ONLY.reset(token)


class CommandGroup(TyperGroup):
    """A group of commands."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The commands, each with its first sentence on one line."""
        found: list[tuple[str, Any]] = [(name, self.get_command(ctx, name)) for name in sorted(self.list_commands(ctx))]
        rows = [(name, command.get_short_help_str(_WHOLE)) for name, command in found if not command.hidden]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that was typed; the error for an unknown one suggests others."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            problem = f"no command '{args[0]}'; {self._advice(ctx, args[0])}"
            if "--json" in args:
                raise failures.report(failures.usage_error(problem), (*path_of(ctx), args[0]), as_json=True)
            ctx.fail(problem)
        return super().resolve_command(ctx, args)

    def _advice(self, ctx: Any, typed: str) -> str:
        above = path_of(ctx)
        moved = MOVED.get(" ".join((*above, typed)))
        if moved is not None:
            return f"did you mean 'toolcrib {moved}'?"
        near = suggest(typed, self.list_commands(ctx))
        if near:
            return f"did you mean {' or '.join(repr(each) for each in near)}?"
        return f"'{' '.join(('toolcrib', *above))} --help' lists the commands"


def suggest(typed: str, commands: Sequence[str]) -> list[str]:
    """The commands of a group that may be meant, at most three, the likeliest first.

    Args:
        typed: What was typed; no command of the group.
        commands: The names of the group's commands.
    """
    meant = [each for each in SYNONYMS.get(typed, ()) if each in commands]
    return meant or get_close_matches(typed, commands, n=3, cutoff=_NEAR)


def path_of(ctx: Any) -> tuple[str, ...]:
    """The names of a command and the groups above it, without the program's own."""
    names: list[str] = []
    while ctx.parent is not None:
        names.append(cast("str", ctx.info_name))
        ctx = ctx.parent
    return tuple(reversed(names))


HELP: Final = {"help_option_names": ["-h", "--help"], "max_content_width": _WIDTH}
"""The settings of all help pages."""
