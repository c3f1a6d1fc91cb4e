"""What a client is to do where the tool is another system's operation: operation and arguments, and no credentials.

Functions, code, composite and agentic tools prepare by running, and are not handled here. An HTTP operation is prepared
by its runtime, as the very request.
"""

from toolcrib.contracts import EntityImplementation, GrpcImplementation, JsonObject, McpImplementation
from toolcrib.core.executor import Dispatch, Outcome


def prepared(dispatch: Dispatch) -> Outcome | None:
    """The payload for the client, or null if the tool's runtime makes it."""
    definition = dispatch.tool.definition
    if definition.runs_on == "server":
        return None
    payload: JsonObject
    match definition.implementation:
        case McpImplementation() as mcp:
            payload = {"provider": mcp.provider, "capability": mcp.capability, "name": mcp.name}
        case GrpcImplementation() as grpc:
            payload = {"provider": grpc.provider, "method": grpc.method, "request": grpc.request}
        case EntityImplementation() as entity:
            payload = {"provider": entity.provider, "operation": entity.operation, "table": entity.table}
        case _:
            return None
    return Outcome({**payload, "kind": definition.implementation.kind, "arguments": dispatch.input})
