"""`toolcrib settings`: what is set, and where.

`toolcrib doctor`: what this machine can do, found out by trying it.

`toolcrib schema`: the contracts as JSON Schema.
"""

import asyncio
import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.support.session import AsJson, Folder

if TYPE_CHECKING:
    from toolcrib.contracts import JsonObject
    from toolcrib.crib.settings import LoadedSettings


def show_settings(as_json: AsJson = False) -> None:
    """Print every setting, its value, and where the value comes from; of secrets only whether they are set."""
    from toolcrib.crib.settings import SECRETS, load_settings

    loaded = load_settings()
    secrets = {name: name in os.environ for name in SECRETS}
    if as_json:
        file = None if loaded.file is None else str(loaded.file)
        document = {"settings": _settings_by_key(loaded), "secrets": secrets, "file": file}
        print(json.dumps(document, indent=2, ensure_ascii=False))
        return
    from toolcrib.interfaces.cli.render.tables import print_settings

    print_settings(_settings_by_key(loaded), secrets)


def _settings_by_key(loaded: "LoadedSettings") -> "dict[str, JsonObject]":
    from toolcrib.crib.settings import value_of, variable_of

    return {
        key: {"value": value_of(loaded.settings, key), "origin": origin, "variable": variable_of(key)}
        for key, origin in loaded.origins.items()
    }


if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcrib.infrastructure.sandbox import SandboxProbe


def doctor(as_json: AsJson = False) -> None:
    """Run an escape test in each sandbox, and report which pass."""
    from toolcrib.crib.settings import load_settings

    sandbox = load_settings().settings.sandbox.open()

    async def probe() -> "Sequence[SandboxProbe]":
        try:
            return await sandbox.probe()
        finally:
            await sandbox.close()

    probes = asyncio.run(probe())
    if as_json:
        print(json.dumps([asdict(found) for found in probes], indent=2))
        return
    from toolcrib.interfaces.cli.render.tables import print_probes

    print_probes(probes)


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
        print(json.dumps(schemas if name is None else schemas[name], indent=2, ensure_ascii=False))
        return
    write.mkdir(parents=True, exist_ok=True)
    chosen = {file: text for file, text in schema_files().items() if name in {None, file.removesuffix(".json")}}
    for file, text in chosen.items():
        (write / file).write_text(text, encoding="utf-8")
    print(f"wrote {len(chosen)} schemas to {write}")
