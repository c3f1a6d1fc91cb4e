"""What a client hears of a call while it runs, and what becomes of a call that it cancels."""

import asyncio

import anyio
import pytest

from tests.unit.mcp_server.served import REVISIONS, client_of, mcp_server
from tests.unit.server.client import Server
from toolcrib import ToolContext, tool

both = pytest.mark.parametrize("mode", REVISIONS)


class Steps:
    """A tool that goes on when it is told to."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.heard: list[tuple[float, float | None, str | None]] = []

    async def hear(self, progress: float, total: float | None, message: str | None) -> None:
        self.heard.append((progress, total, message))
        self.go_on.set()

    def add_to(self, server: Server) -> None:
        @tool(side_effects="none")
        async def climb(context: ToolContext) -> str:
            """Climb."""
            context.progress(1, 2, "half way")
            self.begun.set()
            await self.go_on.wait()
            return "top"

        server.crib.add(climb)


@both
@pytest.mark.requirement("mcp_server.progress")
async def test_a_client_hears_how_far_a_call_has_come(mode: str) -> None:
    steps = Steps()
    async with mcp_server() as (server, url), client_of(url, mode) as client:
        steps.add_to(server)
        done = await client.call_tool("climb", {}, progress_callback=steps.hear)
    assert not done.is_error
    assert steps.heard == [(1.0, 2.0, "half way")]


@both
@pytest.mark.requirement("mcp_server.cancel")
async def test_a_call_that_the_client_cancels_is_cancelled(mode: str) -> None:
    steps = Steps()
    async with mcp_server() as (server, url), client_of(url, mode) as client:
        steps.add_to(server)
        steps.hear = never  # type: ignore[method-assign]
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: client.call_tool("climb", {}, progress_callback=steps.hear))
            await steps.begun.wait()
            group.cancel_scope.cancel()
        [run] = await server.crib.store.journal.runs("default")
        ended = await server.finished(run.run_id)
    assert ended["run"]["status"] == "cancelled"


async def never(progress: float, total: float | None, message: str | None) -> None:
    """Hear nothing."""
