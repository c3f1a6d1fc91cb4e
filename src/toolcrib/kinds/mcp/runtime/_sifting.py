"""The SDK's dispatcher of messages, with two things more: it sifts lists, and it tells when it has ended.

The SDK refuses a whole page of a list for one malformed entry. A server that is wrong about one tool shall not hide the
others, so each entry is judged alone; those that are malformed are kept aside with what is wrong with them.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import anyio.abc
from mcp.shared.dispatcher import CallOptions, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import RequestId, methods
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from pydantic import ValidationError

from toolcrib.contracts import Json

_LISTS: Final[Mapping[str, str]] = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


class Sifting(JSONRPCDispatcher):
    """Dispatches the messages of one session; its lists are asked for one after the other.

    Args:
        *streams: Of the transport.
        on_end: Called when no more messages will come.
    """

    def __init__(self, *streams: Any, on_end: Callable[[], None]) -> None:
        super().__init__(*streams)
        self.version = LATEST_HANDSHAKE_VERSION
        """Of the protocol, as it was negotiated."""
        self.page: list[Json] = []
        """All entries of the page that was read last."""
        self.malformed: dict[int, str] = {}
        """What is wrong with some of them, by index."""
        self._on_end = on_end

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        *,
        _related_request_id: RequestId | None = None,
    ) -> dict[str, Any]:
        """As the SDK's, without the malformed entries of a list."""
        raw = await super().send_raw_request(method, params, opts, _related_request_id=_related_request_id)
        name = _LISTS.get(method)
        if name is None or not isinstance(raw.get(name), list):
            return raw
        self.page = cast("list[Json]", raw[name])
        self.malformed = {}
        for index, entry in enumerate(self.page):
            try:
                methods.validate_server_result(method, self.version, {**raw, name: [entry]})
            except ValidationError as error:
                self.malformed[index] = explained(error)
        return {**raw, name: [entry for index, entry in enumerate(self.page) if index not in self.malformed]}

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """As the SDK's."""
        try:
            await super().run(on_request, on_notify, on_notify_intercept, task_status=task_status)
        finally:
            self._on_end()


def explained(error: ValidationError) -> str:
    """The first thing that is wrong, and where; not what was sent."""
    first = error.errors(include_input=False, include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{first['msg']} at {place}" if place else first["msg"]
