"""The tools, resources and prompts that the conformance suite of MCP asks a server for, as tools of a crib."""

import asyncio
import base64
from typing import Any

from toolcrib import Ask, Crib, File, ToolContext, tool
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


def form(**properties: JsonObject) -> JsonObject:
    """A schema of a form whose fields are all required."""
    return {"type": "object", "properties": properties, "required": list(properties)}


TEXT: JsonObject = {"type": "string"}


@tool(name="test_elicitation", side_effects="none")
async def elicitation(message: str, context: ToolContext) -> str:
    """Tests elicitation."""
    email: JsonObject = {"type": "string", "description": "User's email address"}
    answer = await context.ask(
        message, form(username={"type": "string", "description": "User's response"}, email=email)
    )
    return f"User response: {answer}"


@tool(name="test_elicitation_sep1034_defaults", side_effects="none")
async def elicitation_defaults(context: ToolContext) -> str:
    """Tests elicitation with default values."""
    wanted = form(
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        verified={"type": "boolean", "default": True},
    )
    return f"Elicitation completed: action=accept, content={await context.ask('Who are you?', wanted)}"


@tool(name="test_elicitation_sep1330_enums", side_effects="none")
async def elicitation_enums(context: ToolContext) -> str:
    """Tests elicitation with choices."""
    titled: list[JsonObject] = [{"const": f"value{n}", "title": f"Option {n}"} for n in (1, 2, 3)]
    options = ["option1", "option2", "option3"]
    wanted = form(
        untitledSingle={"type": "string", "enum": options},
        titledSingle={"type": "string", "oneOf": titled},
        legacyEnum={"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
        untitledMulti={"type": "array", "items": {"type": "string", "enum": options}},
        titledMulti={"type": "array", "items": {"anyOf": titled}},
    )
    wanted.pop("required")
    return f"Elicitation completed: action=accept, content={await context.ask('Which?', wanted)}"


@tool(name="test_input_required_result_elicitation", side_effects="none")
async def input_elicitation(context: ToolContext) -> str:
    """Asks for a name."""
    answer = await context.ask("What is your name?", form(name=TEXT), name="user_name")
    return f"Hello, {answer['name']}!"


@tool(name="test_input_required_result_request_state", side_effects="none")
async def input_state(context: ToolContext) -> str:
    """Asks to confirm."""
    await context.ask("Please confirm", form(ok={"type": "boolean"}), name="confirm")
    return "state-ok"


@tool(name="test_input_required_result_tampered_state", side_effects="none")
async def input_tampered(context: ToolContext) -> str:
    """Asks to confirm."""
    await context.ask("Please confirm", form(ok={"type": "boolean"}), name="confirm")
    return "state-ok"


@tool(name="test_input_required_result_multi_round", side_effects="none")
async def input_rounds(context: ToolContext) -> str:
    """Asks twice."""
    name = await context.ask("Step 1: What is your name?", form(name=TEXT), name="step1")
    color = await context.ask("Step 2: What is your favorite color?", form(color=TEXT), name="step2")
    return f"{name['name']} likes {color['color']}"


@tool(name="test_input_required_result_prompt", side_effects="none", mcp=McpOffer(show_as="prompt"))
async def input_prompt(context: ToolContext) -> str:
    """A prompt that needs input."""
    answer = await context.ask("What context should the prompt use?", form(context=TEXT), name="user_context")
    return f"Use this context: {answer['context']}"


@tool(name="test_streaming_elicitation", side_effects="none")
async def streaming_elicitation(context: ToolContext) -> str:
    """Asks for a name."""
    return f"Hello, {await context.ask('What is your name?')}!"


@tool(name="test_logging_tool", side_effects="none")
async def logging_tool(context: ToolContext) -> str:
    """Logs."""
    context.logger.info("working")
    return "done"


@tool(name="test_tool_with_logging", side_effects="none")
async def with_logging(context: ToolContext) -> str:
    """Tests tool that sends log messages."""
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        context.log(message)
        await asyncio.sleep(0.05)
    return "done"


@tool(name="test_sampling", side_effects="none")
async def sampling(prompt: str, context: ToolContext) -> str:
    """Asks the model of the client."""
    return f"LLM response: {await context.ask_model(prompt, max_tokens=100)}"


@tool(name="test_missing_capability", side_effects="none")
async def missing_capability(context: ToolContext) -> str:
    """Asks the model of a client that has none."""
    return await context.ask_model("Are you there?")


@tool(name="test_input_required_result_sampling", side_effects="none")
async def input_sampling(context: ToolContext) -> str:
    """Asks the model of the client."""
    return await context.ask_model("What is the capital of France?", max_tokens=100, name="capital_question")


@tool(name="test_input_required_result_list_roots", side_effects="none")
async def input_roots(context: ToolContext) -> str:
    """Asks for the roots of the client."""
    return ", ".join(root["uri"] for root in await context.ask_roots(name="client_roots"))


@tool(name="test_input_required_result_multiple_inputs", side_effects="none")
async def input_several(context: ToolContext) -> str:
    """Asks the person, the model and the client at once."""
    answers = await context.ask_all(
        Ask("What is your name?", form(name=TEXT), name="user_name"),
        Ask.of_model("Generate a greeting", max_tokens=50, name="greeting"),
        Ask.of_roots(name="client_roots"),
    )
    return f"{answers[1]}, {answers[0]['name']}! {len(answers[2])} roots"


@tool(name="test_input_required_result_capabilities", side_effects="none")
async def input_capabilities(context: ToolContext) -> str:
    """Asks the person and the model at once."""
    return str(
        await context.ask_all(Ask("What is your name?", form(name=TEXT)), Ask.of_model("Greet", name="greeting"))
    )


@tool(side_effects="none")
async def greet(name: str) -> str:
    """Greets."""
    return f"Hello, {name}!"


@tool(side_effects="none")
async def slow_compute(seconds: float, label: str = "") -> str:
    """Takes its time."""
    await asyncio.sleep(seconds)
    return f"computed {label}"


@tool(side_effects="none")
async def failing_job() -> str:
    """Fails after a while."""
    await asyncio.sleep(1)
    raise ValueError("This job always fails")


@tool(side_effects="none")
async def confirm_delete(context: ToolContext, filename: str = "") -> str:
    """Asks after a while."""
    await asyncio.sleep(0.6)
    return f"{filename}: {await context.ask('Delete it?', form(confirm={'type': 'boolean'}))}"


@tool(side_effects="none")
async def multi_input(context: ToolContext) -> str:
    """Asks for two things after a while."""
    await asyncio.sleep(0.6)
    wanted: JsonObject = {"type": "object", "properties": {}}
    return str(await context.ask_all(Ask("First?", wanted, name="first"), Ask("Second?", wanted, name="second")))


@tool(name="test_tool_with_task", side_effects="none")
async def tool_with_task(context: ToolContext) -> str:
    """Asks at once, and then takes its time."""
    answer = await context.ask("What is your name?", form(name=TEXT), name="user_name")
    await asyncio.sleep(0.6)
    return f"Hello, {answer['name']}!"


@tool(name="other_tool", side_effects="none")
async def other_tool() -> str:
    """Is changed."""
    return "other"


@tool(name="other_prompt", side_effects="none", mcp=McpOffer(show_as="prompt"))
async def other_prompt() -> str:
    """Is changed."""
    return "other"


def triggers(crib: Crib) -> tuple[Any, ...]:
    """Tools with which the suite changes the lists that it listens to."""

    async def change(name: str) -> None:
        known = crib.registry.current("default")
        tool = next(each for each in known if each.name == name)
        described = tool.definition.model_copy(update={"description": f"{tool.definition.description} Again."})
        await crib.save(described, after=tool.revision)

    @tool(name="test_trigger_tool_change", side_effects="none")
    async def trigger_tool_change() -> str:
        """Changes a tool."""
        await change("other_tool")
        return "changed"

    @tool(name="test_trigger_prompt_change", side_effects="none")
    async def trigger_prompt_change() -> str:
        """Changes a prompt."""
        await change("other_prompt")
        return "changed"

    return trigger_tool_change, trigger_prompt_change


TOOLS: tuple[Any, ...] = (
    greet,
    slow_compute,
    failing_job,
    confirm_delete,
    multi_input,
    tool_with_task,
    other_tool,
    other_prompt,
    with_logging,
    sampling,
    missing_capability,
    input_sampling,
    input_roots,
    input_several,
    input_capabilities,
    streaming_elicitation,
    logging_tool,
    elicitation,
    elicitation_defaults,
    elicitation_enums,
    input_elicitation,
    input_state,
    input_tampered,
    input_rounds,
    input_prompt,
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
