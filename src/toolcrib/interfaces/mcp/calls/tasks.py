"""Calls of MCP clients as tasks: the extension `io.modelcontextprotocol/tasks` of revision 2026-07-28 (SEP-2663).

A task is a run, and its id is that of the run: it is durable, survives the end of the process, and is seen by who may
read the run. A call becomes a task if its client declares the extension and the call has not ended after half a second.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, TypeAlias, cast

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field

from toolcrib.contracts import Conflict, JsonObject, NotFound, PermissionDenied, Run, ToolRevision
from toolcrib.core.runs import Result
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.mcp.calls.settling import answer_forms, can_ask
from toolcrib.interfaces.mcp.calls.waiting import explain_wait, forms_of
from toolcrib.interfaces.mcp.offers import ToolOffers
from toolcrib.interfaces.mcp.resources import OPEN
from toolcrib.interfaces.mcp.results import result_of

Context: TypeAlias = ServerRequestContext[Any, Any]
OffersOf: TypeAlias = Callable[[Context], Awaitable[ToolOffers]]
"""What the client of a request is offered."""

EXTENSION: Final = "io.modelcontextprotocol/tasks"
PATIENCE_S: Final = 0.5
"""Seconds that a call may take before it becomes a task."""
_POLL_MS: Final = 1_000


class TaskParams(types.RequestParams):
    """Which task is meant."""

    task_id: str = Field(max_length=200)


class TaskUpdateParams(TaskParams):
    """Answers to what a task asks."""

    input_responses: types.InputResponses = Field(default_factory=dict)


class McpTasks:
    """The tasks of one server.

    Args:
        offers_of: What the client of a request is offered.
        self_approval: Whether who calls a tool may decide on the call.
    """

    def __init__(self, offers_of: OffersOf, *, self_approval: bool) -> None:
        self._offers_of = offers_of
        self._self_approval = self_approval
        self._driving: dict[str, asyncio.Task[None]] = {}

    def add_to(self, server: Server[Any]) -> None:
        """Serve the methods of the extension, and say so."""
        server.extensions[EXTENSION] = {}
        server.add_request_handler("tasks/get", TaskParams, self.get)
        server.add_request_handler("tasks/update", TaskUpdateParams, self.update)
        server.add_request_handler("tasks/cancel", TaskParams, self.cancel)

    async def start(self, crib: ActingCrib, tool: ToolRevision, arguments: JsonObject) -> Result | JsonObject:
        """Run a tool: the run if it ends or waits soon, else its task as the client is told of it.

        Args:
            crib: Acts as the client's principal.
            tool: What is called.
            arguments: Of the call.
        """
        return await self.resume(crib, await crib.submit(f"{tool.name}@{tool.content_hash}", arguments))

    async def resume(self, crib: ActingCrib, run_id: str) -> Result | JsonObject:
        """Go on with a run; returns as `start`."""
        driving = self._drive(crib, run_id)
        patience = asyncio.ensure_future(crib.clock.sleep(PATIENCE_S))
        await asyncio.wait({driving, patience}, return_when=asyncio.FIRST_COMPLETED)
        patience.cancel()
        if driving.done():
            return await crib.executions.result(run_id)
        run = await crib.executions.run_for(run_id, crib.principal, "read")
        return {"resultType": "task", **_described(run, "working")}

    async def get(self, ctx: Context, params: TaskParams) -> JsonObject:
        """A task as it stands, with its result if it has ended, and with what it asks."""
        offers, run = await self._run(ctx, params.task_id)
        crib = offers.crib
        if run.status in OPEN:
            return await self._open(ctx, crib, run)
        if run.status == "cancelled":
            return _described(run, "cancelled")
        tool = await crib.registry.get_revision(run.realm, run.request.content_hash)
        result = await result_of(
            crib, tool, await crib.executions.result(run.run_id), protocol=str(ctx.protocol_version)
        )
        shown = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        return {**_described(run, "completed"), "result": shown}

    async def update(self, ctx: Context, params: TaskUpdateParams) -> JsonObject:
        """Answer what a task asks; what it does not ask any more is ignored."""
        offers, run = await self._run(ctx, params.task_id)
        crib = offers.crib
        if run.status in OPEN:
            forms = await forms_of(crib, run.run_id, self_approval=self._self_approval)
            given = params.input_responses
            answered = [(form, given[form.request_key]) for form in forms if form.request_key in given]
            await answer_forms(crib, run.run_id, answered, modern=True)
            if answered:
                self._drive(crib, run.run_id)
        return {}

    async def cancel(self, ctx: Context, params: TaskParams) -> JsonObject:
        """Cancel a task; one that has ended stays as it is."""
        offers, run = await self._run(ctx, params.task_id)
        if run.status in OPEN:
            with suppress(Conflict):  # it has ended since
                await offers.crib.cancel(run.run_id, reason="the client cancelled its task")
        return {}

    async def close(self) -> None:
        """Stop driving; the runs go on in another process, or when their clients ask for them."""
        driving = list(self._driving.values())
        for task in driving:
            task.cancel()
        await asyncio.gather(*driving, return_exceptions=True)

    # Inside -----------------------------------------------------------------------------------------------------------

    async def _open(self, ctx: Context, crib: ActingCrib, run: Run) -> JsonObject:
        """A task that has not ended."""
        if not run.status.startswith("awaiting_"):
            self._drive(crib, run.run_id)
            return _described(run, "working")
        forms = await forms_of(crib, run.run_id, self_approval=self._self_approval)
        askable = [form for form in forms if can_ask(ctx, form)]
        if not askable:
            waiting = await crib.executions.result(run.run_id)
            return {**_described(run, "working"), "statusMessage": await explain_wait(crib, waiting)}
        requests = {
            form.request_key: form.request().model_dump(by_alias=True, mode="json", exclude_none=True)
            for form in askable
        }
        return {**_described(run, "input_required"), "inputRequests": requests}

    async def _run(self, ctx: Context, task_id: str) -> tuple[ToolOffers, Run]:
        """The run of a task.

        Raises:
            MCPError: The client does not declare the extension, or there is no such task for it.
        """
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            raise MCPError(types.METHOD_NOT_FOUND, "tasks are of protocol revision 2026-07-28")
        if not declares_tasks(ctx):
            data: JsonObject = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
            msg = f"the client does not declare the extension {EXTENSION}; declare it with each request"
            raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, msg, data)
        _check_header(ctx, task_id)
        offers = await self._offers_of(ctx)
        try:
            run = await offers.crib.executions.run_for(task_id, offers.crib.principal, "read")
        except (NotFound, PermissionDenied):
            run = None
        if run is None or not await offers.runs_of(run.request.tool_name):
            msg = f"there is no task {task_id[:100]!r} for this client; call the tool again"
            raise MCPError(types.INVALID_PARAMS, msg)
        return offers, run

    def _drive(self, crib: ActingCrib, run_id: str) -> asyncio.Task[None]:
        """Have a run driven here, if it is not driven elsewhere; done when it has ended or waits."""
        known = self._driving.get(run_id)
        if known is not None and not known.done():
            return known

        async def drive() -> None:
            async for _ in crib.stream(run_id, drive=True):
                pass

        driving = self._driving[run_id] = asyncio.create_task(drive(), name=f"task {run_id}")
        driving.add_done_callback(lambda _: self._driving.pop(run_id, None))
        return driving


def declares_tasks(ctx: Context) -> bool:
    """Whether a client takes a task as the result of a call."""
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return False
    capabilities = ctx.session.client_capabilities
    return capabilities is not None and EXTENSION in (capabilities.extensions or {})


def _described(run: Run, status: str) -> JsonObject:
    return {
        "taskId": run.run_id,
        "status": status,
        "createdAt": run.created_at.isoformat(),
        "lastUpdatedAt": run.updated_at.isoformat(),
        "ttlMs": None,
        "pollIntervalMs": _POLL_MS,
    }


def _check_header(ctx: Context, task_id: str) -> None:
    """Refuse a request whose header names another task than its body; those in between act on the header (SEP-2243)."""
    headers = getattr(cast("Any", ctx.request), "headers", None)
    if headers is not None and headers.get("mcp-name") != task_id:
        msg = "the header Mcp-Name is not the taskId of the request; send both alike"
        raise MCPError(types.HEADER_MISMATCH, msg)
