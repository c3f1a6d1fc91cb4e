"""Runs that an MCP client follows while they run: their progress, and what their tools log."""

import asyncio
from contextlib import suppress
from typing import Any, Final, TypeAlias, cast, get_args

import anyio
import mcp_types as types
from mcp.server.connection import Connection, allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolcrib.contracts import Conflict, Json, JsonObject, ToolCallEnd, ToolLog, ToolProgress, ToolRevision
from toolcrib.core.runs import Result
from toolcrib.crib import ActingCrib

Context: TypeAlias = ServerRequestContext[Any, Any]

_CALL: Final = "call"
"""Position of the call of a run that is one call."""
_CANCEL_S: Final = 5.0
_LEVEL: Final = "toolcrib/log_level"
"""Key of the state of a session."""
_LEVELS: Final[tuple[types.LoggingLevel, ...]] = get_args(types.LoggingLevel)


async def set_level(ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
    """Tell a session of an older revision from now on what tools log, from a level on."""
    _state(ctx)[_LEVEL] = params.level
    return types.EmptyResult()


def levels_of(ctx: Context) -> frozenset[types.LoggingLevel]:
    """The levels that a client wants to hear of: none unless it says so."""
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return allowed_log_levels(ctx.protocol_version, cast("Any", ctx.meta))
    level = _state(ctx).get(_LEVEL)
    return frozenset() if level is None else frozenset(_LEVELS[_LEVELS.index(level) :])


async def run_tool(ctx: Context, crib: ActingCrib, tool: ToolRevision, arguments: JsonObject) -> Result[Json]:
    """Run a tool; a client that asked for its progress hears of it, and ends the run if it cancels its request.

    Args:
        ctx: The request.
        crib: Acts as the client's principal.
        tool: What is called.
        arguments: Of the call.
    """
    ref = f"{tool.name}@{tool.content_hash}"
    wants_progress = ctx.meta is not None and "progress_token" in ctx.meta
    levels = levels_of(ctx)
    if not wants_progress and not levels:
        return await crib.invoke(ref, arguments)
    run_id = await crib.submit(ref, arguments)
    ended = 0
    try:
        async for _, event in crib.stream(run_id, drive=True):
            if isinstance(event, ToolLog) and event.level in levels:
                await _log(ctx, event)
            elif isinstance(event, ToolProgress) and event.position == _CALL and wants_progress:
                await ctx.session.report_progress(event.done, event.total, event.message or None)
            elif isinstance(event, ToolCallEnd) and event.envelope.position != _CALL and wants_progress:
                ended += 1
                await ctx.session.report_progress(ended, None, event.envelope.name)
    except asyncio.CancelledError:
        with anyio.move_on_after(_CANCEL_S, shield=True), suppress(Conflict):  # it has ended since
            await crib.cancel(run_id, reason="the client cancelled its request")
        raise
    return await crib.executions.result(run_id)


async def _log(ctx: Context, line: ToolLog) -> None:
    params = types.LoggingMessageNotificationParams(level=line.level, logger=line.name, data=line.message)
    await ctx.session.send_notification(types.LoggingMessageNotification(params=params), ctx.request_id)


def _state(ctx: Context) -> dict[str, Any]:
    """The state of a session of an older revision."""
    connection = cast("Connection", cast("Any", ctx.session)._connection)  # noqa: SLF001 - the SDK has no other way
    return connection.state
