"""`toolcrib schema`: the contracts as JSON Schema."""

import json
from typing import Annotated

import typer

from toolcrib.interfaces.cli.support.options import Folder

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
