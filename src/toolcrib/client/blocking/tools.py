"""The synchronous operations on tools.

Written by `python -m tools.rest_client`.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Literal

from toolcrib.client.answer_parts import AiToolView, EnvelopeView, ToolView
from toolcrib.client.answers import (
    AiToolPage,
    BaselineList,
    Count,
    ImportView,
    InvokeView,
    RunAccepted,
    ToolPage,
    ToolRevisions,
    Validity,
)
from toolcrib.client.groups import SyncApi
from toolcrib.client.operations import tools as asynchronous
from toolcrib.contracts import Contract, ImpactReport, JsonObject, ToolDefinition, ToolReview
from toolcrib.contracts.providers.tool_access import ToolAccess


class ToolsApi(SyncApi[asynchronous.AsyncToolsApi]):
    """The operations on tools."""

    def invoke(
        self,
        name: str,
        *,
        params: JsonObject | None = None,
        conversation_id: str | None = None,
        session_id: str | None = None,
        dry_run: bool | None = None,
        wait: bool | None = None,
        idempotency_key: str | None = None,
    ) -> InvokeView:
        """Run a tool; responds when the run has ended or waits, or at once with `wait: false`, in the same shape.

        If this server lacks the tool's Python function, a worker drives the run; without one, the run stays queued and
        `meta.warnings` says why.
        """
        return self._loop.run(
            self._api.invoke,
            name,
            params=params,
            conversation_id=conversation_id,
            session_id=session_id,
            dry_run=dry_run,
            wait=wait,
            idempotency_key=idempotency_key,
        )

    def invoke_named(
        self,
        *,
        tool: str,
        params: JsonObject | None = None,
        conversation_id: str | None = None,
        session_id: str | None = None,
        dry_run: bool | None = None,
        wait: bool | None = None,
        idempotency_key: str | None = None,
    ) -> InvokeView:
        """Run the tool that the body names."""
        return self._loop.run(
            self._api.invoke_named,
            tool=tool,
            params=params,
            conversation_id=conversation_id,
            session_id=session_id,
            dry_run=dry_run,
            wait=wait,
            idempotency_key=idempotency_key,
        )

    def execute(
        self,
        name: str,
        *,
        params: JsonObject | None = None,
        conversation_id: str | None = None,
        session_id: str | None = None,
        dry_run: bool | None = None,
        idempotency_key: str | None = None,
    ) -> EnvelopeView | RunAccepted:
        """Make one call and return its envelope; for a call that waits for a person or for a worker, its run."""
        return self._loop.run(
            self._api.execute,
            name,
            params=params,
            conversation_id=conversation_id,
            session_id=session_id,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )

    def validate_call(
        self,
        name: str,
        *,
        params: JsonObject | None = None,
        conversation_id: str | None = None,
        session_id: str | None = None,
        dry_run: bool | None = None,
        idempotency_key: str | None = None,
    ) -> Validity:
        """Hold arguments against schema and policy; nothing runs."""
        return self._loop.run(
            self._api.validate_call,
            name,
            params=params,
            conversation_id=conversation_id,
            session_id=session_id,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )

    def query_ai(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> AiToolPage:
        """The ai-tools that a filter means, page by page."""
        return self._loop.run(
            self._api.query_ai, filter=filter, sort=sort, after=after, limit=limit, idempotency_key=idempotency_key
        )

    def count_ai(self, *, filter: str | None = None) -> Count:
        """How many ai-tools a filter means, of those that the caller may see."""
        return self._loop.run(self._api.count_ai, filter=filter)

    def list_ai(
        self,
        *,
        type: Literal["simple", "composite", "agentic"] | None = None,
        status: Literal["active", "deprecated", "blocked", "all"] | None = None,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> AiToolPage:
        """Tools of every type by name, page by page.

        Deprecated and blocked tools are listed only if `status` asks for them: `deprecated`, `blocked`, or `all`, or if
        there is a `filter`.
        """
        return self._loop.run(
            self._api.list_ai, type=type, status=status, filter=filter, sort=sort, after=after, limit=limit
        )

    def each_ai(
        self,
        *,
        type: Literal["simple", "composite", "agentic"] | None = None,
        status: Literal["active", "deprecated", "blocked", "all"] | None = None,
        filter: str | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Iterator[AiToolView]:
        """Tools of every type by name, page by page.

        All of them: the next page is read when it is needed.
        """
        return self._loop.iterate(self._api.each_ai, type=type, status=status, filter=filter, sort=sort, limit=limit)

    def export_ai(self, name: str, form: str) -> JsonObject:
        """A tool of any type in the shape of another system."""
        return self._loop.run(self._api.export_ai, name, form)

    def list_generated(self, *, after: str | None = None, limit: int | None = None) -> ToolPage:
        """Tools that were made of entities, by name, page by page."""
        return self._loop.run(self._api.list_generated, after=after, limit=limit)

    def each_generated(self, *, limit: int | None = None) -> Iterator[ToolView]:
        """Tools that were made of entities, by name, page by page.

        All of them: the next page is read when it is needed.
        """
        return self._loop.iterate(self._api.each_generated, limit=limit)

    def set_status(
        self,
        name: str,
        *,
        status: Literal["active", "deprecated", "blocked"],
        version: str | None = None,
        message: str | None = None,
        sunset: datetime | None = None,
        replacement: str | None = None,
        idempotency_key: str | None = None,
    ) -> ToolView:
        """Deprecate, block or reactivate a version."""
        return self._loop.run(
            self._api.set_status,
            name,
            status=status,
            version=version,
            message=message,
            sunset=sunset,
            replacement=replacement,
            idempotency_key=idempotency_key,
        )

    def get_impact(self, name: str, *, version: str | None = None) -> ImpactReport:
        """Everything that is bound to a tool, directly or through others, and the active runs that have pinned it.

        If its provider proposes a change, the verdicts show its effect. For callers who may change the tool.
        """
        return self._loop.run(self._api.get_impact, name, version=version)

    def review(self, name: str) -> ToolReview:
        """An imported tool as it is and as its provider proposes it, with the difference."""
        return self._loop.run(self._api.review, name)

    def accept_change(self, name: str, *, idempotency_key: str | None = None) -> ToolView:
        """Adopt the change that the provider proposes as a new revision; a tool that was blocked for it is active again."""
        return self._loop.run(self._api.accept_change, name, idempotency_key=idempotency_key)

    def reject_change(self, name: str, *, idempotency_key: str | None = None) -> ToolView:
        """Reject the change that the provider proposes. A tool that was blocked for it stays blocked."""
        return self._loop.run(self._api.reject_change, name, idempotency_key=idempotency_key)

    def list_proposals(self) -> BaselineList:
        """The tools with proposed changes that wait for a person, by name."""
        return self._loop.run(self._api.list_proposals)

    def import_mcp(
        self,
        *,
        name: str,
        accept: bool | None = None,
        url: str | None = None,
        transport: Literal["streamable_http", "sse", "stdio"] | None = None,
        command: Sequence[str] | None = None,
        environment: JsonObject | None = None,
        auth: Contract | JsonObject | None = None,
        idempotency_key: str | None = None,
    ) -> ImportView:
        """Import an MCP server. Each tool, resource, template and prompt that it offers becomes a tool.

        A program has to be allowed by TOOLCRIB_MCP_COMMANDS.
        """
        return self._loop.run(
            self._api.import_mcp,
            name=name,
            accept=accept,
            url=url,
            transport=transport,
            command=command,
            environment=environment,
            auth=auth,
            idempotency_key=idempotency_key,
        )

    def import_graphql(
        self,
        *,
        name: str,
        url: str,
        accept: bool | None = None,
        schema_text: str | None = None,
        auth: Contract | JsonObject | None = None,
        depth: int | None = None,
        cost: int | None = None,
        idempotency_key: str | None = None,
    ) -> ImportView:
        """Import a GraphQL API. Each field of its query and mutation types becomes a tool."""
        return self._loop.run(
            self._api.import_graphql,
            name=name,
            url=url,
            accept=accept,
            schema_text=schema_text,
            auth=auth,
            depth=depth,
            cost=cost,
            idempotency_key=idempotency_key,
        )

    def import_a2a(
        self,
        *,
        name: str,
        url: str,
        accept: bool | None = None,
        auth: Contract | JsonObject | None = None,
        idempotency_key: str | None = None,
    ) -> ImportView:
        """Import an agent that speaks A2A. It becomes one tool, which takes messages."""
        return self._loop.run(
            self._api.import_a2a, name=name, url=url, accept=accept, auth=auth, idempotency_key=idempotency_key
        )

    def import_database(
        self,
        *,
        name: str,
        url: str,
        accept: bool | None = None,
        table_schema: str | None = None,
        tables: Sequence[str] | None = None,
        views: bool | None = None,
        options: JsonObject | None = None,
        idempotency_key: str | None = None,
    ) -> ImportView:
        """Import a database. Each table becomes tools: search, get, create, update, delete, count."""
        return self._loop.run(
            self._api.import_database,
            name=name,
            url=url,
            accept=accept,
            table_schema=table_schema,
            tables=tables,
            views=views,
            options=options,
            idempotency_key=idempotency_key,
        )

    def query(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> ToolPage:
        """The tools that a filter means, page by page."""
        return self._loop.run(
            self._api.query, filter=filter, sort=sort, after=after, limit=limit, idempotency_key=idempotency_key
        )

    def count(self, *, filter: str | None = None) -> Count:
        """How many tools a filter means, of those that the caller may see."""
        return self._loop.run(self._api.count, filter=filter)

    def list(
        self,
        *,
        kind: Literal[
            "python",
            "http",
            "mcp",
            "grpc",
            "graphql",
            "a2a",
            "entity",
            "code",
            "composite",
            "agentic",
            "agent",
            "workflow",
            "plugin",
        ]
        | None = None,
        category: str | None = None,
        tag: str | None = None,
        status: Literal["active", "deprecated", "blocked", "all"] | None = None,
        q: str | None = None,
        search: str | None = None,
        access: bool | None = None,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> ToolPage:
        """Tools by name, page by page; `q` is looked for in names, titles, descriptions and tags.

        With `search`, the tools that do what it says instead, best first and on one page. Deprecated and blocked tools are
        listed only if `status` asks for them: `deprecated`, `blocked`, or `all`, or if there is a `filter`.
        """
        return self._loop.run(
            self._api.list,
            kind=kind,
            category=category,
            tag=tag,
            status=status,
            q=q,
            search=search,
            access=access,
            filter=filter,
            sort=sort,
            after=after,
            limit=limit,
        )

    def each(
        self,
        *,
        kind: Literal[
            "python",
            "http",
            "mcp",
            "grpc",
            "graphql",
            "a2a",
            "entity",
            "code",
            "composite",
            "agentic",
            "agent",
            "workflow",
            "plugin",
        ]
        | None = None,
        category: str | None = None,
        tag: str | None = None,
        status: Literal["active", "deprecated", "blocked", "all"] | None = None,
        q: str | None = None,
        search: str | None = None,
        access: bool | None = None,
        filter: str | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Iterator[ToolView]:
        """Tools by name, page by page; `q` is looked for in names, titles, descriptions and tags.

        All of them: the next page is read when it is needed.
        """
        return self._loop.iterate(
            self._api.each,
            kind=kind,
            category=category,
            tag=tag,
            status=status,
            q=q,
            search=search,
            access=access,
            filter=filter,
            sort=sort,
            limit=limit,
        )

    def create(self, definition: ToolDefinition | JsonObject, *, idempotency_key: str | None = None) -> ToolView:
        """Store the first revision of a new tool."""
        return self._loop.run(self._api.create, definition, idempotency_key=idempotency_key)

    def validate_definition(self, definition: JsonObject, *, idempotency_key: str | None = None) -> Validity:
        """Whether a definition, or the flat form of an agentic tool, would be stored; nothing is."""
        return self._loop.run(self._api.validate_definition, definition, idempotency_key=idempotency_key)

    def import_document(
        self,
        *,
        name: str,
        document: JsonObject | str | None = None,
        url: str | None = None,
        descriptors: str | None = None,
        base_url: str | None = None,
        auth: Contract | JsonObject | None = None,
        overrides: JsonObject | None = None,
        bounds: JsonObject | None = None,
        accept: bool | None = None,
        idempotency_key: str | None = None,
    ) -> ImportView:
        """Make a provider and one tool per operation of an OpenAPI document or gRPC server."""
        return self._loop.run(
            self._api.import_document,
            name=name,
            document=document,
            url=url,
            descriptors=descriptors,
            base_url=base_url,
            auth=auth,
            overrides=overrides,
            bounds=bounds,
            accept=accept,
            idempotency_key=idempotency_key,
        )

    def get(self, name: str, *, access: bool | None = None) -> ToolView:
        """A tool as a call without a version gets it; the header `ETag` names the revision."""
        return self._loop.run(self._api.get, name, access=access)

    def replace(
        self, name: str, definition: ToolDefinition | JsonObject, *, if_match: int | str | None = None
    ) -> ToolView:
        """Store a new revision; the content of the current one is that revision."""
        return self._loop.run(self._api.replace, name, definition, if_match=if_match)

    def change(self, name: str, changes: JsonObject, *, if_match: int | str | None = None) -> ToolView:
        """Store a new revision that differs by a JSON Merge Patch (RFC 7396): what is null goes, what is given replaces.

        With `If-Match`, the change is refused if there is a newer revision; without it, if one was made
        while the patch was applied.
        """
        return self._loop.run(self._api.change, name, changes, if_match=if_match)

    def remove(self, name: str) -> None:
        """Remove a tool from the catalogue; active runs keep their revision."""
        return self._loop.run(self._api.remove, name)

    def list_revisions(self, name: str) -> ToolRevisions:
        """All revisions of a tool, oldest first."""
        return self._loop.run(self._api.list_revisions, name)

    def get_access(self, name: str) -> ToolAccess:
        """What stands between the caller and the system behind a tool: its sign-in, and where its secrets come from."""
        return self._loop.run(self._api.get_access, name)
