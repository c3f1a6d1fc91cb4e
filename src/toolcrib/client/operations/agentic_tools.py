"""The operations on agentic tools.

Written by `python -m tools.rest_client`.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Literal

from toolcrib.client.answer_parts import AgenticView, ExecutionView
from toolcrib.client.answers import AgenticPage, Count, ExecutionDetail, ExecutionPage, PromptHistory, RemovalView
from toolcrib.client.groups import AsyncApi
from toolcrib.client.transport import ApiRequest, given
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


class AsyncAgenticToolsApi(AsyncApi):
    """The operations on agentic tools."""

    async def query(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> AgenticPage:
        """The agentic-tools that a filter means, page by page."""
        return await self._transport.send(
            AgenticPage,
            ApiRequest(
                method="POST",
                path="/api/v1/agentic-tools/query",
                body=given(filter=filter, sort=sort, after=after, limit=limit),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def count(self, *, filter: str | None = None) -> Count:
        """How many agentic-tools a filter means, of those that the caller may see."""
        return await self._transport.send(
            Count, ApiRequest(method="GET", path="/api/v1/agentic-tools/count", query=given(filter=filter))
        )

    async def list(
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
        return await self._transport.send(
            AgenticPage,
            ApiRequest(
                method="GET",
                path="/api/v1/agentic-tools",
                query=given(mode=mode, status=status, q=q, filter=filter, sort=sort, after=after, limit=limit),
            ),
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
    ) -> AsyncGenerator[AgenticView]:
        """Agentic tools by name, page by page; `q` is looked for in names and descriptions.

        All of them: the next page is read when it is needed.
        """
        return self._transport.each(
            AgenticPage,
            ApiRequest(
                method="GET",
                path="/api/v1/agentic-tools",
                query=given(mode=mode, status=status, q=q, filter=filter, sort=sort, limit=limit),
            ),
            "after",
        )

    async def create(self, definition: JsonObject, *, idempotency_key: str | None = None) -> AgenticView:
        """Store the first revision of a new tool; without a prompt it gets the default one."""
        return await self._transport.send(
            AgenticView,
            ApiRequest(
                method="POST",
                path="/api/v1/agentic-tools",
                body=definition,
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def get(self, name: str) -> AgenticView:
        """A tool as a call without a version gets it; the header `ETag` names the revision."""
        return await self._transport.send(
            AgenticView, ApiRequest(method="GET", path="/api/v1/agentic-tools/{name}", place={"name": name})
        )

    async def change(self, name: str, changes: JsonObject, *, if_match: int | str | None = None) -> AgenticView:
        """Store a new revision that differs by a JSON Merge Patch (RFC 7396); a prompt that is null becomes the default.

        With `If-Match`, the change is refused if there is a newer revision; without it, if one was made
        while the patch was applied.
        """
        return await self._transport.send(
            AgenticView,
            ApiRequest(
                method="PATCH",
                path="/api/v1/agentic-tools/{name}",
                place={"name": name},
                body=changes,
                headers={"If-Match": if_match},
            ),
        )

    async def remove(self, name: str) -> RemovalView:
        """Remove a tool from the catalogue. Active runs keep their revision; saving it again restores it."""
        return await self._transport.send(
            RemovalView, ApiRequest(method="DELETE", path="/api/v1/agentic-tools/{name}", place={"name": name})
        )

    async def test_unsaved_prompt(
        self, *, params: JsonObject, definition: JsonObject, idempotency_key: str | None = None
    ) -> PromptTest:
        """Test the prompt of a tool that is not saved; without a prompt, the default one. See `test-prompt` of a tool."""
        return await self._transport.send(
            PromptTest,
            ApiRequest(
                method="POST",
                path="/api/v1/agentic-tools/test-prompt",
                body=given(params=params, definition=definition),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def render_unsaved_prompt(
        self, *, params: JsonObject, definition: JsonObject, idempotency_key: str | None = None
    ) -> RenderedPrompt:
        """The first request that a tool which is not saved would send to its model. Nothing is sent."""
        return await self._transport.send(
            RenderedPrompt,
            ApiRequest(
                method="POST",
                path="/api/v1/agentic-tools/render-prompt",
                body=given(params=params, definition=definition),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def test_prompt(
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
        return await self._transport.send(
            PromptTest,
            ApiRequest(
                method="POST",
                path="/api/v1/agentic-tools/{name}/test-prompt",
                place={"name": name},
                body=given(
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
                ),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def render_prompt(
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
        return await self._transport.send(
            RenderedPrompt,
            ApiRequest(
                method="POST",
                path="/api/v1/agentic-tools/{name}/render-prompt",
                place={"name": name},
                body=given(
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
                ),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def list_placeholders(self, name: str) -> PromptPlaceholders:
        """The placeholders that the prompt can use, with the present length of their values; reads reference data."""
        return await self._transport.send(
            PromptPlaceholders,
            ApiRequest(method="GET", path="/api/v1/agentic-tools/{name}/placeholders", place={"name": name}),
        )

    async def regenerate_prompt(
        self, name: str, *, source: Literal["generator", "model"] | None = None, idempotency_key: str | None = None
    ) -> TextProposal:
        """Propose a default prompt for the tool as it is now, with the difference and the reason. Nothing is stored."""
        return await self._transport.send(
            TextProposal,
            ApiRequest(
                method="POST",
                path="/api/v1/agentic-tools/{name}/regenerate-prompt",
                place={"name": name},
                body=given(source=source),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def regenerate_description(
        self, name: str, *, source: Literal["generator", "model"] | None = None, idempotency_key: str | None = None
    ) -> TextProposal:
        """Propose a text for parent agents. Nothing is stored."""
        return await self._transport.send(
            TextProposal,
            ApiRequest(
                method="POST",
                path="/api/v1/agentic-tools/{name}/regenerate-description",
                place={"name": name},
                body=given(source=source),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def accept_proposal(
        self, name: str, definition: TextProposal | JsonObject, *, idempotency_key: str | None = None
    ) -> AgenticView:
        """Store a proposal, as it was made or edited, as a new revision."""
        return await self._transport.send(
            AgenticView,
            ApiRequest(
                method="POST",
                path="/api/v1/agentic-tools/{name}/accept-proposal",
                place={"name": name},
                body=definition,
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def list_prompt_revisions(self, name: str) -> PromptHistory:
        """The prompt in all revisions, oldest first."""
        return await self._transport.send(
            PromptHistory, ApiRequest(method="GET", path="/api/v1/agentic-tools/{name}/revisions", place={"name": name})
        )

    async def compare_prompts(self, name: str, *, older: int, newer: int) -> PromptDifference:
        """How the prompt of one revision became that of another."""
        return await self._transport.send(
            PromptDifference,
            ApiRequest(
                method="GET",
                path="/api/v1/agentic-tools/{name}/revisions/compare",
                place={"name": name},
                query=given(older=older, newer=newer),
            ),
        )

    async def roll_back(
        self, name: str, *, revision: int, if_match: int | str | None = None, idempotency_key: str | None = None
    ) -> AgenticView:
        """Make an older revision the newest one again."""
        return await self._transport.send(
            AgenticView,
            ApiRequest(
                method="POST",
                path="/api/v1/agentic-tools/{name}/roll-back",
                place={"name": name},
                body=given(revision=revision),
                headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            ),
        )

    async def get_drift(self, name: str) -> DriftReport:
        """What has changed in the tool's tools since its prompt was made."""
        return await self._transport.send(
            DriftReport, ApiRequest(method="GET", path="/api/v1/agentic-tools/{name}/drift", place={"name": name})
        )

    async def show_agentic_workflow(self, name: str, *, format: Literal["json", "yaml"] | None = None) -> Json:
        """A deterministic tool as the workflow that it is, which can be changed and published."""
        return await self._transport.send(
            Json,
            ApiRequest(
                method="GET",
                path="/api/v1/agentic-tools/{name}/workflow",
                place={"name": name},
                query=given(format=format),
            ),
        )

    async def export(self, name: str, form: str) -> JsonObject:
        """The tool in the shape of another system, as a parent agent there needs it."""
        return await self._transport.send(
            JsonObject,
            ApiRequest(
                method="GET", path="/api/v1/agentic-tools/{name}/tools/{form}", place={"name": name, "form": form}
            ),
        )

    async def list_tool_executions(
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
        return await self._transport.send(
            ExecutionPage,
            ApiRequest(
                method="GET",
                path="/api/v1/agentic-tools/{name}/executions",
                place={"name": name},
                query=given(status=status, filter=filter, sort=sort, after=after, before=before, limit=limit),
            ),
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
    ) -> AsyncGenerator[ExecutionView]:
        """Executions of one tool, newest first; also of a tool that was removed.

        All of them: the next page is read when it is needed.
        """
        return self._transport.each(
            ExecutionPage,
            ApiRequest(
                method="GET",
                path="/api/v1/agentic-tools/{name}/executions",
                place={"name": name},
                query=given(status=status, filter=filter, sort=sort, before=before, limit=limit),
            ),
            "after",
        )

    async def get_tool_execution(self, name: str, execution_id: str) -> ExecutionDetail:
        """One execution: the plan, each call of the model with its prompt and answer, each call of a tool, the costs."""
        return await self._transport.send(
            ExecutionDetail,
            ApiRequest(
                method="GET",
                path="/api/v1/agentic-tools/{name}/executions/{execution_id}",
                place={"name": name, "execution_id": execution_id},
            ),
        )
