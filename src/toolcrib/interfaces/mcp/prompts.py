"""Prompts of the MCP server: tools that are offered as prompts.

To get a prompt is a call of the tool. Its output is a text, which becomes one message of the user, or a list of
messages `{"role": "user" | "assistant", "content": "…"}`, or an object with `messages` and `description`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import mcp_types as types

from toolcrib.contracts import Attachment, InvalidInput, Json, JsonObject, JsonSchema, ToolRevision
from toolcrib.core.runs import Result
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.mcp.offers import ToolOffers, parse_arguments
from toolcrib.interfaces.mcp.results import as_text, block_of, file_in, why

_MOST: Final = 100
"""Values of one completion, as the protocol limits them."""


class McpPrompts:
    """The prompts that a client is offered.

    Args:
        offers: What the client is offered.
    """

    def __init__(self, offers: ToolOffers) -> None:
        self._offers = offers

    async def list(self) -> types.ListPromptsResult:
        """The prompts that the principal may use."""
        prompts = [
            types.Prompt(
                name=each.name,
                title=each.tool.definition.title,
                description=each.tool.definition.description,
                arguments=_arguments(each.tool.definition.input_schema),
            )
            for each in await self._offers.all("prompt")
        ]
        return types.ListPromptsResult(prompts=prompts)

    @property
    def crib(self) -> ActingCrib:
        """Acts as the client's principal."""
        return self._offers.crib

    async def find(self, name: str) -> ToolRevision:
        """The tool behind a prompt.

        Raises:
            InvalidInput: There is no such prompt for this principal.
        """
        tool = await self._offers.find(name, "prompt")
        if tool is None:
            msg = f"there is no prompt {name[:100]!r}; prompts/list has those there are"
            raise InvalidInput(msg)
        return tool

    async def run(self, tool: ToolRevision, arguments: Mapping[str, str]) -> Result[Json]:
        """Call the tool of a prompt.

        Raises:
            InvalidInput: The arguments do not fit.
        """
        return await self.crib.invoke(f"{tool.name}@{tool.content_hash}", parse_arguments(tool, arguments))

    async def read(self, tool: ToolRevision, result: Result[Json]) -> types.GetPromptResult:
        """The messages that a run has brought.

        Raises:
            InvalidInput: The tool has failed.
        """
        if not result.ok:
            msg = f"run {result.run_id} of {tool.name!r} has no output: {why(result)}"
            raise InvalidInput(msg)
        output = result.summary.output
        whole = cast("JsonObject", output) if isinstance(output, dict) and "messages" in output else {}
        envelope = result.envelopes[-1] if result.envelopes else None
        attached = {} if envelope is None else {each.url: each for each in envelope.attachments}
        listed = _listed(whole.get("messages", output))
        messages = [await _message(self._offers.crib, result.run_id, each, attached) for each in listed]
        description = whole.get("description") or tool.definition.description
        return types.GetPromptResult(description=str(description), messages=messages)


def complete(tool: ToolRevision, argument: str, begun: str) -> types.Completion:
    """The values of an argument that begin with a text: those of its schema's `enum` and `examples`.

    Args:
        tool: What takes the argument.
        argument: Its name.
        begun: What the person has typed.
    """
    properties = cast("JsonObject", tool.definition.input_schema.get("properties", {}))
    schema = properties.get(argument)
    known = cast("JsonSchema", schema) if isinstance(schema, dict) else {}
    texts = [str(value) for key in ("enum", "examples") for value in cast("Sequence[Json]", known.get(key) or ())]
    found = [text for text in dict.fromkeys(texts) if text.casefold().startswith(begun.casefold())]
    return types.Completion(values=found[:_MOST], total=len(found), has_more=len(found) > _MOST)


def _arguments(schema: JsonSchema) -> list[types.PromptArgument]:
    required = cast("Sequence[str]", schema.get("required", ()))
    properties = cast("Mapping[str, Any]", schema.get("properties", {}))
    return [
        types.PromptArgument(
            name=name,
            description=cast("JsonObject", part).get("description") if isinstance(part, dict) else None,
            required=name in required,
        )
        for name, part in properties.items()
    ]


def _listed(output: Json) -> Sequence[Json]:
    return cast("Sequence[Json]", output) if isinstance(output, list) else [output]


async def _message(
    crib: ActingCrib, run_id: str, value: Json, attached: Mapping[str, Attachment]
) -> types.PromptMessage:
    given = cast("JsonObject", value) if isinstance(value, dict) else {}
    said: JsonObject = given if "content" in given else {"content": value}
    role = "assistant" if said.get("role") == "assistant" else "user"
    file = file_in(said["content"], attached)
    if file is not None:
        return types.PromptMessage(role=role, content=await block_of(crib, run_id, file))
    return types.PromptMessage(role=role, content=types.TextContent(text=as_text(said["content"])))
