"""Imports a provider and its tools, from a description or from the system itself.

An import only makes definitions. It calls no tool, and starts no program that the operator has not allowed.
"""

import contextlib
import logging
from base64 import b64encode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from toolcrib.contracts import (
    AutoDiscover,
    InvalidInput,
    Json,
    McpTransport,
    NotFound,
    Principal,
    ProviderAuth,
    ProviderDefinition,
    ProviderSync,
    ToolcribError,
)
from toolcrib.core.kinds import ImportSource
from toolcrib.core.providers import ImportedApi
from toolcrib.core.registry import check_provider_name
from toolcrib.crib.container.access import Actor
from toolcrib.crib.container.container import CribServices
from toolcrib.crib.container.leases import hold_lease
from toolcrib.crib.providers.syncs import SyncRecord, SyncRecords, due_at
from toolcrib.kinds.entity.commands import DatabaseSource, TableOptions, import_entities
from toolcrib.kinds.entity.importer import EntityOptions
from toolcrib.kinds.grpc.commands import GrpcSource
from toolcrib.kinds.http.commands import OpenApiSource
from toolcrib.kinds.http.shape import Bounds, ToolOverride
from toolcrib.kinds.mcp.commands import McpSource
from toolcrib.kinds.table import StartImport, connection_kind, importer_of, recorded_source, source_at, source_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from toolcrib.kinds.entity.importer.tables import Entity, Table

_LEASE_S: Final = 30.0
"""Seconds after which another process decides in place of one that died while it decided whether a sync is due."""
_IMPORT_S: Final = 300.0
"""Seconds after which another process imports at its start what one that died was importing."""
_NOT_REPEATABLE: Final = (
    "provider {provider!r} ({kind}) cannot be asked what it offers; import it once more, from an address if it has one"
)
_logger = logging.getLogger(__name__)


class Imports:
    """The imports of a crib.

    Args:
        parts: The parts of the crib.
        actor: The actor of the crib.
    """

    def __init__(self, parts: CribServices, actor: Actor) -> None:
        self._parts = parts
        self._actor = actor
        self._syncs = SyncRecords(parts.outside.store.cache, parts.outside.clock)
        self._due: dict[str, tuple[AutoDiscover, datetime | None]] = {}
        """When scheduled providers are due, as far as this process knows, by name."""

    async def read(self, source: ImportSource) -> ImportedApi:
        """Import what a source describes: the generic form of the methods below.

        Args:
            source: One of the sources that the kinds of tools have, such as `GrpcSource`.

        Raises:
            ToolcribError: As the importer of the source says.
            Conflict: A tool that is not the provider's has a name that one of its tools needs; or the provider would be
                reached in another way than it is, and changes are not accepted.

        Example:
            from toolcrib.kinds.http.commands import OpenApiSource

            api = await crib.imports.read(OpenApiSource(name="deals_api", document=document))
        """
        check_provider_name(source.name)
        who = await self._actor.authorize(newest=True)
        imported = await self._read(source, who)
        adopted = await self._adopt(imported, who, accept=source.accept, partial=source.is_partial)
        await self._record(adopted, who)
        return adopted

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
            api = await crib.imports.openapi(document, name="deals_api")
            print([each.name for each in api.tools], api.losses)
        """
        source = OpenApiSource(
            name=name,
            document=document if isinstance(document, bytes | str) else dict(document),
            base_url=base_url,
            auth=auth,
            overrides=dict(overrides or {}),
            documents=None if documents is None else dict(documents),
            origins=tuple(origins),
            bounds=bounds or Bounds(),
            accept=accept,
        )
        return await self.read(source)

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
            api = await crib.imports.grpc("grpcs://deals.example:443", name="deals_grpc")
            print([each.name for each in api.tools])
        """
        source = GrpcSource(
            name=name,
            address=address,
            descriptors=None if descriptors is None else b64encode(descriptors),
            authority=authority,
            auth=auth,
            accept=accept,
        )
        return await self.read(source)

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
            InvalidDefinition: The name or the address is invalid, or both a program and a URL are given.
            PermissionDenied: The program may not be started, or the policy forbids the address.
            ReconnectRequired: The server refuses the credentials, or there are none.
            Unavailable: It cannot be connected, or does not answer.
            InvalidInput: Its answers are no MCP.

        Example:
            api = await crib.imports.mcp("https://files.example/mcp", name="files")
            print([each.name for each in api.tools])
        """
        source = McpSource(
            name=name,
            url=url,
            transport=transport,
            command=tuple(command),
            environment=dict(environment or {}),
            auth=auth,
            accept=accept,
        )
        return await self.read(source)

    async def sync(self, name: str, *, accept: bool = False) -> ImportedApi:
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
            api = await crib.imports.sync("files")
            print([(each.tool, each.adoption) for each in api.outcome.tools])
        """
        who = await self._actor.authorize(newest=True)
        provider = self._require(name, who)
        self._require_repeatable(provider)
        await self._begin(name, who)
        try:
            imported = await self._import_again(provider, who, accept=accept)
        except ToolcribError as problem:
            await self._fail(name, who, problem)
            raise
        await self._record(imported, who)
        return imported

    async def schedule(self, name: str, times: AutoDiscover | None) -> ProviderSync:
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

            await crib.imports.database(name="shop", url="${env:SHOP_DATABASE_URL}")
            planned = await crib.imports.schedule("shop", AutoDiscover(every_s=3600))
            print(planned.next_at)
        """
        who = await self._actor.authorize(newest=True)
        provider = self._require(name, who).model_copy(update={"auto_discover": times})
        if times is not None:
            self._require_repeatable(provider)
        await self._parts.catalogue.save_provider(provider, who)
        return await self.last_sync(name)

    async def last_sync(self, name: str) -> ProviderSync:
        """How the syncs of a provider stand: the last one, and when the next one is.

        Raises:
            NotFound: There is no such provider.

        Example:
            found = await crib.imports.last_sync("deals_api")
            print(found.at, found.result, found.counts, found.error)
        """
        who = await self._actor.authorize(newest=True)
        provider = self._require(name, who)
        return (await self._syncs.get(who.realm, name)).shown(provider)

    async def sync_due(self) -> Sequence[ProviderSync]:
        """Sync the providers of the realm whose schedule says so. A serving process does so.

        Example:
            for found in await crib.imports.sync_due():
                print(found.provider, found.result, found.error)
        """
        who = await self._actor.authorize(newest=True)
        done: list[ProviderSync] = []
        for provider in self._parts.providers.current(who.realm):
            if await self._take_turn(provider, who):
                with contextlib.suppress(ToolcribError):
                    await self._sync_in_turn(provider, who)
                done.append(await self.last_sync(provider.name))
        return done

    async def at_start(self) -> Sequence[str]:
        """Import what the setting `imports` names, as far as no other process does so at the moment.

        A serving process does so when it starts. Changes are adopted or held back as by `sync`.

        Returns:
            Why what could not be imported was not, by its order; each is to be tried again.

        Example:
            for problem in await crib.imports.at_start():
                print(problem)
        """
        who = await self._actor.authorize(newest=True)
        outside, problems = self._parts.outside, list[str]()
        for line in outside.definitions.imports:
            wanted = StartImport.read(line)
            key = f"start-import/{who.realm}/{wanted.name}"
            lease = hold_lease(
                outside.store.cache, outside.clock, key, realm=who.realm, made_by=who.id, lease_s=_IMPORT_S
            )
            async with lease as is_held:
                if is_held:
                    try:
                        await self.read(source_at(wanted.form, wanted.address, name=wanted.name))
                    except ToolcribError as problem:
                        problems.append(f"import {wanted.name!r}: {problem}")
        return problems

    async def _take_turn(self, provider: ProviderDefinition, who: Principal) -> bool:
        """Whether a provider is due and this process is the one that syncs it; the attempt is then written down."""
        schedule, now = provider.auto_discover, self._parts.outside.clock.now()
        if schedule is None or not provider.enabled:
            return False
        known, due = self._due.get(provider.name, (None, None))
        if known == schedule and due is not None and due > now:
            return False
        outside, key = self._parts.outside, f"provider-sync-lease/{who.realm}/{provider.name}"
        lease = hold_lease(outside.store.cache, outside.clock, key, realm=who.realm, made_by=who.id, lease_s=_LEASE_S)
        async with lease as is_held:
            if not is_held:
                return False
            record = await self._syncs.find(who.realm, provider.name)
            if record is None:
                record = await self._syncs.keep(who.realm, provider.name, SyncRecord(now))
            due = due_at(schedule, record)
            is_due = due is not None and due <= now
            if is_due:
                record = await self._syncs.keep(who.realm, provider.name, record.begun(now))
                due = due_at(schedule, record)
            self._due[provider.name] = schedule, due
            return is_due

    async def _sync_in_turn(self, provider: ProviderDefinition, who: Principal) -> None:
        try:
            self._require_repeatable(provider)
            imported = await self._import_again(provider, who, careful=True)
        except ToolcribError as problem:
            _logger.warning("provider %s could not be synced: %s", provider.name, problem)
            await self._fail(provider.name, who, problem)
            raise
        finally:
            self._due.pop(provider.name, None)
        await self._record(imported, who)
        for held in () if imported.outcome is None else imported.outcome.held:
            _logger.warning("provider %s: %s", provider.name, held.message)

    async def _import_again(
        self, provider: ProviderDefinition, who: Principal, *, accept: bool = False, careful: bool = False
    ) -> ImportedApi:
        """Import what a provider offers now.

        Args:
            provider: As it is stored.
            who: The principal that acts, in its realm.
            accept: Take over also changes that callers would have to look at.
            careful: Refuse an offer that lacks most of the provider's tools.
        """
        source, sync = source_of(provider), connection_kind(provider).sync
        if source is not None:
            imported = await self._read(source, who)
            return await self._adopt(imported, who, accept=accept, partial=source.is_partial, careful=careful)
        if sync is None:
            raise InvalidInput(_NOT_REPEATABLE.format(provider=provider.name, kind=provider.connection.kind))
        imported = await sync(provider, self._parts.import_context(who, provider.name))
        return await self._adopt(imported, who, accept=accept, careful=careful)

    async def _read(self, source: ImportSource, who: Principal) -> ImportedApi:
        """What a source offers; its provider says how to ask again."""
        imported = await importer_of(source).read(source, self._parts.import_context(who, source.name))
        if connection_kind(imported.provider).sync is not None:
            return imported
        provider = imported.provider.model_copy(update={"imported_from": recorded_source(source)})
        return replace(imported, provider=provider)

    def _require(self, name: str, who: Principal) -> ProviderDefinition:
        provider = self._parts.providers.find(who.realm, name)
        if provider is None:
            raise NotFound(f"there is no provider {name!r} in realm {who.realm!r}; import it first")
        return provider

    def _require_repeatable(self, provider: ProviderDefinition) -> None:
        if source_of(provider) is None and connection_kind(provider).sync is None:
            raise InvalidInput(_NOT_REPEATABLE.format(provider=provider.name, kind=provider.connection.kind))

    async def _begin(self, name: str, who: Principal) -> None:
        record = await self._syncs.get(who.realm, name)
        await self._syncs.keep(who.realm, name, record.begun(self._parts.outside.clock.now()))

    async def _fail(self, name: str, who: Principal, problem: ToolcribError) -> None:
        record = await self._syncs.get(who.realm, name)
        await self._syncs.keep(who.realm, name, record.failed(str(problem)))

    async def _record(self, imported: ImportedApi, who: Principal) -> None:
        name, outcome = imported.provider.name, imported.outcome
        if outcome is not None:
            record = await self._syncs.get(who.realm, name)
            await self._syncs.keep(who.realm, name, record.synced(self._parts.outside.clock.now(), outcome))

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
            api = await crib.imports.entities("journal", create_engine("sqlite:///journal.db"), notes)
            print([each.name for each in api.tools])
        """
        check_provider_name(name)
        who = await self._actor.authorize(newest=True)
        imported = await import_entities(name, database, things, self._parts.import_context(who, name))
        return await self._adopt(imported, who, accept=True, partial=True)

    async def database(
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
            api = await crib.imports.database(name="shop", url="${env:SHOP_DATABASE_URL}", tables=["orders"])
            print([each.name for each in api.tools])
            print((await crib.call("count_orders")).output)
        """
        source = DatabaseSource(
            name=name,
            url=url,
            table_schema=schema,
            tables=None if tables is None else tuple(tables),
            views=views,
            options={table: TableOptions(**asdict(choices)) for table, choices in (options or {}).items()},
            accept=accept,
        )
        return await self.read(source)

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

        Example:
            from toolcrib.kinds.http.openapi.importer import import_openapi

            api = await crib.imports.adopt(import_openapi(document, name="deals_api"))
            print([(each.tool, each.adoption) for each in api.outcome.tools])
        """
        return await self._adopt(imported, await self._actor.authorize(), accept=accept, partial=partial)

    async def _adopt(
        self,
        imported: ImportedApi,
        who: Principal,
        *,
        accept: bool = False,
        partial: bool = False,
        careful: bool = False,
    ) -> ImportedApi:
        """Store a provider and its tools, as far as a person need not look at them first; returns it with the outcome.

        Args:
            imported: What an importer has made.
            who: The principal that acts, in its realm.
            accept: Take over also changes that callers would have to look at.
            partial: The tools are some of the provider's, so that the others are not gone.
            careful: Refuse an offer that lacks most of the provider's tools.
        """
        partial = partial or imported.is_partial
        return await self._parts.adoptions.adopt(imported, who, accept=accept, partial=partial, careful=careful)
