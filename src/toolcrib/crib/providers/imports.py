"""Bringing in what other systems offer: a provider and its tools, from a description or from the system itself.

Importing defines; it never calls a tool, and it starts nothing that the operator has not allowed.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, assert_never

from toolcrib.contracts import (
    DatabaseConnection,
    GrpcConnection,
    HttpConnection,
    InvalidInput,
    Json,
    McpConnection,
    McpTransport,
    NotFound,
    Principal,
    ProviderAuth,
    ProviderDefinition,
)
from toolcrib.core.providers import ImportedApi
from toolcrib.crib.container.access import Actor
from toolcrib.crib.container.container import CribServices
from toolcrib.crib.providers.documents import import_document
from toolcrib.crib.providers.entities import import_database, import_entities
from toolcrib.crib.providers.servers import import_mcp_server, import_server, mcp_provider
from toolcrib.kinds.entity.importer import EntityOptions
from toolcrib.kinds.http.openapi import ToolOverride

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from toolcrib.kinds.entity.importer.tables import Entity, Table


class Imports:
    """The imports of a crib.

    Args:
        parts: Of the crib.
        actor: Who acts.
    """

    def __init__(self, parts: CribServices, actor: Actor) -> None:
        self._parts = parts
        self._actor = actor

    async def openapi(
        self,
        document: bytes | str | Mapping[str, Json],
        *,
        name: str,
        base_url: str | None = None,
        auth: ProviderAuth | None = None,
        overrides: Mapping[str, ToolOverride] | None = None,
        documents: Mapping[str, Json] | None = None,
        origins: Collection[str] = (),
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
            accept: Take over also changes that could harm callers, and that a person would have to look at.

        Raises:
            InvalidInput: The URL answers with something else than success.
            InvalidDefinition: It is no OpenAPI document that can be read.
            Conflict: A tool that is not the provider's has a name that one of its tools needs; or the provider would be
                reached in another way than it is, and changes are not accepted.
        """
        who = await self._actor.authorize(newest=True)
        imported = await import_document(
            self._parts.session,
            document,
            name=name,
            base_url=base_url,
            auth=auth,
            overrides=overrides or {},
            documents=documents,
            origins=origins,
            provider=self._parts.providers.find(who.realm, name),
            tools=self._parts.registry.current(who.realm),
        )
        return await self._adopt(imported, who, accept=accept)

    async def grpc(
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
            authority: Name that the server's certificate is held against, if it is not the host.
            accept: Take over also changes that could harm callers, and that a person would have to look at.

        Raises:
            InvalidSettings: The packages for gRPC are not installed.
            InvalidDefinition: The address is none, or the descriptors cannot be used.
            ReconnectRequired: The server refuses the credentials, or there are none.
            InvalidInput: The server has no reflection, or refuses it.
            Unavailable: The server cannot be reached.
            EgressDenied: The policy forbids the address.
            Conflict: A tool that is not the provider's has a name that one of its tools needs; or the provider would be
                reached in another way than it is, and changes are not accepted.
        """
        who = await self._actor.authorize(newest=True)
        imported = await import_server(
            self._parts.grpc,
            address,
            name=name,
            descriptors=descriptors,
            auth=auth,
            authority=authority,
            who=who,
            provider=self._parts.providers.find(who.realm, name),
            tools=self._parts.registry.current(who.realm),
        )
        blobs = self._parts.outside.store.blobs
        for data in imported.descriptors.values():
            await blobs.put(data, realm=who.realm, made_by=who.id, content_type="application/x-protobuf")
        return await self._adopt(imported, who, accept=accept)

    async def mcp(
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
            InvalidDefinition: The name or the address is none, or it is a program and a URL.
            PermissionDenied: The program may not be started, or the policy forbids the address.
            ReconnectRequired: The server refuses the credentials, or there are none.
            Unavailable: It cannot be connected, or does not answer.
            InvalidInput: Its answers are no MCP.
        """
        who = await self._actor.authorize(newest=True)
        earlier = self._parts.providers.find(who.realm, name)
        known = earlier.connection if earlier is not None and isinstance(earlier.connection, McpConnection) else None
        connection = (known or McpConnection()).model_copy(
            update={
                "transport": "stdio" if command else transport,
                "command": tuple(command),
                "environment": dict(environment or {}),
            }
        )
        return await self._mcp(mcp_provider(name, connection, url, auth, earlier), who, accept=accept)

    async def sync(self, name: str, *, accept: bool = False) -> ImportedApi:
        """Ask a provider's server again what it offers, and take in what is new and changed.

        Args:
            name: Of a provider that is an MCP server, or a gRPC server with reflection.
            accept: Take over also changes that could harm callers, and that a person would have to look at.

        Raises:
            NotFound: There is no such provider.
            InvalidInput: It is of another kind, which cannot be asked.
            ToolcribError: As importing it does.
        """
        who = await self._actor.authorize(newest=True)
        provider = self._parts.providers.find(who.realm, name)
        if provider is None:
            raise NotFound(f"there is no provider {name!r} in realm {who.realm!r}; import it first")
        match provider.connection:
            case McpConnection():
                return await self._mcp(provider, who, accept=accept)
            case GrpcConnection() as server:
                return await self.grpc(provider.base_url, name=name, authority=server.authority, accept=accept)
            case HttpConnection() | DatabaseConnection():
                kind = provider.connection.kind
                raise InvalidInput(f"provider {name!r} ({kind}) cannot be asked what it offers; import it once more")
            case _:
                assert_never(provider.connection)

    async def _mcp(self, provider: ProviderDefinition, who: Principal, *, accept: bool) -> ImportedApi:
        tools = self._parts.registry.current(who.realm)
        imported = await import_mcp_server(self._parts.mcp, provider, who, tools)
        return await self._adopt(imported, who, accept=accept)

    async def entities(
        self,
        name: str,
        database: "Engine | str",
        *things: "type | Table | Entity",
    ) -> ImportedApi:
        """Make tools of the rows of tables that the application maps with SQLAlchemy.

        The application's code says what they are, so its changes are taken over; what a person has changed stays.

        Args:
            name: The provider's name.
            database: An engine of the application, which each process binds anew, or a reference to a URL:
                `${env:SHOP_DATABASE_URL}`.
            *things: Mapped classes, with or without the decorator `entity`, and tables.

        Raises:
            InvalidDefinition: One of them is not mapped.
            InvalidSettings: Threads cannot share the engine.
            Conflict: A tool that is not the provider's has a name that one of its tools needs.
        """
        who = await self._actor.authorize(newest=True)
        tools = self._parts.registry.current(who.realm)
        imported = await import_entities(self._parts.entities, name, database, things, who=who, tools=tools)
        return await self._adopt(imported, who, accept=True, partial=True)

    async def database(
        self,
        *,
        name: str,
        url: str,
        schema: str | None = None,
        tables: Collection[str] | None = None,
        options: Mapping[str, EntityOptions] | None = None,
        accept: bool = False,
    ) -> ImportedApi:
        """Make tools of the tables that a database has: it is asked what they hold, and no row is read.

        Args:
            name: The provider's name.
            url: Reference to the database's URL: `${env:SHOP_DATABASE_URL}`.
            schema: The database's schema; its default one if null.
            tables: Which tables; all if null.
            options: Choices by table.
            accept: Take over also changes that could harm callers, and that a person would have to look at.

        Raises:
            InvalidDefinition: The name or the reference is none.
            ReconnectRequired: The database refuses the credentials, or the reference leads to none.
            Unavailable: The database cannot be reached.
            EgressDenied: The policy forbids the address, or it is the store of a crib.
            InvalidInput: The database cannot be read, or has no such table.
            Conflict: A tool that is not the provider's has a name that one of its tools needs; or the provider would be
                reached in another way than it is, and changes are not accepted.
        """
        who = await self._actor.authorize(newest=True)
        imported = await import_database(
            self._parts.entities,
            name=name,
            url=url,
            schema=schema,
            tables=tables,
            options=options or {},
            who=who,
            tools=self._parts.registry.current(who.realm),
        )
        return await self._adopt(imported, who, accept=accept, partial=tables is not None)

    async def adopt(
        self,
        imported: ImportedApi,
        *,
        accept: bool = False,
        partial: bool = False,
    ) -> ImportedApi:
        """Store what an importer of one's own has made; returns it with the outcome.

        Args:
            imported: A provider and its tools.
            accept: Take over also changes that could harm callers, and that a person would have to look at.
            partial: The tools are some of the provider's, so that the others are not gone.

        Raises:
            Conflict: The provider would be reached in another way than it is, and changes are not accepted.
            InvalidDefinition: A definition is not well formed; nothing is stored.
        """
        return await self._adopt(imported, await self._actor.authorize(), accept=accept, partial=partial)

    async def _adopt(
        self, imported: ImportedApi, who: Principal, *, accept: bool = False, partial: bool = False
    ) -> ImportedApi:
        """Store a provider and its tools, as far as a person need not look at them first; returns it with the outcome.

        Args:
            imported: What an importer has made.
            who: In whose realm and name.
            accept: Take over also changes that callers would have to look at.
            partial: The tools are some of the provider's, so that the others are not gone.
        """
        return await self._parts.adoptions.adopt(imported, who, accept=accept, partial=partial)
