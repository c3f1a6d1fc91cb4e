"""The operations on agents.

Written by `python -m tools.rest_client`.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Literal

from toolcrib.client.answer_parts import AgentView
from toolcrib.client.answers import AccountPage, AgentAnswer, AgentPage, AgentTools, Count, FragmentPage, RemovalView
from toolcrib.client.groups import AsyncApi
from toolcrib.client.transport import ApiRequest, given
from toolcrib.contracts import (
    AgentDefinition,
    FileInput,
    JsonObject,
    PromptFragment,
    ReturnedCall,
    ServiceAccount,
    StreamEvent,
)


class AsyncAgentsApi(AsyncApi):
    """The operations on agents."""

    async def execute(
        self,
        name: str,
        *,
        message: str | None = None,
        params: JsonObject | None = None,
        context: JsonObject | None = None,
        files: Sequence[FileInput | JsonObject] | None = None,
        conversation_id: str | None = None,
        session_id: str | None = None,
        run_id: str | None = None,
        tool_results: Sequence[ReturnedCall | JsonObject] | None = None,
        dry_run: bool | None = None,
        idempotency_key: str | None = None,
    ) -> AgentAnswer:
        """Ask an agent, or send client results; responds when the run has ended or waits, or at once if it is durable."""
        return await self._transport.send(
            AgentAnswer,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/agents/{name}/execute",
                place={"name": name},
                body=given(
                    message=message,
                    params=params,
                    context=context,
                    files=files,
                    conversation_id=conversation_id,
                    session_id=session_id,
                    run_id=run_id,
                    tool_results=tool_results,
                    dry_run=dry_run,
                ),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def execute_durably(
        self,
        name: str,
        *,
        message: str | None = None,
        params: JsonObject | None = None,
        context: JsonObject | None = None,
        files: Sequence[FileInput | JsonObject] | None = None,
        conversation_id: str | None = None,
        session_id: str | None = None,
        run_id: str | None = None,
        tool_results: Sequence[ReturnedCall | JsonObject] | None = None,
        dry_run: bool | None = None,
        idempotency_key: str | None = None,
    ) -> AgentAnswer:
        """The same, but responds at once: the run is in the journal, and continues even if this server stops."""
        return await self._transport.send(
            AgentAnswer,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/agents/{name}/execute/durable",
                place={"name": name},
                body=given(
                    message=message,
                    params=params,
                    context=context,
                    files=files,
                    conversation_id=conversation_id,
                    session_id=session_id,
                    run_id=run_id,
                    tool_results=tool_results,
                    dry_run=dry_run,
                ),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    def execute_streaming(
        self,
        name: str,
        *,
        message: str | None = None,
        params: JsonObject | None = None,
        context: JsonObject | None = None,
        files: Sequence[FileInput | JsonObject] | None = None,
        conversation_id: str | None = None,
        session_id: str | None = None,
        run_id: str | None = None,
        tool_results: Sequence[ReturnedCall | JsonObject] | None = None,
        dry_run: bool | None = None,
        idempotency_key: str | None = None,
    ) -> AsyncGenerator[StreamEvent]:
        """The same as server-sent events; a client that is disconnected continues at `/executions/{run_id}/stream`.

        The header `Location` names that path. The run continues after the client has left. A client that sends results
        to a run that it follows sends the id of its last message as `Last-Event-ID`, and gets the messages after it.
        """
        return self._transport.stream(
            StreamEvent,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/agents/{name}/execute/stream",
                place={"name": name},
                body=given(
                    message=message,
                    params=params,
                    context=context,
                    files=files,
                    conversation_id=conversation_id,
                    session_id=session_id,
                    run_id=run_id,
                    tool_results=tool_results,
                    dry_run=dry_run,
                ),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def get_execution(self, name: str, run_id: str) -> AgentAnswer:
        """The state of an execution, whether it is active, waits or has ended."""
        return await self._transport.send(
            AgentAnswer,
            ApiRequest(
                method="GET",
                path="/api/v1/ai/agents/{name}/executions/{run_id}",
                place={"name": name, "run_id": run_id},
            ),
        )

    async def continue_conversation(
        self,
        conversation_id: str,
        *,
        message: str,
        context: JsonObject | None = None,
        files: Sequence[FileInput | JsonObject] | None = None,
        idempotency_key: str | None = None,
    ) -> AgentAnswer:
        """Send the next message of a conversation; responds when the agent has answered or waits."""
        return await self._transport.send(
            AgentAnswer,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/conversations/{conversation_id}/continue",
                place={"conversation_id": conversation_id},
                body=given(message=message, context=context, files=files),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def list(
        self,
        *,
        q: str | None = None,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> AgentPage:
        """Agents by name, page by page; `q` is looked for in names, titles, descriptions and tags."""
        return await self._transport.send(
            AgentPage,
            ApiRequest(
                method="GET",
                path="/api/v1/ai/agents",
                query=given(q=q, filter=filter, sort=sort, after=after, limit=limit),
            ),
        )

    def each(
        self, *, q: str | None = None, filter: str | None = None, sort: str | None = None, limit: int | None = None
    ) -> AsyncGenerator[AgentView]:
        """Agents by name, page by page; `q` is looked for in names, titles, descriptions and tags.

        All of them: the next page is read when it is needed.
        """
        return self._transport.each(
            AgentPage,
            ApiRequest(method="GET", path="/api/v1/ai/agents", query=given(q=q, filter=filter, sort=sort, limit=limit)),
            "after",
        )

    async def create(
        self, definition: AgentDefinition | JsonObject, *, idempotency_key: str | None = None
    ) -> AgentView:
        """Store the first revision of a new agent."""
        return await self._transport.send(
            AgentView,
            ApiRequest(
                method="POST", path="/api/v1/ai/agents", body=definition, headers={"Idempotency-Key": idempotency_key}
            ),
        )

    async def query(
        self,
        *,
        text: str | None = None,
        category: str | None = None,
        tag: str | None = None,
        status: Literal["draft", "active", "disabled"] | None = None,
        enabled: bool | None = None,
        model: str | None = None,
        filter: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        sort: str | None = None,
        idempotency_key: str | None = None,
    ) -> AgentPage:
        """Agents that fit, by name, page by page."""
        return await self._transport.send(
            AgentPage,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/agents/query",
                body=given(
                    text=text,
                    category=category,
                    tag=tag,
                    status=status,
                    enabled=enabled,
                    model=model,
                    filter=filter,
                    after=after,
                    limit=limit,
                    sort=sort,
                ),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def count(
        self,
        *,
        text: str | None = None,
        category: str | None = None,
        tag: str | None = None,
        status: Literal["draft", "active", "disabled"] | None = None,
        enabled: bool | None = None,
        model: str | None = None,
        filter: str | None = None,
    ) -> Count:
        """How many agents fit, of those that the caller may see."""
        return await self._transport.send(
            Count,
            ApiRequest(
                method="GET",
                path="/api/v1/ai/agents/count",
                query=given(
                    text=text, category=category, tag=tag, status=status, enabled=enabled, model=model, filter=filter
                ),
            ),
        )

    async def get(self, name: str) -> AgentView:
        """An agent as a request without a version gets it; the header `ETag` names the revision."""
        return await self._transport.send(
            AgentView, ApiRequest(method="GET", path="/api/v1/ai/agents/{name}", place={"name": name})
        )

    async def replace(
        self, name: str, definition: AgentDefinition | JsonObject, *, if_match: int | str | None = None
    ) -> AgentView:
        """Store a new revision; with `If-Match`, only if there is no newer one."""
        return await self._transport.send(
            AgentView,
            ApiRequest(
                method="PUT",
                path="/api/v1/ai/agents/{name}",
                place={"name": name},
                body=definition,
                headers={"If-Match": if_match},
            ),
        )

    async def change(self, name: str, changes: JsonObject, *, if_match: int | str | None = None) -> AgentView:
        """Store a new revision that differs by a JSON Merge Patch (RFC 7396).

        With `If-Match`, the change is refused if there is a newer revision; without it, if one was made
        while the patch was applied.
        """
        return await self._transport.send(
            AgentView,
            ApiRequest(
                method="PATCH",
                path="/api/v1/ai/agents/{name}",
                place={"name": name},
                body=changes,
                headers={"If-Match": if_match},
            ),
        )

    async def remove(self, name: str) -> RemovalView:
        """Remove an agent from the catalogue. Active runs keep their revision; conversations remain readable."""
        return await self._transport.send(
            RemovalView, ApiRequest(method="DELETE", path="/api/v1/ai/agents/{name}", place={"name": name})
        )

    async def list_tools(self, name: str, *, message: str | None = None) -> AgentTools:
        """The tools that the agent would have now: those it sees, those it can find, and what is left out and why.

        An agent that acts as an account may have tools by a pattern that the caller may not see; those are left out.
        """
        return await self._transport.send(
            AgentTools,
            ApiRequest(
                method="GET", path="/api/v1/ai/agents/{name}/tools", place={"name": name}, query=given(message=message)
            ),
        )

    async def query_fragments(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> FragmentPage:
        """The fragments that a filter means, page by page."""
        return await self._transport.send(
            FragmentPage,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/fragments/query",
                body=given(filter=filter, sort=sort, after=after, limit=limit),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def count_fragments(self, *, filter: str | None = None) -> Count:
        """How many fragments a filter means, of those that the caller may see."""
        return await self._transport.send(
            Count, ApiRequest(method="GET", path="/api/v1/ai/fragments/count", query=given(filter=filter))
        )

    async def list_fragments(
        self, *, filter: str | None = None, sort: str | None = None, after: str | None = None, limit: int | None = None
    ) -> FragmentPage:
        """The fragments that the caller may read."""
        return await self._transport.send(
            FragmentPage,
            ApiRequest(
                method="GET",
                path="/api/v1/ai/fragments",
                query=given(filter=filter, sort=sort, after=after, limit=limit),
            ),
        )

    def each_fragments(
        self, *, filter: str | None = None, sort: str | None = None, limit: int | None = None
    ) -> AsyncGenerator[PromptFragment]:
        """The fragments that the caller may read.

        All of them: the next page is read when it is needed.
        """
        return self._transport.each(
            FragmentPage,
            ApiRequest(method="GET", path="/api/v1/ai/fragments", query=given(filter=filter, sort=sort, limit=limit)),
            "after",
        )

    async def get_fragment(self, name: str) -> PromptFragment:
        """The fragment in its newest revision, which the header `ETag` names."""
        return await self._transport.send(
            PromptFragment, ApiRequest(method="GET", path="/api/v1/ai/fragments/{name}", place={"name": name})
        )

    async def save_fragment(
        self, name: str, *, text: str, description: str | None = None, if_match: int | str | None = None
    ) -> PromptFragment:
        """Store a new revision, which every run that begins from now on has."""
        return await self._transport.send(
            PromptFragment,
            ApiRequest(
                method="PUT",
                path="/api/v1/ai/fragments/{name}",
                place={"name": name},
                body=given(name=name, text=text, description=description),
                headers={"If-Match": if_match},
            ),
        )

    async def remove_fragment(self, name: str) -> None:
        """Take a fragment out; agents that name it cannot be run until they do not, or it is saved again."""
        await self._transport.send(
            None, ApiRequest(method="DELETE", path="/api/v1/ai/fragments/{name}", place={"name": name})
        )

    async def query_accounts(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> AccountPage:
        """The accounts that a filter means, page by page."""
        return await self._transport.send(
            AccountPage,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/accounts/query",
                body=given(filter=filter, sort=sort, after=after, limit=limit),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def count_accounts(self, *, filter: str | None = None) -> Count:
        """How many accounts a filter means, of those that the caller may see."""
        return await self._transport.send(
            Count, ApiRequest(method="GET", path="/api/v1/ai/accounts/count", query=given(filter=filter))
        )

    async def list_accounts(
        self, *, filter: str | None = None, sort: str | None = None, after: str | None = None, limit: int | None = None
    ) -> AccountPage:
        """The accounts that the caller may read."""
        return await self._transport.send(
            AccountPage,
            ApiRequest(
                method="GET",
                path="/api/v1/ai/accounts",
                query=given(filter=filter, sort=sort, after=after, limit=limit),
            ),
        )

    def each_accounts(
        self, *, filter: str | None = None, sort: str | None = None, limit: int | None = None
    ) -> AsyncGenerator[ServiceAccount]:
        """The accounts that the caller may read.

        All of them: the next page is read when it is needed.
        """
        return self._transport.each(
            AccountPage,
            ApiRequest(method="GET", path="/api/v1/ai/accounts", query=given(filter=filter, sort=sort, limit=limit)),
            "after",
        )

    async def get_account(self, name: str) -> ServiceAccount:
        """The account in its newest revision, which the header `ETag` names."""
        return await self._transport.send(
            ServiceAccount, ApiRequest(method="GET", path="/api/v1/ai/accounts/{name}", place={"name": name})
        )

    async def save_account(
        self,
        name: str,
        *,
        description: str | None = None,
        grants: Sequence[str] | None = None,
        enabled: bool | None = None,
        if_match: int | str | None = None,
    ) -> ServiceAccount:
        """Store an account, or change it; also for runs that have begun."""
        return await self._transport.send(
            ServiceAccount,
            ApiRequest(
                method="PUT",
                path="/api/v1/ai/accounts/{name}",
                place={"name": name},
                body=given(name=name, description=description, grants=grants, enabled=enabled),
                headers={"If-Match": if_match},
            ),
        )

    async def remove_account(self, name: str) -> None:
        """Take an account out; agents that act as it can do nothing any more."""
        await self._transport.send(
            None, ApiRequest(method="DELETE", path="/api/v1/ai/accounts/{name}", place={"name": name})
        )
