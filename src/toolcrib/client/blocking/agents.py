"""The synchronous operations on agents.

Written by `python -m tools.rest_client`.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from toolcrib.client.answer_parts import AgentView
from toolcrib.client.answers import AccountPage, AgentAnswer, AgentPage, AgentTools, Count, FragmentPage, RemovalView
from toolcrib.client.groups import SyncApi
from toolcrib.client.operations import agents as asynchronous
from toolcrib.contracts import (
    AgentDefinition,
    FileInput,
    JsonObject,
    PromptFragment,
    ReturnedCall,
    ServiceAccount,
    StreamEvent,
)


class AgentsApi(SyncApi[asynchronous.AsyncAgentsApi]):
    """The operations on agents."""

    def execute(
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
        return self._loop.run(
            self._api.execute,
            name,
            message=message,
            params=params,
            context=context,
            files=files,
            conversation_id=conversation_id,
            session_id=session_id,
            run_id=run_id,
            tool_results=tool_results,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )

    def execute_durably(
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
        return self._loop.run(
            self._api.execute_durably,
            name,
            message=message,
            params=params,
            context=context,
            files=files,
            conversation_id=conversation_id,
            session_id=session_id,
            run_id=run_id,
            tool_results=tool_results,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
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
    ) -> Iterator[StreamEvent]:
        """The same as server-sent events; a client that is disconnected continues at `/executions/{run_id}/stream`.

        The header `Location` names that path. The run continues after the client has left. A client that sends results
        to a run that it follows sends the id of its last message as `Last-Event-ID`, and gets the messages after it.
        """
        return self._loop.iterate(
            self._api.execute_streaming,
            name,
            message=message,
            params=params,
            context=context,
            files=files,
            conversation_id=conversation_id,
            session_id=session_id,
            run_id=run_id,
            tool_results=tool_results,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )

    def get_execution(self, name: str, run_id: str) -> AgentAnswer:
        """The state of an execution, whether it is active, waits or has ended."""
        return self._loop.run(self._api.get_execution, name, run_id)

    def continue_conversation(
        self,
        conversation_id: str,
        *,
        message: str,
        context: JsonObject | None = None,
        files: Sequence[FileInput | JsonObject] | None = None,
        idempotency_key: str | None = None,
    ) -> AgentAnswer:
        """Send the next message of a conversation; responds when the agent has answered or waits."""
        return self._loop.run(
            self._api.continue_conversation,
            conversation_id,
            message=message,
            context=context,
            files=files,
            idempotency_key=idempotency_key,
        )

    def list(
        self,
        *,
        q: str | None = None,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> AgentPage:
        """Agents by name, page by page; `q` is looked for in names, titles, descriptions and tags."""
        return self._loop.run(self._api.list, q=q, filter=filter, sort=sort, after=after, limit=limit)

    def each(
        self, *, q: str | None = None, filter: str | None = None, sort: str | None = None, limit: int | None = None
    ) -> Iterator[AgentView]:
        """Agents by name, page by page; `q` is looked for in names, titles, descriptions and tags.

        All of them: the next page is read when it is needed.
        """
        return self._loop.iterate(self._api.each, q=q, filter=filter, sort=sort, limit=limit)

    def create(self, definition: AgentDefinition | JsonObject, *, idempotency_key: str | None = None) -> AgentView:
        """Store the first revision of a new agent."""
        return self._loop.run(self._api.create, definition, idempotency_key=idempotency_key)

    def query(
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
        return self._loop.run(
            self._api.query,
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
            idempotency_key=idempotency_key,
        )

    def count(
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
        return self._loop.run(
            self._api.count,
            text=text,
            category=category,
            tag=tag,
            status=status,
            enabled=enabled,
            model=model,
            filter=filter,
        )

    def get(self, name: str) -> AgentView:
        """An agent as a request without a version gets it; the header `ETag` names the revision."""
        return self._loop.run(self._api.get, name)

    def replace(
        self, name: str, definition: AgentDefinition | JsonObject, *, if_match: int | str | None = None
    ) -> AgentView:
        """Store a new revision; with `If-Match`, only if there is no newer one."""
        return self._loop.run(self._api.replace, name, definition, if_match=if_match)

    def change(self, name: str, changes: JsonObject, *, if_match: int | str | None = None) -> AgentView:
        """Store a new revision that differs by a JSON Merge Patch (RFC 7396).

        With `If-Match`, the change is refused if there is a newer revision; without it, if one was made
        while the patch was applied.
        """
        return self._loop.run(self._api.change, name, changes, if_match=if_match)

    def remove(self, name: str) -> RemovalView:
        """Remove an agent from the catalogue. Active runs keep their revision; conversations remain readable."""
        return self._loop.run(self._api.remove, name)

    def list_tools(self, name: str, *, message: str | None = None) -> AgentTools:
        """The tools that the agent would have now: those it sees, those it can find, and what is left out and why.

        An agent that acts as an account may have tools by a pattern that the caller may not see; those are left out.
        """
        return self._loop.run(self._api.list_tools, name, message=message)

    def query_fragments(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> FragmentPage:
        """The fragments that a filter means, page by page."""
        return self._loop.run(
            self._api.query_fragments,
            filter=filter,
            sort=sort,
            after=after,
            limit=limit,
            idempotency_key=idempotency_key,
        )

    def count_fragments(self, *, filter: str | None = None) -> Count:
        """How many fragments a filter means, of those that the caller may see."""
        return self._loop.run(self._api.count_fragments, filter=filter)

    def list_fragments(
        self, *, filter: str | None = None, sort: str | None = None, after: str | None = None, limit: int | None = None
    ) -> FragmentPage:
        """The fragments that the caller may read."""
        return self._loop.run(self._api.list_fragments, filter=filter, sort=sort, after=after, limit=limit)

    def each_fragments(
        self, *, filter: str | None = None, sort: str | None = None, limit: int | None = None
    ) -> Iterator[PromptFragment]:
        """The fragments that the caller may read.

        All of them: the next page is read when it is needed.
        """
        return self._loop.iterate(self._api.each_fragments, filter=filter, sort=sort, limit=limit)

    def get_fragment(self, name: str) -> PromptFragment:
        """The fragment in its newest revision, which the header `ETag` names."""
        return self._loop.run(self._api.get_fragment, name)

    def save_fragment(
        self, name: str, *, text: str, description: str | None = None, if_match: int | str | None = None
    ) -> PromptFragment:
        """Store a new revision, which every run that begins from now on has."""
        return self._loop.run(self._api.save_fragment, name, text=text, description=description, if_match=if_match)

    def remove_fragment(self, name: str) -> None:
        """Take a fragment out; agents that name it cannot be run until they do not, or it is saved again."""
        return self._loop.run(self._api.remove_fragment, name)

    def query_accounts(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> AccountPage:
        """The accounts that a filter means, page by page."""
        return self._loop.run(
            self._api.query_accounts,
            filter=filter,
            sort=sort,
            after=after,
            limit=limit,
            idempotency_key=idempotency_key,
        )

    def count_accounts(self, *, filter: str | None = None) -> Count:
        """How many accounts a filter means, of those that the caller may see."""
        return self._loop.run(self._api.count_accounts, filter=filter)

    def list_accounts(
        self, *, filter: str | None = None, sort: str | None = None, after: str | None = None, limit: int | None = None
    ) -> AccountPage:
        """The accounts that the caller may read."""
        return self._loop.run(self._api.list_accounts, filter=filter, sort=sort, after=after, limit=limit)

    def each_accounts(
        self, *, filter: str | None = None, sort: str | None = None, limit: int | None = None
    ) -> Iterator[ServiceAccount]:
        """The accounts that the caller may read.

        All of them: the next page is read when it is needed.
        """
        return self._loop.iterate(self._api.each_accounts, filter=filter, sort=sort, limit=limit)

    def get_account(self, name: str) -> ServiceAccount:
        """The account in its newest revision, which the header `ETag` names."""
        return self._loop.run(self._api.get_account, name)

    def save_account(
        self,
        name: str,
        *,
        description: str | None = None,
        grants: Sequence[str] | None = None,
        enabled: bool | None = None,
        if_match: int | str | None = None,
    ) -> ServiceAccount:
        """Store an account, or change it; also for runs that have begun."""
        return self._loop.run(
            self._api.save_account, name, description=description, grants=grants, enabled=enabled, if_match=if_match
        )

    def remove_account(self, name: str) -> None:
        """Take an account out; agents that act as it can do nothing any more."""
        return self._loop.run(self._api.remove_account, name)
