"""The command line in this process."""

from pathlib import Path

from typer.testing import CliRunner, Result

from toolcrib.interfaces.cli.app import app


def toolcrib(*arguments: str | Path, store: str | None = None, **environment: str) -> Result:
    """Run a command; its output is in `stdout` and `stderr`."""
    given = {"TOOLCRIB_STORE": store, **environment}
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env=given, catch_exceptions=False)
