"""What an HTTP call would ask for, without doing it: for a person who is to approve it. Nobody is reached."""

from typing import NamedTuple

from toolcrib.contracts import HttpImplementation, InvalidInput, JsonObject, ProviderDefinition, ToolDefinition
from toolcrib.core.executor import CallFailed
from toolcrib.kinds.http.runtime.requests import Target, shown_request
from toolcrib.kinds.http.runtime.runtime import chosen


class ShownRequest(NamedTuple):
    """The first line of a request."""

    method: str
    url: str
    """With the arguments in their places, and without credentials."""


def preview_request(
    tool: ToolDefinition, arguments: JsonObject, provider: ProviderDefinition | None, *, idempotency_key: str
) -> ShownRequest | None:
    """The request of a call; null if the tool makes none, or the arguments make none of it.

    Args:
        tool: The tool.
        arguments: Validated.
        provider: The system that the tool names.
        idempotency_key: Of the call.
    """
    implementation = tool.implementation
    if not isinstance(implementation, HttpImplementation):
        return None
    if implementation.provider is not None and provider is None:
        return None
    try:
        operation = chosen(tool, implementation, arguments)
        url = operation.url if provider is None else provider.locate(operation.url)
        shown = shown_request(Target(tool, operation, url, {}, idempotency_key), arguments)
    except (CallFailed, InvalidInput):
        return None
    return ShownRequest(shown["method"], shown["url"])
