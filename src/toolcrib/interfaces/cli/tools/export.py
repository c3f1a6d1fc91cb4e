"""`toolcrib export`: tools as other systems describe them."""

import json
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from toolcrib.interfaces.cli.support.options import DEFAULT_STORE, Store
from toolcrib.interfaces.cli.support.session_part import with_crib

if TYPE_CHECKING:
    from toolcrib.contracts import JsonObject
    from toolcrib.crib import Crib

Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]…", help="Tools; all if none is named.")]
Form = Annotated[
    Literal["universal", "openai", "anthropic", "langchain", "mcp"], typer.Option("--as", help="For which system.")
]


def export(names: Names = None, form: Form = "universal", store: Store = DEFAULT_STORE) -> None:
    """Print tools in the shape of another system, as JSON: an object for one name, else a list."""

    async def read(crib: "Crib") -> "list[JsonObject]":
        return await crib.export(*(names or ()), form=form)

    found = with_crib(store, read)
    shown = found[0] if len(names or ()) == 1 else found
    print(json.dumps(shown, indent=2, ensure_ascii=False))
