"""`toolcrib tool code`: a tool of a program's text."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.support.inputs import text_of, validated
from toolcrib.interfaces.cli.support.options import DEFAULT_STORE, Store
from toolcrib.interfaces.cli.support.session_part import with_crib

if TYPE_CHECKING:
    from toolcrib.contracts import JsonSchema, ToolRevision
    from toolcrib.crib import Crib

File = Annotated[Path, typer.Argument(metavar="FILE", help="Python (.py) or JavaScript (.js) that defines main.")]
Name = Annotated[str, typer.Option("--name", metavar="N", help="Name of the tool.")]
Tools = Annotated[
    list[str] | None, typer.Option("--tool", metavar="REF", help="A tool that the code may call; any number of times.")
]
Schema = Annotated[
    Path | None, typer.Option("--schema", metavar="FILE", help="JSON Schema of the arguments; any object without it.")
]
Description = Annotated[str, typer.Option("--description", metavar="TEXT", help="What a model reads.")]
Interpreter = Annotated[str, typer.Option(help="What runs Python: any, monty, cpython or restricted.")]
Isolation = Annotated[str, typer.Option(help="The least that is wanted: language, namespace, kernel or vm.")]
SideEffects = Annotated[
    str | None, typer.Option(help="none, reads or writes; writes if it calls tools.", show_default=False)
]


def add_code(
    file: File,
    *,
    name: Name,
    tools: Tools = None,
    schema: Schema = None,
    description: Description = "",
    interpreter: Interpreter = "any",
    isolation: Isolation = "language",
    side_effects: SideEffects = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Save code as a tool. It is checked and not run."""
    from toolcrib.contracts import ToolDefinition

    content = {
        "name": name,
        "description": description,
        "side_effects": side_effects or ("writes" if tools else "none"),
        "implementation": {
            "kind": "code",
            "language": "javascript" if file.suffix in (".js", ".mjs") else "python",
            "interpreter": interpreter,
            "isolation": isolation,
            "source": text_of(file),
            "tools": tools or [],
        },
    }
    if schema is not None:
        content["input_schema"] = _schema(schema)
    definition = validated(ToolDefinition, content, f"tool {name!r}")

    async def save(crib: "Crib") -> "ToolRevision":
        return await crib.save(definition)

    saved = with_crib(store, save, new=True)
    print(f"saved {saved.ref}, revision {saved.revision}")


def _schema(file: Path) -> "JsonSchema":
    from toolcrib.contracts import InvalidInput

    try:
        return json.loads(text_of(file))
    except ValueError as problem:
        raise InvalidInput(f"{file} is no JSON: {problem}") from None
