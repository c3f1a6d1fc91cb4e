"""`toolcrib completion`: completion of commands, options and stored names in bash, zsh and fish."""

from collections.abc import Awaitable, Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

if TYPE_CHECKING:
    from toolcrib.crib import Crib

VARIABLE: Final = "_TOOLCRIB_COMPLETE"
"""The variable in which a shell asks for completions."""

Shell = Annotated[Literal["bash", "zsh", "fish"], typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]
Install = Annotated[bool, typer.Option("--install", help="Install it for you, instead of printing it.")]


def prepare() -> None:
    """Make the program answer the scripts of all shells."""
    _typer().completion_init()


def completion(shell: Shell, install: Install = False) -> None:
    """Print a script that completes commands, options and names in a shell."""
    if not install:
        print(_typer().get_completion_script(prog_name="toolcrib", complete_var=VARIABLE, shell=shell))
        return
    _, path = _typer().install(shell=shell, prog_name="toolcrib", complete_var=VARIABLE)
    print(f"installed in {path}; open a new shell to use it")


def _typer() -> Any:
    return import_module("typer.completion")  # which exports none of its functions


def names(read: "Callable[[Crib], Awaitable[Iterable[str]]]") -> Callable[[str], list[str]]:
    """Complete an argument with names that are in the store of the settings.

    Args:
        read: Reads them. A store that cannot be read completes nothing.
    """

    def complete(incomplete: str) -> list[str]:
        from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, with_crib

        try:
            return [name for name in with_crib(DEFAULT_STORE, read) if name.startswith(incomplete)]
        except Exception:  # noqa: BLE001 - a message would break the line that is being typed
            return []

    return complete
