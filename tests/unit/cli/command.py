"""The command line in this process."""

from pathlib import Path
from typing import Any

import jsonschema_rs
from typer.testing import CliRunner, Result

from toolcrib.interfaces.cli.app import app
from toolcrib.interfaces.cli.render.outputs import output_schema


def toolcrib(*arguments: str | Path, store: str | None = None, **environment: str) -> Result:
    """Run a command; its output is in `stdout` and `stderr`."""
    given = {"TOOLCRIB_STORE": store, **environment}
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env=given, catch_exceptions=False)


def invalid(name: str, document: Any) -> list[str]:
    """What is wrong with the JSON output of a command."""
    schema = output_schema()
    validator = jsonschema_rs.validator_for({**schema["properties"][name], "$defs": schema["$defs"]})
    return [f"{error.instance_path}: {error.message}"[:300] for error in validator.iter_errors(document)]
