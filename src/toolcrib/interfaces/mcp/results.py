"""Runs as results of `tools/call`.

An error of a tool, a denial and wrong arguments are results with `isError`, which a model reads and can act on. `_meta`
names the run, which `toolcrib run show` explains. An image that a tool attached is sent with the result.
"""

import base64
from collections.abc import AsyncIterator
from typing import Final

import mcp_types as types
import orjson

from toolcrib.contracts import Attachment, Json, NotFound, ToolEnvelope, ToolRevision
from toolcrib.core.runs import Result
from toolcrib.crib import ActingCrib

RUN: Final = "toolcrib/run_id"
"""Key of `_meta`."""
STATUS: Final = "toolcrib/status"
COST: Final = "toolcrib/cost_usd"

_LARGEST_IMAGE: Final = 5 * 1024 * 1024
"""Bytes of an image that is sent; a larger one is named."""
_MODERN: Final = "2026-07-28"
"""From this revision on, a structured result may be any JSON value."""


async def result_of(crib: ActingCrib, tool: ToolRevision, result: Result, *, protocol: str) -> types.CallToolResult:
    """The result of a call whose run has ended.

    Args:
        crib: Acts as the client's principal.
        tool: What was called.
        result: The run.
        protocol: The revision of the protocol.
    """
    if not result.ok:
        return failure(why(result), result)
    envelope = result.envelopes[-1] if result.envelopes else None
    whole = envelope is None or not envelope.truncated
    output = result.summary.output
    promised = (tool.definition.output_schema or {}).get("type") == "object"
    if promised and not whole:
        text = f"The output is larger than {tool.definition.max_output_bytes} bytes. Ask for less. It begins:\n"
        return failure(text + as_text(output), result)
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=as_text(output))]
    if envelope is not None:
        content += [block async for block in _attached(crib, result.run_id, envelope)]
    fits = isinstance(output, dict) or protocol >= _MODERN
    return types.CallToolResult(
        content=content, structured_content=output if fits and whole else None, _meta=meta_of(result)
    )


def failure(text: str, result: Result) -> types.CallToolResult:
    """A result that says why there is no output."""
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=content, is_error=True, _meta=meta_of(result))


def meta_of(result: Result) -> dict[str, Json]:
    """What a client can look the run up by, and what the run cost."""
    meta: dict[str, Json] = {RUN: result.run_id, STATUS: result.status}
    if result.cost_usd:
        meta[COST] = float(result.cost_usd)
    return meta


def as_text(output: Json) -> str:
    """An output as text for a model: a text as it is, everything else as JSON."""
    return output if isinstance(output, str) else orjson.dumps(output).decode()


def why(result: Result) -> str:
    """Why a run has no output."""
    error = result.error
    if error is None:
        text = f"The run ended without an answer: {result.status}, {result.stop_reason}."
    else:
        text = f"{error.code}: {error.message}"
    return text if result.partial is None else f"{text}\nDone until then: {as_text(result.partial)}"


async def _attached(crib: ActingCrib, run_id: str, envelope: ToolEnvelope) -> AsyncIterator[types.ContentBlock]:
    for attachment in envelope.attachments:
        image = attachment.kind == "image" and (attachment.bytes or 0) <= _LARGEST_IMAGE
        if image and attachment.digest is not None:
            try:
                described, payload = await crib.executions.read_attachment(run_id, attachment.digest)
            except NotFound:
                continue  # it was deleted meanwhile
            kind = described.content_type or "application/octet-stream"
            yield types.ImageContent(type="image", data=base64.b64encode(payload).decode(), mime_type=kind)
        else:
            yield _link(run_id, attachment)


def _link(run_id: str, attachment: Attachment) -> types.ContentBlock:
    return types.ResourceLink(
        type="resource_link",
        name=attachment.kind,
        uri=attachment_uri(run_id, attachment),
        mime_type=attachment.content_type,
        size=attachment.bytes,
    )


def attachment_uri(run_id: str, attachment: Attachment) -> str:
    """Address of an attachment among the resources of the server; its own if it is not kept in the crib."""
    return attachment.url if attachment.digest is None else f"toolcrib://runs/{run_id}/attachments/{attachment.digest}"
