"""Runs as results of `tools/call`.

An error of a tool, a denial and wrong arguments are results with `isError`, which a model reads and can act on. `_meta`
names the run, which `toolcrib run show` explains. Images, sounds and files that a tool returned are blocks of content.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Final, cast

import mcp_types as types
import orjson

from toolcrib.contracts import Attachment, Json, JsonObject, NotFound, ToolRevision
from toolcrib.core.runs import Result
from toolcrib.crib import ActingCrib

RUN: Final = "toolcrib/run_id"
"""Key of `_meta`."""
STATUS: Final = "toolcrib/status"
COST: Final = "toolcrib/cost_usd"

_LARGEST: Final = 5 * 1024 * 1024
"""Bytes of a file that is sent; a larger one is named."""
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
    attached = {} if envelope is None else {each.url: each for each in envelope.attachments}
    content = await _content(crib, result.run_id, output, attached)
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


async def _content(
    crib: ActingCrib, run_id: str, output: Json, attached: Mapping[str, Attachment]
) -> list[types.ContentBlock]:
    """The output as blocks: a list of texts and files in its order, and then what is attached besides."""
    listed: Sequence[Json] = cast("Sequence[Json]", output) if isinstance(output, list) else [output]
    parts: Sequence[Json] = listed if any(file_in(part, attached) for part in listed) else [output]
    blocks: list[types.ContentBlock] = []
    left = dict(attached)
    for part in parts:
        file = file_in(part, attached)
        blocks.append(types.TextContent(text=as_text(part)) if file is None else await block_of(crib, run_id, file))
        left.pop(file.url if file is not None else "", None)
    return [*blocks, *[await block_of(crib, run_id, each) for each in left.values()]]


def file_in(part: Json, attached: Mapping[str, Attachment]) -> Attachment | None:
    """The attachment that a part of an output describes; null if it describes none.

    Args:
        part: A value in an output.
        attached: The attachments of the call by their URLs.
    """
    described = cast("JsonObject", part) if isinstance(part, dict) and "media_type" in part else {}
    return attached.get(str(described.get("url")))


async def block_of(crib: ActingCrib, run_id: str, attachment: Attachment) -> types.ContentBlock:
    """An attachment as a block: an image, a sound, an embedded file, or a link."""
    kind = attachment.content_type or "application/octet-stream"
    sent = attachment.kind in {"image", "file"} or kind.startswith("audio/")
    if not sent or attachment.digest is None or (attachment.bytes or 0) > _LARGEST:
        return _link(run_id, attachment)
    try:
        _, payload = await crib.executions.read_attachment(run_id, attachment.digest)
    except NotFound:
        return _link(run_id, attachment)  # it was deleted meanwhile
    data = base64.b64encode(payload).decode()
    if attachment.kind == "image":
        return types.ImageContent(data=data, mime_type=kind)
    if kind.startswith("audio/"):
        return types.AudioContent(data=data, mime_type=kind)
    elsewhere = attachment.name is not None and "://" in attachment.name
    uri = str(attachment.name) if elsewhere else attachment_uri(run_id, attachment)
    if kind.startswith("text/") or kind == "application/json":
        text = payload.decode(errors="replace")
        return types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, mime_type=kind, text=text))
    return types.EmbeddedResource(resource=types.BlobResourceContents(uri=uri, mime_type=kind, blob=data))


def _link(run_id: str, attachment: Attachment) -> types.ContentBlock:
    return types.ResourceLink(
        type="resource_link",
        name=attachment.name or attachment.kind,
        uri=attachment_uri(run_id, attachment),
        mime_type=attachment.content_type,
        size=attachment.bytes,
    )


def attachment_uri(run_id: str, attachment: Attachment) -> str:
    """Address of an attachment among the resources of the server; its own if it is not kept in the crib."""
    return attachment.url if attachment.digest is None else f"toolcrib://runs/{run_id}/attachments/{attachment.digest}"
