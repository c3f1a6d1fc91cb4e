"""`toolcrib tool import-mcp`: an MCP server as a provider, and what it offers as tools.

`toolcrib tool import-database`: an existing database as a provider, and its tables as tools.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.render.tables import import_document, print_import
from toolcrib.interfaces.cli.support.commands import prints
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, AcceptChanges, Store, with_crib

if TYPE_CHECKING:
    from toolcrib.core.providers import ImportedApi
    from toolcrib.crib import Crib

Reference = Annotated[
    str,
    typer.Argument(
        metavar="REFERENCE", help="Where the URL is kept, such as '${env:TOOLCRIB_SECRET_SHOP_URL}'; never the URL."
    ),
]
Name = Annotated[str, typer.Option("--name", metavar="N", help="Name of the provider.")]
Tables = Annotated[list[str] | None, typer.Option("--table", metavar="T", help="Only this table; may be repeated.")]
Schema = Annotated[
    str | None, typer.Option("--schema", metavar="S", help="The database's schema, if not its default one.")
]


@prints(print_import, data=import_document)
def import_database(
    reference: Reference,
    *,
    name: Name,
    tables: Tables = None,
    schema: Schema = None,
    accept: AcceptChanges = False,
    store: Store = DEFAULT_STORE,
) -> "ImportedApi":
    """Import the tables of a database as tools: search, get, create, update, delete, count."""

    async def bring(crib: "Crib") -> "ImportedApi":
        return await crib.imports.database(
            name=name, url=reference, tables=tables or None, schema=schema, accept=accept
        )

    return with_crib(store, bring, new=True)


Source = Annotated[
    str, typer.Argument(metavar="URL_OR_COMMAND", help="Where the server is; or the command, in quotes, that is it.")
]
Old = Annotated[bool, typer.Option("--sse", help="The server speaks the older transport, server-sent events.")]
Token = Annotated[
    str | None, typer.Option("--token", metavar="REF", help="Where its bearer token is kept, such as '${env:NAME}'.")
]
Variables = Annotated[
    list[str] | None, typer.Option("--env", metavar="NAME=REF", help="A variable of the command; may be repeated.")
]


@prints(print_import, data=import_document)
def import_mcp(
    source: Source,
    *,
    name: Name,
    sse: Old = False,
    token: Token = None,
    variables: Variables = None,
    accept: AcceptChanges = False,
    store: Store = DEFAULT_STORE,
) -> "ImportedApi":
    """Import the tools, resources and prompts of an MCP server; TOOLCRIB_MCP_COMMANDS must allow a command."""
    import shlex

    from toolcrib.contracts import BearerAuth, InvalidInput

    is_url = source.startswith(("http://", "https://"))
    try:
        command = [] if is_url else shlex.split(source)
    except ValueError as problem:
        msg = f"{source!r} is neither an http(s) address nor a command: {problem}"
        raise InvalidInput(msg) from problem
    environment = dict(_pair(given) for given in variables or ())

    async def bring(crib: "Crib") -> "ImportedApi":
        return await crib.imports.mcp(
            source if is_url else "",
            name=name,
            transport="sse" if sse else "streamable_http",
            command=command,
            environment=environment,
            auth=None if token is None else BearerAuth(token=token),
            accept=accept,
        )

    return with_crib(store, bring, new=True)


def _pair(given: str) -> tuple[str, str]:
    from toolcrib.contracts import InvalidInput

    name, equals, value = given.partition("=")
    if not (name and equals):
        msg = f"--env takes NAME=REF, such as TOKEN='${{env:MY_TOKEN}}', and not {name!r}"
        raise InvalidInput(msg)
    return name, value
