"""`toolcrib completion`: completion of commands, options and stored names in bash, zsh and fish."""

from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from toolcrib.interfaces.cli.support.commands import prints

if TYPE_CHECKING:
    from toolcrib.interfaces.cli.render.documents import Script

VARIABLE: Final = "_TOOLCRIB_COMPLETE"
"""The variable in which a shell asks for completions."""

Shell = Annotated[Literal["bash", "zsh", "fish"], typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]
Install = Annotated[bool, typer.Option("--install", help="Install it for you, instead of printing it.")]


def prepare() -> None:
    """Make the program answer the scripts of all shells."""
    _typer().completion_init()


def _print_script(found: "Script") -> None:
    if found.installed is None:
        print(found.script)
    else:
        print(f"installed in {found.installed}; open a new shell to use it")


@prints(_print_script)
def completion(shell: Shell, install: Install = False) -> "Script":
    """Print or install a completion script for a shell.

    It completes commands, options, names and ids.
    """
    from toolcrib.interfaces.cli.render.documents import Script

    if not install:
        script = _typer().get_completion_script(prog_name="toolcrib", complete_var=VARIABLE, shell=shell)
        return Script(shell=shell, script=script)
    _, path = _typer().install(shell=shell, prog_name="toolcrib", complete_var=VARIABLE)
    return Script(shell=shell, installed=str(path))


def _typer() -> Any:
    return import_module("typer.completion")  # which exports none of its functions
