"""Groups of commands: help with a whole sentence for each command, and suggestions for mistyped ones."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, Final

from typer.core import TyperGroup

SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    "cat": ("show",),
    "create": ("add", "set", "import"),
    "delete": ("remove",),
    "describe": ("show",),
    "destroy": ("remove",),
    "disconnect": ("remove",),
    "discard": ("remove",),
    "edit": ("set", "add"),
    "get": ("show",),
    "info": ("show",),
    "inspect": ("show",),
    "install": ("add",),
    "ls": ("list",),
    "new": ("add", "set"),
    "ps": ("list",),
    "publish": ("add",),
    "put": ("set", "add"),
    "register": ("add",),
    "revoke": ("remove",),
    "rm": ("remove",),
    "save": ("add", "set"),
    "start": ("run", "call"),
    "status": ("show",),
    "uninstall": ("remove",),
    "unset": ("remove",),
    "update": ("set", "add"),
    "view": ("show",),
}
"""What other programs call an act, and what it may be called here. Only the commands of the group are suggested."""

_NEAR: Final = 0.6
_WHOLE: Final = 1000


class CommandGroup(TyperGroup):
    """A group of commands."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The commands with the whole first sentence of each."""
        found: list[tuple[str, Any]] = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, command.get_short_help_str(_WHOLE)) for name, command in found if not command.hidden]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that was typed; the error for an unknown one suggests others."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            typed = " ".join(("toolcrib", *_path(ctx)))
            near = suggest(args[0], self.list_commands(ctx))
            hint = " or ".join(f"'{typed} {each}'" for each in near)
            rest = f"did you mean {hint}?" if near else f"'{typed} --help' lists the commands"
            ctx.fail(f"there is no command '{typed} {args[0]}'; {rest}")
        return super().resolve_command(ctx, args)


def suggest(typed: str, commands: Sequence[str]) -> list[str]:
    """The commands of a group that may be meant, at most three, the likeliest first.

    Args:
        typed: What was typed; no command of the group.
        commands: The names of the group's commands.
    """
    meant = [each for each in SYNONYMS.get(typed, ()) if each in commands]
    return meant or get_close_matches(typed, commands, n=3, cutoff=_NEAR)


def _path(ctx: Any) -> tuple[str, ...]:
    """The names of the groups above, without the program's own."""
    names: list[str] = []
    while ctx.parent is not None:
        names.append(ctx.info_name)
        ctx = ctx.parent
    return tuple(reversed(names))
