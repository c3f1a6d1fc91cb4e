"""`toolcrib settings`, `toolcrib doctor` (checks the machine) and `toolcrib schema` (JSON Schemas of contracts)."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolcrib.interfaces.cli.render.tables import print_probes, print_settings
from toolcrib.interfaces.cli.support.commands import print_json, prints
from toolcrib.interfaces.cli.support.session import Folder

if TYPE_CHECKING:
    from toolcrib.contracts import JsonObject
    from toolcrib.crib.settings import LoadedSettings
    from toolcrib.infrastructure.sandbox import SandboxProbe


def _print_settings(loaded: "LoadedSettings") -> None:
    print_settings(_settings_by_key(loaded), _secrets())


def _settings_document(loaded: "LoadedSettings") -> "dict[str, Any]":
    file = None if loaded.file is None else str(loaded.file)
    return {"settings": _settings_by_key(loaded), "secrets": _secrets(), "file": file}


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
    """Print every setting, its value, and where the value comes from; of secrets only whether they are set."""
    from toolcrib.crib.settings import load_settings

    return load_settings()


@prints(print_probes, data=lambda probes: [asdict(found) for found in probes])
def doctor() -> "Sequence[SandboxProbe]":
    """Run an escape test in each sandbox, and report which pass."""
    from toolcrib.crib.settings import load_settings

    sandbox = load_settings().settings.sandbox.open()

    async def probe() -> "Sequence[SandboxProbe]":
        try:
            return await sandbox.probe()
        finally:
            await sandbox.close()

    return asyncio.run(probe())


Name = Annotated[str | None, typer.Argument(metavar="NAME", help="One contract only.", show_default=False)]


def schema(name: Name = None, write: Folder = None) -> None:
    """Print the contracts as JSON Schema 2020-12, all of them or one, or write them into a folder."""
    from toolcrib.contracts import NotFound
    from toolcrib.contracts.schemas import contract_schemas, schema_files

    schemas = contract_schemas()
    if name is not None and name not in schemas:
        msg = f"there is no contract {name!r}; the contracts are: {', '.join(schemas)}"
        raise NotFound(msg)
    if write is None:
        print_json(schemas if name is None else schemas[name])
        return
    write.mkdir(parents=True, exist_ok=True)
    chosen = {file: text for file, text in schema_files().items() if name in {None, file.removesuffix(".json")}}
    for file, text in chosen.items():
        (write / file).write_text(text, encoding="utf-8")
    print(f"wrote {len(chosen)} schemas to {write}")
