"""`toolcrib tool import-database`: an existing database as a provider, and its tables as tools."""

from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.support.options import DEFAULT_STORE, AcceptChanges, AsJson, Store
from toolcrib.interfaces.cli.support.session_part import with_crib

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


def import_database(
    reference: Reference,
    *,
    name: Name,
    tables: Tables = None,
    schema: Schema = None,
    accept: AcceptChanges = False,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Make tools of the tables of a database: search, get, create, update, delete, count."""

    async def bring(crib: "Crib") -> "ImportedApi":
        return await crib.imports.database(
            name=name, url=reference, tables=tables or None, schema=schema, accept=accept
        )

    imported = with_crib(store, bring, new=True)
    from toolcrib.interfaces.cli.render.losses import print_import

    print_import(imported, as_json=as_json)
