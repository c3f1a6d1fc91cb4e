"""The synchronous operations on agentic tools.

Written by `python -m tools.rest_client`.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from toolcrib.client.answer_parts import AgenticView, ExecutionView
from toolcrib.client.answers import AgenticPage, Count, ExecutionDetail, ExecutionPage, PromptHistory, RemovalView
from toolcrib.client.groups import SyncApi
from toolcrib.client.operations import agentic_tools as asynchronous
from toolcrib.contracts import (
    AgenticContext,
    AgenticStep,
    AllocatedTool,
    DriftReport,
    Json,
    JsonObject,
    Limits,
    LLMConfig,
    PromptDifference,
    PromptTest,
    TextProposal,
)
from toolcrib.contracts.tools.rendered_prompts import PromptPlaceholders, RenderedPrompt


class AgenticToolsApi(SyncApi[asynchronous.AsyncAgenticToolsApi]):
    """The operations on agentic tools."""

    def query(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> AgenticPage:
        """The agentic-tools that a filter means, page by page."""
        return self._loop.run(
            self._api.query, filter=filter, sort=sort, after=after, limit=limit, idempotency_key=idempotency_key
        )

    def count(self, *, filter: str | None = None) -> Count:
        """How many agentic-tools a filter means, of those that the caller may see."""
        return self._loop.run(self._api.count, filter=filter)

    def list(
        self,
        *,
        mode: Literal["deterministic", "agentic"] | None = None,
        status: Literal["draft", "active", "disabled"] | None = None,
        q: str | None = None,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> AgenticPage:
        """Agentic tools by name, page by page; `q` is looked for in names and descriptions."""
        return self._loop.run(
            self._api.list, mode=mode, status=status, q=q, filter=filter, sort=sort, after=after, limit=limit
        )

    def each(
        self,
        *,
        mode: Literal["deterministic", "agentic"] | None = None,
        status: Literal["draft", "active", "disabled"] | None = None,
        q: str | None = None,
        filter: str | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Iterator[AgenticView]:
        """Agentic tools by name, page by page; `q` is looked for in names and descriptions.

        All of them: the next page is read when it is needed.
        """
        return self._loop.iterate(self._api.each, mode=mode, status=status, q=q, filter=filter, sort=sort, limit=limit)

    def create(self, definition: JsonObject, *, idempotency_key: str | None = None) -> AgenticView:
        """Store the first revision of a new tool; without a prompt it gets the default one."""
        return self._loop.run(self._api.create, definition, idempotency_key=idempotency_key)

    def get(self, name: str) -> AgenticView:
        """A tool as a call without a version gets it; the header `ETag` names the revision."""
        return self._loop.run(self._api.get, name)

    def change(self, name: str, changes: JsonObject, *, if_match: int | str | None = None) -> AgenticView:
        """Store a new revision that differs by a JSON Merge Patch (RFC 7396); a prompt that is null becomes the default.

        With `If-Match`, the change is refused if there is a newer revision; without it, if one was made
        while the patch was applied.
        """
        return self._loop.run(self._api.change, name, changes, if_match=if_match)

    def remove(self, name: str) -> RemovalView:
        """Remove a tool from the catalogue. Active runs keep their revision; saving it again restores it."""
        return self._loop.run(self._api.remove, name)

    def test_unsaved_prompt(
        self, *, params: JsonObject, definition: JsonObject, idempotency_key: str | None = None
    ) -> PromptTest:
        """Test the prompt of a tool that is not saved; without a prompt, the default one. See `test-prompt` of a tool."""
        return self._loop.run(
            self._api.test_unsaved_prompt, params=params, definition=definition, idempotency_key=idempotency_key
        )

    def render_unsaved_prompt(
        self, *, params: JsonObject, definition: JsonObject, idempotency_key: str | None = None
    ) -> RenderedPrompt:
        """The first request that a tool which is not saved would send to its model. Nothing is sent."""
        return self._loop.run(
            self._api.render_unsaved_prompt, params=params, definition=definition, idempotency_key=idempotency_key
        )

    def test_prompt(
        self,
        name: str,
        *,
        params: JsonObject,
        system_prompt: str | None = None,
        llm: LLMConfig | JsonObject | None = None,
        mode: Literal["deterministic", "agentic"] | None = None,
        steps: Sequence[AgenticStep | JsonObject] | None = None,
        tools: Sequence[AllocatedTool | JsonObject] | None = None,
        context: AgenticContext | JsonObject | None = None,
        limits: Limits | JsonObject | None = None,
        result_schema: JsonObject | None = None,
        grounding: Literal["evidence", "strict", "off"] | None = None,
        input_schema: JsonObject | None = None,
        idempotency_key: str | None = None,
    ) -> PromptTest:
        """Test the prompt with a sample input and with unsaved changes. The calls that the model requests are not made."""
        return self._loop.run(
            self._api.test_prompt,
            name,
            params=params,
            system_prompt=system_prompt,
            llm=llm,
            mode=mode,
            steps=steps,
            tools=tools,
            context=context,
            limits=limits,
            result_schema=result_schema,
            grounding=grounding,
            input_schema=input_schema,
            idempotency_key=idempotency_key,
        )

    def render_prompt(
        self,
        name: str,
        *,
        params: JsonObject,
        system_prompt: str | None = None,
        llm: LLMConfig | JsonObject | None = None,
        mode: Literal["deterministic", "agentic"] | None = None,
        steps: Sequence[AgenticStep | JsonObject] | None = None,
        tools: Sequence[AllocatedTool | JsonObject] | None = None,
        context: AgenticContext | JsonObject | None = None,
        limits: Limits | JsonObject | None = None,
        result_schema: JsonObject | None = None,
        grounding: Literal["evidence", "strict", "off"] | None = None,
        input_schema: JsonObject | None = None,
        idempotency_key: str | None = None,
    ) -> RenderedPrompt:
        """The first request that a tool would send to its model, with unsaved changes and its length. Nothing is sent."""
        return self._loop.run(
            self._api.render_prompt,
            name,
            params=params,
            system_prompt=system_prompt,
            llm=llm,
            mode=mode,
            steps=steps,
            tools=tools,
            context=context,
            limits=limits,
            result_schema=result_schema,
            grounding=grounding,
            input_schema=input_schema,
            idempotency_key=idempotency_key,
        )

    def list_placeholders(self, name: str) -> PromptPlaceholders:
        """The placeholders that the prompt can use, with the present length of their values; reads reference data."""
        return self._loop.run(self._api.list_placeholders, name)

    def regenerate_prompt(
        self, name: str, *, source: Literal["generator", "model"] | None = None, idempotency_key: str | None = None
    ) -> TextProposal:
        """Propose a default prompt for the tool as it is now, with the difference and the reason. Nothing is stored."""
        return self._loop.run(self._api.regenerate_prompt, name, source=source, idempotency_key=idempotency_key)

    def regenerate_description(
        self, name: str, *, source: Literal["generator", "model"] | None = None, idempotency_key: str | None = None
    ) -> TextProposal:
        """Propose a text for parent agents. Nothing is stored."""
        return self._loop.run(self._api.regenerate_description, name, source=source, idempotency_key=idempotency_key)

    def accept_proposal(
        self, name: str, definition: TextProposal | JsonObject, *, idempotency_key: str | None = None
    ) -> AgenticView:
        """Store a proposal, as it was made or edited, as a new revision."""
        return self._loop.run(self._api.accept_proposal, name, definition, idempotency_key=idempotency_key)

    def list_prompt_revisions(self, name: str) -> PromptHistory:
        """The prompt in all revisions, oldest first."""
        return self._loop.run(self._api.list_prompt_revisions, name)

    def compare_prompts(self, name: str, *, older: int, newer: int) -> PromptDifference:
        """How the prompt of one revision became that of another."""
        return self._loop.run(self._api.compare_prompts, name, older=older, newer=newer)

    def roll_back(
        self, name: str, *, revision: int, if_match: int | str | None = None, idempotency_key: str | None = None
    ) -> AgenticView:
        """Make an older revision the newest one again."""
        return self._loop.run(
            self._api.roll_back, name, revision=revision, if_match=if_match, idempotency_key=idempotency_key
        )

    def get_drift(self, name: str) -> DriftReport:
        """What has changed in the tool's tools since its prompt was made."""
        return self._loop.run(self._api.get_drift, name)

    def show_agentic_workflow(self, name: str, *, format: Literal["json", "yaml"] | None = None) -> Json:
        """A deterministic tool as the workflow that it is, which can be changed and published."""
        return self._loop.run(self._api.show_agentic_workflow, name, format=format)

    def export(self, name: str, form: str) -> JsonObject:
        """The tool in the shape of another system, as a parent agent there needs it."""
        return self._loop.run(self._api.export, name, form)

    def list_tool_executions(
        self,
        name: str,
        *,
        status: Literal[
            "queued",
            "running",
            "awaiting_approval",
            "awaiting_client",
            "awaiting_answer",
            "completed",
            "incomplete",
            "failed",
            "timed_out",
            "cancelled",
        ]
        | None = None,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> ExecutionPage:
        """Executions of one tool, newest first; also of a tool that was removed."""
        return self._loop.run(
            self._api.list_tool_executions,
            name,
            status=status,
            filter=filter,
            sort=sort,
            after=after,
            before=before,
            limit=limit,
        )

    def each_tool_executions(
        self,
        name: str,
        *,
        status: Literal[
            "queued",
            "running",
            "awaiting_approval",
            "awaiting_client",
            "awaiting_answer",
            "completed",
            "incomplete",
            "failed",
            "timed_out",
            "cancelled",
        ]
        | None = None,
        filter: str | None = None,
        sort: str | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> Iterator[ExecutionView]:
        """Executions of one tool, newest first; also of a tool that was removed.

        All of them: the next page is read when it is needed.
        """
        return self._loop.iterate(
            self._api.each_tool_executions, name, status=status, filter=filter, sort=sort, before=before, limit=limit
        )

    def get_tool_execution(self, name: str, execution_id: str) -> ExecutionDetail:
        """One execution: the plan, each call of the model with its prompt and answer, each call of a tool, the costs."""
        return self._loop.run(self._api.get_tool_execution, name, execution_id)
