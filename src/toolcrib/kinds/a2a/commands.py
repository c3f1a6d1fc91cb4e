"""Import of agents that speak A2A, from their cards."""

from typing import TYPE_CHECKING, Annotated

from toolcrib.contracts import InvalidSettings, NoAuth, ProviderAuth, ProviderDefinition
from toolcrib.contracts.base.errors import missing_extra
from toolcrib.core.kinds import ImportContext, Importer, ImportSource, Option
from toolcrib.kinds.a2a.shape import A2aImplementation

if TYPE_CHECKING:
    from toolcrib.core.providers import ImportedApi


class A2aSource(ImportSource):
    """An agent that speaks A2A. It becomes one tool, which takes messages."""

    url: Annotated[str, Option(metavar="URL", help="Where the agent is, or the address of its card.")]
    """Where the agent is; its card is below it, at `/.well-known/agent-card.json`. Or the address of its card, which
    ends with `.json`."""
    auth: Annotated[
        ProviderAuth | None, Option("--token", "REF", "Where its bearer token is kept, such as '${env:NAME}'.")
    ] = None
    """Authentication, also for the card; that of the provider, if there is one already at the same URL."""

    @property
    def references(self) -> tuple[str, ...]:
        """Those of its authentication."""
        from toolcrib.core.registry import references_of

        return () if self.auth is None else references_of(self.auth)


async def import_a2a_agent(source: A2aSource, context: ImportContext) -> "ImportedApi":
    """Import an agent.

    Args:
        source: The agent.
        context: The context of the import.

    Raises:
        InvalidSettings: The package for A2A is not installed.
        InvalidDefinition: The address cannot be used.
        InvalidInput: There is no card, or none that can be used.
        ReconnectRequired: The card is refused for the credentials.
        Unavailable: The address cannot be reached.
        EgressDenied: The policy forbids the address.
        Conflict: The tool would take the name of one that is not the provider's.
    """
    from functools import partial

    from toolcrib.core.providers.import_names import names_before, under_free_names
    from toolcrib.core.registry import check_provider

    try:
        from toolcrib.kinds.a2a.importer import fetch_card, import_card
    except ImportError as problem:
        raise InvalidSettings(missing_extra("the import of an A2A agent", problem.name, "a2a")) from problem
    provider = _provider(source, context.provider)
    check_provider(provider)
    card = await fetch_card(context.session, context.access, provider, context.who)
    read = partial(import_card, card, provider)
    names = names_before(source.name, context.tools, A2aImplementation, lambda made: made.agent)
    return await under_free_names(read, source.name, names, context.tools)


def _provider(source: A2aSource, earlier: ProviderDefinition | None) -> ProviderDefinition:
    """The provider to import. It keeps its credentials only if it was imported from the same address."""
    known = earlier if earlier is not None and source.url in {earlier.address, earlier.metadata.get("card")} else None
    return ProviderDefinition(
        name=source.name,
        base_url=source.url,
        auth=source.auth or (NoAuth() if known is None else known.auth),
        headers={} if known is None else known.headers,
    )


IMPORTERS = (Importer(A2aSource, import_a2a_agent, "import-a2a"),)
