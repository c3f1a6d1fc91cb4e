"""Import of GraphQL APIs: from the server by introspection, or from a schema in SDL or introspection JSON."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field

from toolcrib.contracts import InvalidInput, InvalidSettings, NoAuth, ProviderAuth, ProviderDefinition
from toolcrib.contracts.base.errors import missing_extra
from toolcrib.core.kinds import ImportContext, Importer, ImportSource, Option
from toolcrib.kinds.graphql.shape import GraphqlImplementation

if TYPE_CHECKING:
    from toolcrib.core.providers import ImportedApi


class GraphqlSource(ImportSource):
    """A GraphQL API. Each field of its query and mutation types becomes a tool."""

    url: Annotated[str, Option(metavar="URL", help="The address that takes operations.")]
    """The address that takes operations: `https://api.example/graphql`."""
    schema_text: Annotated[
        str | None, Option("--schema", "FILE", "Its schema, in SDL or introspection JSON, if the server does not tell.")
    ] = None
    """SDL text or the JSON of an introspection query, in place of asking the server."""
    auth: Annotated[
        ProviderAuth | None, Option("--token", "REF", "Where its bearer token is kept, such as '${env:NAME}'.")
    ] = None
    """Authentication, also for introspection; that of the provider, if there is one already at the same URL."""
    depth: Annotated[int, Option("--depth", "N", "How deep objects are selected inside each other.")] = Field(
        default=3, ge=1, le=10
    )
    """How deep objects are selected inside each other."""
    cost: Annotated[
        int, Option("--cost", "N", "How many fields an operation selects; inside a list they count more.")
    ] = Field(default=200, ge=1, le=5000)
    """How many fields an operation selects at most; a field inside a list counts three times."""

    @property
    def is_repeatable(self) -> bool:
        """Whether the server tells its schema."""
        return self.schema_text is None

    @property
    def references(self) -> tuple[str, ...]:
        """Those of its authentication."""
        from toolcrib.core.registry import references_of

        return () if self.auth is None else references_of(self.auth)

    @classmethod
    def of_options(cls, options: Mapping[str, Any]) -> Self:
        """The source, whose schema is given as a file."""
        file = options.get("schema_text")
        if file is None:
            return cls(**options)
        try:
            fields: dict[str, Any] = {**options, "schema_text": Path(file).read_text(encoding="utf-8")}
        except (OSError, UnicodeDecodeError) as problem:
            msg = f"the schema {file!r} cannot be read: {problem}; name a file of SDL or introspection JSON"
            raise InvalidInput(msg) from problem
        return cls(**fields)


async def import_graphql_api(source: GraphqlSource, context: ImportContext) -> "ImportedApi":
    """Import what an API offers.

    Args:
        source: The API.
        context: The context of the import.

    Raises:
        InvalidSettings: The package for GraphQL is not installed.
        InvalidDefinition: The address or the schema cannot be used, or the schema is larger than a limit.
        InvalidInput: The server does not provide its schema, or the response is not GraphQL.
        ReconnectRequired: The server refuses the credentials, or there are none.
        Unavailable: It cannot be reached.
        EgressDenied: The policy forbids the address.
        Conflict: A tool would take the name of one that is not the provider's.
    """
    import asyncio
    from functools import partial

    from toolcrib.core.executor import CallFailed
    from toolcrib.core.providers.import_names import in_the_tree, names_before, under_free_names
    from toolcrib.core.registry import check_provider

    try:
        from toolcrib.kinds.graphql.importer.importer import import_graphql
        from toolcrib.kinds.graphql.importer.schema import introspect, read_schema
        from toolcrib.kinds.graphql.importer.selections import SelectionLimits
    except ImportError as problem:
        raise InvalidSettings(missing_extra("the import of a GraphQL API", problem.name, "graphql")) from problem
    provider = _provider(source, context.provider)
    check_provider(provider)
    try:
        given = source.schema_text or await introspect(context.session, context.access, provider, context.who)
    except CallFailed as failure:
        raise in_the_tree(failure.error) from failure
    reading = await asyncio.to_thread(read_schema, given)
    read = partial(
        import_graphql,
        reading.schema,
        name=source.name,
        base_url=source.url,
        source=reading.form,
        auth=provider.auth,
        limits=SelectionLimits(depth=source.depth, cost=source.cost),
    )
    names = names_before(
        source.name, context.tools, GraphqlImplementation, lambda made: f"{made.operation} {made.root_field}"
    )
    return await under_free_names(read, source.name, names, context.tools)


def _provider(source: GraphqlSource, earlier: ProviderDefinition | None) -> ProviderDefinition:
    """The provider to import. It keeps its credentials only if its address does not change."""
    known = earlier if earlier is not None and earlier.address == source.url else None
    return ProviderDefinition(
        name=source.name,
        base_url=source.url,
        auth=source.auth or (NoAuth() if known is None else known.auth),
        headers={} if known is None else known.headers,
    )


IMPORTERS = (Importer(GraphqlSource, import_graphql_api, "import-graphql"),)
