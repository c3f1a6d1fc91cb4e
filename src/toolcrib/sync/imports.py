"""Synchronous forms of `toolcrib.crib.providers.imports`.

Written by `python -m tools.sync_facade`; not to be edited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.sync.event_loop import EventLoopThread, Facade

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from sqlalchemy import Engine

    from toolcrib.contracts import AutoDiscover, Json, McpTransport, ProviderAuth, ProviderSync
    from toolcrib.core.kinds import ImportSource
    from toolcrib.core.providers import ImportedApi
    from toolcrib.crib.providers.imports import Imports as AsynchronousImports
    from toolcrib.kinds.entity.importer import EntityOptions
    from toolcrib.kinds.entity.importer.tables import Entity, Table
    from toolcrib.kinds.http.shape import Bounds, ToolOverride


class Imports(Facade):
    """The imports of a crib.

    Args:
        parts: The parts of the crib.
        actor: The actor of the crib.
    """

    def __init__(self, asynchronous: AsynchronousImports, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._imports = asynchronous

    def read(self, source: ImportSource) -> ImportedApi:
        """Import what a source describes: the generic form of the methods below.

        Args:
            source: One of the sources that the kinds of tools have, such as `GrpcSource`.

        Raises:
            ToolcribError: As the importer of the source says.
            Conflict: A tool that is not the provider's has a name that one of its tools needs; or the provider would be
                reached in another way than it is, and changes are not accepted.

        Example:
            from toolcrib.kinds.http.commands import OpenApiSource

            api = crib.imports.read(OpenApiSource(name="deals_api", document=document))
        """
        return self._loop.run(self._imports.read, source)

    def openapi(
        self,
        document: bytes | str | Mapping[str, Json],
        *,
        name: str,
        base_url: str | None = None,
        auth: ProviderAuth | None = None,
        overrides: Mapping[str, ToolOverride] | None = None,
        documents: Mapping[str, Json] | None = None,
        origins: Collection[str] = (),
        bounds: Bounds | None = None,
        accept: bool = False,
    ) -> ImportedApi:
        """Import an OpenAPI document: a provider and a tool per operation.

        Args:
            document: JSON or YAML text, what it parses to, or an http(s) URL to fetch it from.
            name: The provider's name.
            base_url: Address of the API, instead of the document's servers.
            auth: Authentication, instead of the document's.
            overrides: Corrections by operationId.
            documents: What it refers to, by URI, if it is not fetched.
            origins: Where else than at its own origin a fetched document may refer to.
            bounds: How large the document may be; 40 MB and 20,000 operations if null.
            accept: Take over also changes that could harm callers, and that a person would have to look at.

        Raises:
            InvalidInput: The URL answers with something else than success.
            InvalidDefinition: It is no OpenAPI document that can be read.
            Conflict: A tool that is not the provider's has a name that one of its tools needs; or the provider would be
                reached in another way than it is, and changes are not accepted.

        Example:
            document = {
                "openapi": "3.1.0",
                "info": {"title": "Deals", "version": "1"},
                "servers": [{"url": "https://deals.example"}],
                "paths": {"/deals": {"get": {"operationId": "list_deals", "responses": {}}}},
            }
            api = crib.imports.openapi(document, name="deals_api")
            print([each.name for each in api.tools], api.losses)
        """
        return self._loop.run(
            self._imports.openapi,
            document,
            name=name,
            base_url=base_url,
            auth=auth,
            overrides=overrides,
            documents=documents,
            origins=origins,
            bounds=bounds,
            accept=accept,
        )

    def grpc(
        self,
        address: str,
        *,
        name: str,
        descriptors: bytes | None = None,
        auth: ProviderAuth | None = None,
        authority: str | None = None,
        accept: bool = False,
    ) -> ImportedApi:
        """Import the services of a gRPC server: a provider and a tool per unary or server-streaming method.

        Args:
            address: `grpc://host:port`, or `grpcs://host:port` over TLS.
            name: The provider's name.
            descriptors: A serialized `FileDescriptorSet`, instead of asking the server by reflection.
            auth: Authentication, also for reflection; what the provider has, if there is one already.
            authority: Name that the server's certificate must have, if it is not the host.
            accept: Take over also changes that could harm callers, and that a person would have to look at.

        Raises:
            InvalidSettings: The packages for gRPC are not installed.
            InvalidDefinition: The address is invalid, or the descriptors cannot be used.
            ReconnectRequired: The server refuses the credentials, or there are none.
            InvalidInput: The server has no reflection, or refuses it.
            Unavailable: The server cannot be reached.
            EgressDenied: The policy forbids the address.
            Conflict: A tool that is not the provider's has a name that one of its tools needs; or the provider would be
                reached in another way than it is, and changes are not accepted.

        Example:
            api = crib.imports.grpc("grpcs://deals.example:443", name="deals_grpc")
            print([each.name for each in api.tools])
        """
        return self._loop.run(
            self._imports.grpc,
            address,
            name=name,
            descriptors=descriptors,
            auth=auth,
            authority=authority,
            accept=accept,
        )

    def mcp(
        self,
        url: str = "",
        *,
        name: str,
        transport: McpTransport = "streamable_http",
        command: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        auth: ProviderAuth | None = None,
        accept: bool = False,
    ) -> ImportedApi:
        """Import what an MCP server offers: a provider, and a tool per tool, resource, template and prompt.

        Args:
            url: Where the server is.
            name: The provider's name.
            transport: How it is spoken to, at its URL.
            command: A program that is the server, instead of a URL; the operator must have allowed it.
            environment: Variables of the program: text, or references such as `${env:NAME}`.
            auth: Authentication; what the provider has, if there is one already at the same URL.
            accept: Take over also changes that could harm callers, and that a person would have to look at.

        Raises:
            InvalidDefinition: The name or the address is invalid, or both a program and a URL are given.
            PermissionDenied: The program may not be started, or the policy forbids the address.
            ReconnectRequired: The server refuses the credentials, or there are none.
            Unavailable: It cannot be connected, or does not answer.
            InvalidInput: Its answers are no MCP.

        Example:
            api = crib.imports.mcp("https://files.example/mcp", name="files")
            print([each.name for each in api.tools])
        """
        return self._loop.run(
            self._imports.mcp,
            url,
            name=name,
            transport=transport,
            command=command,
            environment=environment,
            auth=auth,
            accept=accept,
        )

    def sync(self, name: str, *, accept: bool = False) -> ImportedApi:
        """Import a provider again from where it was imported: new tools are added, changes are adopted or held back.

        Args:
            name: Of a provider that can be asked again: an MCP server, a gRPC server with reflection, a database, or
                what was imported from an address (OpenAPI, GraphQL, A2A).
            accept: Take over also changes that could harm callers, and that a person would have to look at.

        Raises:
            NotFound: There is no such provider.
            InvalidInput: It cannot be asked again, because it was imported from a file or not at all.
            ToolcribError: As importing it does.

        Example:
            api = crib.imports.sync("files")
            print([(each.tool, each.adoption) for each in api.outcome.tools])
        """
        return self._loop.run(self._imports.sync, name, accept=accept)

    def schedule(self, name: str, times: AutoDiscover | None) -> ProviderSync:
        """Have serving processes sync a provider by themselves from now on, or no more.

        Each sync is done by one of the processes that share the store. What passed while none ran is caught up by one
        sync, and a failed one is tried again after a minute, then two, four, and so on to an hour.

        Args:
            name: Of a provider that `sync` can ask again.
            times: An interval, or times; null for no more syncs.

        Raises:
            NotFound: There is no such provider.
            InvalidInput: It cannot be asked again.
            InvalidDefinition: The times or the time zone cannot be used.

        Example:
            from toolcrib.contracts import AutoDiscover

            crib.imports.database(name="shop", url="${env:SHOP_DATABASE_URL}")
            planned = crib.imports.schedule("shop", AutoDiscover(every_s=3600))
            print(planned.next_at)
        """
        return self._loop.run(self._imports.schedule, name, times)

    def last_sync(self, name: str) -> ProviderSync:
        """How the syncs of a provider stand: the last one, and when the next one is.

        Raises:
            NotFound: There is no such provider.

        Example:
            found = crib.imports.last_sync("deals_api")
            print(found.at, found.result, found.counts, found.error)
        """
        return self._loop.run(self._imports.last_sync, name)

    def sync_due(self) -> Sequence[ProviderSync]:
        """Sync the providers of the realm whose schedule says so. A serving process does so.

        Example:
            for found in crib.imports.sync_due():
                print(found.provider, found.result, found.error)
        """
        return self._loop.run(
            self._imports.sync_due,
        )

    def at_start(self) -> Sequence[str]:
        """Import what the setting `imports` names, as far as no other process does so at the moment.

        A serving process does so when it starts. Changes are adopted or held back as by `sync`.

        Returns:
            Why what could not be imported was not, by its order; each is to be tried again.

        Example:
            for problem in crib.imports.at_start():
                print(problem)
        """
        return self._loop.run(
            self._imports.at_start,
        )

    def entities(self, name: str, database: Engine | str, *things: type | Table | Entity) -> ImportedApi:
        """Make tools of the rows of tables that the application maps with SQLAlchemy.

        The application's code says what they are, so its changes are taken over; what a person has changed stays.

        Args:
            name: The provider's name.
            database: An engine of the application, which each process must bind, or a reference to a URL:
                `${env:SHOP_DATABASE_URL}`.
            *things: Mapped classes, with or without the decorator `entity`, and tables.

        Raises:
            InvalidDefinition: One of them is not mapped.
            InvalidSettings: Threads cannot share the engine.
            Conflict: A tool that is not the provider's has a name that one of its tools needs.

        Example:
            from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine

            notes = Table("notes", MetaData(), Column("id", Integer, primary_key=True), Column("text", String(200)))
            api = crib.imports.entities("journal", create_engine("sqlite:///journal.db"), notes)
            print([each.name for each in api.tools])
        """
        return self._loop.run(self._imports.entities, name, database, *things)

    def database(
        self,
        *,
        name: str,
        url: str,
        schema: str | None = None,
        tables: Collection[str] | None = None,
        views: bool = False,
        options: Mapping[str, EntityOptions] | None = None,
        accept: bool = False,
    ) -> ImportedApi:
        """Make tools of the tables that a database has: it is asked what they hold, and no row is read.

        Args:
            name: The provider's name.
            url: Reference to the database's URL: `${env:SHOP_DATABASE_URL}`.
            schema: The database's schema; its default one if null.
            tables: Which tables and views, `schema.name` for those of another schema; all tables if null.
            views: Whether all views are imported too, if `tables` is null; their tools only read.
            options: Choices by table.
            accept: Take over also changes that could harm callers, and that a person would have to look at.

        Raises:
            InvalidDefinition: The name or the reference is invalid.
            ReconnectRequired: The database refuses the credentials, or the reference leads to none.
            Unavailable: The database cannot be reached.
            EgressDenied: The policy forbids the address, or it is the store of a crib.
            InvalidInput: The database cannot be read, or has no such table.
            Conflict: A tool that is not the provider's has a name that one of its tools needs; or the provider would be
                reached in another way than it is, and changes are not accepted.

        Example:
            api = crib.imports.database(name="shop", url="${env:SHOP_DATABASE_URL}", tables=["orders"])
            print([each.name for each in api.tools])
            print(crib.call("count_orders").output)
        """
        return self._loop.run(
            self._imports.database,
            name=name,
            url=url,
            schema=schema,
            tables=tables,
            views=views,
            options=options,
            accept=accept,
        )

    def adopt(self, imported: ImportedApi, *, accept: bool = False, partial: bool = False) -> ImportedApi:
        """Store what an importer of one's own has made; returns it with the outcome.

        Args:
            imported: A provider and its tools.
            accept: Take over also changes that could harm callers, and that a person would have to look at.
            partial: The tools are some of the provider's, so that the others are not gone.

        Raises:
            Conflict: The provider would be reached in another way than it is, and changes are not accepted.
            InvalidDefinition: A definition is not well formed; nothing is stored.

        Example:
            from toolcrib.kinds.http.openapi.importer import import_openapi

            api = crib.imports.adopt(import_openapi(document, name="deals_api"))
            print([(each.tool, each.adoption) for each in api.outcome.tools])
        """
        return self._loop.run(self._imports.adopt, imported, accept=accept, partial=partial)
