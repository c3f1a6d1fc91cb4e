"""`toolcrib fragment`: pieces of prompt that many agents share. The text comes from a file or from stdin."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from toolcrib.interfaces.cli.support.inputs import text_of, validated
from toolcrib.interfaces.cli.support.options import DEFAULT_STORE, AsJson, Store
from toolcrib.interfaces.cli.support.session_part import with_crib

app = typer.Typer(help="Keep pieces of prompt that many agents share.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="As agents name it.", show_default=False)]
File = Annotated[Path | None, typer.Argument(metavar="FILE", help="The text; stdin if it is not given.")]
Description = Annotated[str, typer.Option("--description", help="What it is good for.")]


@app.command("set")
def set_fragment(name: Name, file: File = None, description: Description = "", store: Store = DEFAULT_STORE) -> None:
    """Set a fragment; every run that begins from now on has it."""
    from toolcrib.contracts import PromptFragment

    text = text_of(file) if file is not None else sys.stdin.read()
    content = {"name": name, "description": description, "text": text.rstrip("\n")}
    fragment = validated(PromptFragment, content, f"fragment {name!r}")
    with_crib(store, lambda crib: crib.fragments.save(fragment), new=True)
    print(f"fragment {name} has {len(fragment.text)} characters")


@app.command("list")
def list_fragments(store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the fragments."""
    found = with_crib(store, lambda crib: crib.fragments.list())
    if as_json:
        print(json.dumps([fragment.model_dump(mode="json") for fragment in found], indent=2))
        return
    from toolcrib.interfaces.cli.render.tables import print_rows

    rows = [(each.name, str(len(each.text)), each.description) for each in found]
    print_rows(("Name", "Characters", "Description"), rows)


@app.command("show")
def show(name: Name, store: Store = DEFAULT_STORE) -> None:
    """Print a fragment's text."""
    print(with_crib(store, lambda crib: crib.fragments.get(name)).text)


@app.command("remove")
def remove(name: Name, store: Store = DEFAULT_STORE) -> None:
    """Remove a fragment."""
    with_crib(store, lambda crib: crib.fragments.remove(name))
    print(f"fragment {name} is removed")
