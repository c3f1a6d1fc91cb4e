"""What the client raises: the problem documents (RFC 9457) of the server, and failures to reach it."""

from typing import Any

from toolcrib.contracts import JsonObject, ToolcribError, Unavailable


class ServerUnreachable(Unavailable):
    """No answer came: the address is wrong, the server is down, or the time was over."""

    code = "server_unreachable"


class ServerProblem(ToolcribError):
    """The server refused a request or failed.

    Args:
        status: The HTTP status.
        document: The problem document, or what of one is known.

    Example:
        from toolcrib.client import Client, ServerProblem

        def find(client: Client, name: str) -> str | None:
            try:
                return client.tools.get(name).definition.description
            except ServerProblem as problem:
                if problem.code != "not_found":
                    raise
                return None
    """

    code = "server_problem"

    def __init__(self, status: int, document: JsonObject) -> None:
        super().__init__(str(document.get("detail") or f"the server answered with status {status}"))
        self.status = status
        self.code: str = str(document.get("code") or "server_problem")  # pyright: ignore[reportIncompatibleVariableOverride] - the server's
        """Stable: `not_found`, `conflict`, `invalid_input`… (docs/troubleshooting.md)."""
        self.type: str = str(document.get("type") or "about:blank")
        """Where the documentation says what to do."""
        self.title: str = str(document.get("title") or "")
        self.instance: str = str(document.get("instance") or "")
        self.reason: str | None = document.get("reason")
        """The finer cause; null if there is none."""
        self.details: dict[str, Any] = document.get("details") or {}
        """`problems`: a list of `{path, problem}` for a request that is not valid."""
