"""The tools, resources and prompts that the conformance suite of MCP asks a server for, as tools of a crib."""

import asyncio
from typing import Any

from toolcrib import ToolContext, tool
from toolcrib.contracts import JsonObject, McpOffer


@tool(name="test_simple_text", side_effects="none")
async def simple_text() -> str:
    """Tests simple text content response."""
    return "This is a simple text response for testing."


@tool(name="test_tool_with_progress", side_effects="none")
async def with_progress(context: ToolContext) -> str:
    """Tests tool that reports progress notifications."""
    for done in (0, 50, 100):
        context.progress(done, 100)
        await asyncio.sleep(0.05)
    return "done"


@tool(name="test_error_handling", side_effects="none")
async def error_handling() -> str:
    """Tests error response handling."""
    raise ValueError("This tool intentionally returns an error for testing")


@tool(
    name="static_text",
    side_effects="none",
    mcp=McpOffer(show_as="resource", uri="test://static-text", mime_type="text/plain"),
)
async def static_text() -> str:
    """A static text resource for testing."""
    return "This is the content of the static text resource."


@tool(name="template", side_effects="none", mcp=McpOffer(show_as="resource", uri="test://template/{id}/data"))
async def template(id: str) -> JsonObject:  # noqa: A002 - the suite's name
    """A resource template."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


@tool(name="test_simple_prompt", side_effects="none", mcp=McpOffer(show_as="prompt"))
async def simple_prompt() -> str:
    """A simple prompt without arguments."""
    return "This is a simple prompt for testing."


@tool(name="test_prompt_with_arguments", side_effects="none", mcp=McpOffer(show_as="prompt"))
async def prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with required arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


TOOLS: tuple[Any, ...] = (
    simple_text,
    with_progress,
    error_handling,
    static_text,
    template,
    simple_prompt,
    prompt_with_arguments,
)
