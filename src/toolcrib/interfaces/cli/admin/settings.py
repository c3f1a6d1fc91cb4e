"""`toolcrib settings`, `toolcrib doctor` (checks the machine) and `toolcrib schema` (JSON Schemas of contracts)."""

import asyncio
import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from toolcrib.interfaces.cli.render.tables import print_probes, print_settings
from toolcrib.interfaces.cli.support.commands import print_json, prints
from toolcrib.interfaces.cli.support.session import AsJson, Folder

if TYPE_CHECKING:
    from toolcrib.contracts import JsonObject
    from toolcrib.crib.settings import LoadedSettings
    from toolcrib.infrastructure.sandbox import SandboxProbe
    from toolcrib.interfaces.cli.render.documents import SettingsReport


def _print_settings(loaded: "LoadedSettings") -> None:
    print_settings(_settings_by_key(loaded), _secrets())


def _settings_document(loaded: "LoadedSettings") -> "SettingsReport":
    from toolcrib.interfaces.cli.render.documents import SettingsReport

    file = None if loaded.file is None else str(loaded.file)
    return SettingsReport.model_validate({"settings": _settings_by_key(loaded), "secrets": _secrets(), "file": file})


def _secrets() -> dict[str, bool]:
    from toolcrib.crib.settings import SECRETS

    return {name: name in os.environ for name in SECRETS}


def _settings_by_key(loaded: "LoadedSettings") -> "dict[str, JsonObject]":
    from toolcrib.crib.settings import value_of, variable_of

    return {
        key: {"value": value_of(loaded.settings, key), "origin": origin, "variable": variable_of(key)}
        for key, origin in loaded.origins.items()
    }


@prints(_print_settings, data=_settings_document)
def show_settings() -> "LoadedSettings":
    """Print every setting, its value and its origin.

    Of secrets, it prints only whether they are set.
    """
    from toolcrib.crib.settings import load_settings

    return load_settings()


@prints(print_probes)
def doctor() -> "Sequence[SandboxProbe]":
    """Run an escape test in each sandbox, and report which pass."""
    from toolcrib.crib.settings import load_settings
    from toolcrib.interfaces.cli.render.progress import progress

    sandbox = load_settings().settings.sandbox.open()

    async def probe() -> "Sequence[SandboxProbe]":
        try:
            with progress("Testing sandboxes"):
                return await sandbox.probe()
        finally:
            await sandbox.close()

    return asyncio.run(probe())


Name = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME",
        help="One contract only; cli for what commands print with --json; project for documents of projects.",
        show_default=False,
    ),
]
OUTPUTS: Final = "cli"
"""The name of the schema of what commands print."""
DOCUMENTS: Final = "project"
"""The name of the schema of the documents that `toolcrib apply` reads."""


def schema(name: Name = None, write: Folder = None, as_json: AsJson = False) -> None:
    """Print the contracts as JSON Schema 2020-12, or write them.

    With NAME, one of them; with `cli`, what commands print with --json; with `project`, the documents of projects.
    """
    from toolcrib.contracts import NotFound
    from toolcrib.contracts.schemas import contract_schemas, schema_files
    from toolcrib.crib.project import project_schema
    from toolcrib.interfaces.cli.render.documents import WrittenFiles
    from toolcrib.interfaces.cli.render.outputs import output_schema

    schemas = contract_schemas()
    others = {OUTPUTS: output_schema, DOCUMENTS: project_schema}
    if name is not None and name not in {*schemas, *others}:
        msg = f"there is no contract {name!r}; the contracts are: {', '.join((*schemas, *others))}"
        raise NotFound(msg)
    if write is None:
        print_json(schemas if name is None else others[name]() if name in others else schemas[name])
        return
    write.mkdir(parents=True, exist_ok=True)
    more = {each: json.dumps(make(), indent=2, ensure_ascii=False) + "\n" for each, make in others.items()}
    files = {**schema_files(), **{f"{each}.json": text for each, text in more.items()}}
    chosen = {file: text for file, text in files.items() if name in {None, file.removesuffix(".json")}}
    for file, text in chosen.items():
        (write / file).write_text(text, encoding="utf-8")
    if as_json:
        print_json(WrittenFiles(written=tuple(chosen)))
    else:
        print(f"wrote {len(chosen)} schemas to {write}")
