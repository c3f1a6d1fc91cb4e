"""`toolcrib tool`: what is in the crib, and bringing more of it in."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.support.options import DEFAULT_STORE, AcceptChanges, AsJson, Store
from toolcrib.interfaces.cli.support.session_part import with_crib

if TYPE_CHECKING:
    from toolcrib.contracts import ToolRevision
    from toolcrib.core.providers import ImportedApi
    from toolcrib.crib import Crib

app = typer.Typer(help="Look at tools and import them.", no_args_is_help=True)

Source = Annotated[
    str,
    typer.Argument(
        metavar="FILE_OR_URL", help="OpenAPI document, JSON or YAML; or a gRPC server, as grpc://host:port."
    ),
]
Name = Annotated[str, typer.Option("--name", metavar="N", help="Name of the provider.")]
Address = Annotated[
    str | None, typer.Option("--base-url", metavar="URL", help="Address of the API, instead of the document's.")
]
Descriptors = Annotated[
    Path | None,
    typer.Option("--descriptors", metavar="FILE", help="Descriptor set of a gRPC server, instead of asking it."),
]


@app.command("list")
def list_tools(store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the tools, each in the version that a call gets."""

    async def read(crib: "Crib") -> "list[ToolRevision]":
        return list(crib.registry.current(crib.principal.realm))

    _show(with_crib(store, read), as_json=as_json)


@app.command("search")
def search_tools(
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="What the tool should do.")],
    limit: Annotated[int, typer.Option(help="At most so many.", min=1, max=200)] = 10,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """List the tools that do what the words say, best first."""

    async def look(crib: "Crib") -> "list[ToolRevision]":
        return [tool for tool, _ in await crib.listing.search(" ".join(words), limit=limit)]

    _show(with_crib(store, look), as_json=as_json)


@app.command("add")
def add_builtin_tools(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Of tools that come with Toolcrib; none lists them.")
    ] = None,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Add tools that come with Toolcrib: http_get, http_request, wget."""
    from toolcrib.builtin_tools import builtin_tool, builtin_tools

    definitions = [builtin_tool(name) for name in names or ()]
    if not definitions:
        for offered in builtin_tools():
            print(f"{offered.name}: {offered.description}")
        return

    async def save(crib: "Crib") -> "list[ToolRevision]":
        return [await crib.save(definition) for definition in definitions]

    _show(with_crib(store, save, new=True), as_json=as_json)


@app.command("import")
def import_tools(
    source: Source,
    *,
    name: Name,
    base_url: Address = None,
    descriptors: Descriptors = None,
    accept: AcceptChanges = False,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Make a tool of every operation of an OpenAPI document or gRPC server, and tell what was lost."""
    is_grpc = source.startswith(("grpc://", "grpcs://"))
    document = source if is_grpc or source.startswith(("http://", "https://")) else _read(Path(source))
    described = None if descriptors is None else _read(descriptors)

    async def bring(crib: "Crib") -> "ImportedApi":
        if is_grpc:
            return await crib.imports.grpc(source, name=name, descriptors=described, accept=accept)
        return await crib.imports.openapi(document, name=name, base_url=base_url, accept=accept)

    imported = with_crib(store, bring, new=True)
    from toolcrib.interfaces.cli.render.losses import print_import

    print_import(imported, as_json=as_json)


def _read(file: Path) -> bytes:
    from toolcrib.contracts import InvalidInput

    try:
        return file.read_bytes()
    except OSError as problem:
        msg = f"{file} cannot be read: {problem.strerror}"
        raise InvalidInput(msg) from problem


def _show(found: "list[ToolRevision]", *, as_json: bool) -> None:
    if as_json:
        print(json.dumps([tool.model_dump(mode="json") for tool in found], indent=2, ensure_ascii=False))
        return
    from toolcrib.interfaces.cli.render.tables import print_tools

    print_tools(found)
