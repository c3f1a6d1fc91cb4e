"""From what a runtime brought back to what the envelope may hold: selected, checked, redacted, cut to size."""

from typing import cast

import orjson

from toolcrib.contracts import (
    Attachment,
    ErrorCode,
    InvalidExpression,
    Json,
    JsonObject,
    Reason,
    ToolDefinition,
)
from toolcrib.executor.ports import Attic, CallFailed
from toolcrib.executor.receipt import error
from toolcrib.expressions.jsonpath import select
from toolcrib.registry import compile_schema


def select_output(tool: ToolDefinition, output: Json) -> Json:
    """Apply the tool's response mapping: one match is the output itself, several are a list, none is null.

    Raises:
        CallFailed: The path cannot be applied.
    """
    if tool.select is None:
        return output
    try:
        found = select(tool.select, output)
    except InvalidExpression as problem:
        message = f"tool {tool.name!r} ran, but its response mapping failed: {problem}"
        raise CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, message)) from problem
    return found[0] if len(found) == 1 else found or None


def check_output(tool: ToolDefinition, output: Json, metadata: JsonObject) -> JsonObject:
    """Hold the output against the tool's schema.

    What our own tools promise must hold. What an imported document promises about a foreign system often does not:
    there a mismatch is a warning in the metadata.

    Returns:
        The metadata, with a warning if there is one.

    Raises:
        CallFailed: The output of a tool that was not imported does not match.
    """
    if tool.output_schema is None:
        return metadata
    problems = compile_schema(tool.output_schema).problems(output)
    if not problems:
        return metadata
    message = f"tool {tool.name!r} ran, but its output does not match its output_schema: {problems[0]}"
    if tool.source == "imported":
        return {**metadata, "warnings": [message]}
    found = [problem.as_json() for problem in problems]
    raise CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.OUTPUT_SCHEMA_MISMATCH, message, problems=found))


async def fit(
    output: Json, limit: int, attic: Attic, *, realm: str, made_by: str
) -> tuple[Json, tuple[Attachment, ...]]:
    """Cut an output that is larger than the limit, and keep the whole of it as a blob.

    Args:
        output: JSON.
        limit: Most bytes of its JSON text.
        attic: Where the whole goes.
        realm: Owner of the blob.
        made_by: Who made the call.

    Returns:
        What fits, and the attachment that names the whole; the output itself and nothing if it fits.
    """
    data = orjson.dumps(output)
    if len(data) <= limit:
        return output, ()
    digest = await attic.put(data, realm=realm, made_by=made_by)
    whole = Attachment(kind="blob", url=f"blob:sha256:{digest}", content_type="application/json", bytes=len(data))
    return _cut(output, data, limit), (whole,)


def _cut(output: Json, data: bytes, limit: int) -> Json:
    """As many leading items of a list as fit; of anything else, the beginning of its text."""
    if isinstance(output, list):
        kept: list[Json] = []
        size = 2
        for item in cast("list[Json]", output):
            size += len(orjson.dumps(item)) + 1
            if size > limit:
                break
            kept.append(item)
        return kept
    text = output.encode() if isinstance(output, str) else data
    return text[: max(limit - 2, 0)].decode(errors="ignore")
