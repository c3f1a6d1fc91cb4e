"""Tools of kind `http`: HTTP operations, written by hand or imported from OpenAPI.

Imported by `kinds.table`; other packages import the modules. Decisions: docs/decisions/0006.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts import JsonObject, ProviderDefinition, ToolDefinition
from toolcrib.core.kinds import KindSpec
from toolcrib.kinds.http.commands import CONNECTION, IMPORTERS
from toolcrib.kinds.http.shape import HttpImplementation

if TYPE_CHECKING:
    from toolcrib.core.kinds import Runtime, RuntimeParts


def _check(definition: ToolDefinition, http: HttpImplementation) -> None:
    from toolcrib.kinds.http.checks import check_http

    check_http(definition, http)


def _open_runtime(parts: "RuntimeParts") -> "Runtime":
    from toolcrib.kinds.http.runtime import HttpRuntime

    return HttpRuntime(parts.session, parts.access, blob_sink=parts.blobs, clock=parts.clock)


def _preview(
    tool: ToolDefinition,
    shape: HttpImplementation,
    arguments: JsonObject,
    *,
    provider: ProviderDefinition | None,
    idempotency_key: str,
) -> JsonObject:
    from toolcrib.kinds.http.runtime import preview_request

    request = preview_request(tool, arguments, provider, idempotency_key=idempotency_key)
    return {"method": shape.method} if request is None else request._asdict()


KIND = KindSpec(
    HttpImplementation,
    check=_check,
    open_runtime=_open_runtime,
    preview=_preview,
    importers=IMPORTERS,
    connection=CONNECTION,
)
