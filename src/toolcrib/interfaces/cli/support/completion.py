"""`toolcrib completion`: completion of commands, options and stored names in bash, zsh and fish."""

from importlib import import_module
from typing import Annotated, Any, Final, Literal

import typer

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
