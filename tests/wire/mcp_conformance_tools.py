"""The tools, resources and prompts that the conformance suite of MCP asks a server for, as tools of a crib."""

import asyncio
import base64
from typing import Any

from toolcrib import File, ToolContext, tool
from toolcrib.contracts import JsonObject, McpOffer

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="


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


def pixel() -> File:
    """A red PNG."""
    return File(base64.b64decode(PIXEL), "image/png")


@tool(name="test_image_content", side_effects="none")
async def image_content() -> File:
    """Tests image content response."""
    return pixel()


@tool(name="test_audio_content", side_effects="none")
async def audio_content() -> File:
    """Tests audio content response."""
    return File(b"RIFF$\x00\x00\x00WAVEfmt ", "audio/wav")


@tool(name="test_embedded_resource", side_effects="none")
async def embedded_resource() -> File:
    """Tests embedded resource content response."""
    return File("This is an embedded resource content.", "text/plain", name="test://embedded-resource")


@tool(name="test_multiple_content_types", side_effects="none")
async def multiple_content_types() -> list[Any]:
    """Tests response with multiple content types."""
    data = File('{"test":"data","value":123}', "application/json", name="test://mixed-content-resource")
    return ["Multiple content types test:", pixel(), data]


@tool(
    name="static_binary",
    side_effects="none",
    mcp=McpOffer(show_as="resource", uri="test://static-binary", mime_type="image/png"),
)
async def static_binary() -> File:
    """A static binary resource for testing."""
    return pixel()


@tool(name="test_prompt_with_embedded_resource", side_effects="none", mcp=McpOffer(show_as="prompt"))
async def prompt_with_embedded_resource(resourceUri: str) -> list[dict[str, Any]]:  # noqa: N803 - the suite's name
    """A prompt that includes an embedded resource."""
    file = File("Embedded resource content for testing.", "text/plain", name=resourceUri)
    return [
        {"role": "user", "content": file},
        {"role": "user", "content": "Please process the embedded resource above."},
    ]


@tool(name="test_prompt_with_image", side_effects="none", mcp=McpOffer(show_as="prompt"))
async def prompt_with_image() -> list[dict[str, Any]]:
    """A prompt that includes image content."""
    return [{"role": "user", "content": pixel()}, {"role": "user", "content": "Please analyze the image above."}]


TOOLS: tuple[Any, ...] = (
    image_content,
    audio_content,
    embedded_resource,
    multiple_content_types,
    static_binary,
    prompt_with_embedded_resource,
    prompt_with_image,
    simple_text,
    with_progress,
    error_handling,
    static_text,
    template,
    simple_prompt,
    prompt_with_arguments,
)
