"""`HttpRuntime` executes calls of HTTP tools; `preview_request` shows a request without sending it."""

from typing import Final, NamedTuple, get_args

from toolcrib.contracts import (
    ErrorCode,
    InvalidInput,
    InvalidSettings,
    JsonObject,
    ProviderDefinition,
    Reason,
    ToolDefinition,
)
from toolcrib.core.executor import BlobSink, CallFailed, Clock, Dispatch, Outcome, error
from toolcrib.core.providers import ProviderAccess
from toolcrib.infrastructure.net import HttpSession
from toolcrib.kinds.http.runtime.exchange import Access, Exchange
from toolcrib.kinds.http.runtime.list_pages import follow
from toolcrib.kinds.http.runtime.requests import Target, describe_request, whole_address
from toolcrib.kinds.http.runtime.response_forms import check_form
from toolcrib.kinds.http.shape import HttpImplementation, HttpMethod

_METHODS: Final = get_args(HttpMethod)
_TOLD: Final = frozenset({ErrorCode.TIMEOUT, ErrorCode.NETWORK_ERROR, ErrorCode.PROVIDER_ERROR})
"""Failures of a request that was sent, with or without a response."""


class HttpRuntime:
    """Executes tools of kind `http`.

    A call is one attempt: which failures are tried again, and when, is the tool's error handling in the executor. There
    are two exceptions. If a page after the first is refused by a rate limit, the same page is asked for once more after
    the wait that the other side names (a second if it names none), unless that is longer than 10 seconds; a second
    refusal fails the call. And if the other side refuses a token that was fetched for it (401), the request is sent
    once more with a new one. Every request, a repeated one included, is taken from the run's budget first.

    A paged tool returns the last page's document with the items of all pages in its list, and `metadata["paging"]` says
    how many pages there were and whether the list is complete; if it is not, and the caller did not ask for less, a
    warning says so too. A call that gives the cursor, the offset or the page gets that page alone; one that gives the
    page size gets no further pages once it has so many items. Only reading methods follow redirects: a redirected write
    would arrive as something else.

    Args:
        session: The way out.
        providers: Finds providers and the credentials for them.
        blob_sink: Keeps files that are too large for an output.
        clock: Time.
    """

    def __init__(self, session: HttpSession, providers: ProviderAccess, *, blob_sink: BlobSink, clock: Clock) -> None:
        self._session = session
        self._providers = providers
        self._blob_sink = blob_sink
        self._clock = clock

    async def run(self, dispatch: Dispatch) -> Outcome:
        """Execute once.

        Raises:
            CallFailed: As the tables of `failures` say; it names the credentials that must not be shown.
        """
        exchange = self._begin(dispatch)
        if dispatch.tool.definition.runs_on == "client":
            return Outcome(describe_request(exchange.target, dispatch.input))
        paging = exchange.target.implementation.paging
        try:
            if paging is None or dispatch.input.get(paging.start_argument or "") is not None:
                response = await exchange.send(dispatch.input)
                return await exchange.outcome(response)
            return await follow(exchange, paging)
        except CallFailed as failure:
            failure.secrets += exchange.secrets
            failure.sent = True if exchange.is_answered else failure.sent
            if exchange.target.implementation.errors_as_text and _was_asked(failure):
                return _as_text(failure)
            raise

    def _begin(self, dispatch: Dispatch) -> Exchange:
        tool = dispatch.tool.definition
        implementation = tool.implementation
        if not isinstance(implementation, HttpImplementation):
            message = f"tool {tool.name!r} is of kind {implementation.kind!r}, which this runtime does not execute"
            raise CallFailed(error(ErrorCode.UNKNOWN, Reason.RUNTIME_MISSING, message))
        name = implementation.provider
        provider = None if name is None else self._providers.require(dispatch.tool, name)
        implementation = apply_arguments(tool, implementation, dispatch.input)
        url = implementation.url if provider is None else provider.locate(implementation.url)
        headers = {} if provider is None else provider.headers
        target = Target(tool, implementation, url, headers, dispatch.idempotency_key)
        access = Access(provider, url, implementation.security, dispatch.context.principal, self._providers)
        return Exchange(dispatch, target, access, self._session, self._blob_sink, self._clock)


def apply_arguments(
    tool: ToolDefinition, implementation: HttpImplementation, arguments: JsonObject
) -> HttpImplementation:
    """The operation with what its arguments choose: the address, the method.

    Raises:
        CallFailed: The address or the method is invalid, or this process cannot read the response form that the tool
            wants.
    """
    try:
        check_form(implementation)
    except InvalidSettings as problem:
        message = f"tool {tool.name!r} was not called: {problem}"
        raise CallFailed(error(ErrorCode.UNKNOWN, Reason.RUNTIME_MISSING, message)) from None
    url = whole_address(tool, implementation.url, arguments)
    method = arguments.get(implementation.method_argument or "") or implementation.method
    if method not in _METHODS:
        message = f"tool {tool.name!r} was not called: {implementation.method_argument!r} is none of {_METHODS}"
        raise CallFailed(error(ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH, message), sent=False)
    if (url, method) == (implementation.url, implementation.method):
        return implementation
    return implementation.model_copy(update={"url": url, "method": method})


def _was_asked(failure: CallFailed) -> bool:
    """Whether the other side or the network failed the call, and not policy or the call itself."""
    return failure.http_status is not None or failure.error.code in _TOLD


def _as_text(failure: CallFailed) -> Outcome:
    """The failure as an output that is marked as an error."""
    facts: JsonObject = {"error": failure.error.model_dump(mode="json", include={"code", "message", "retry_after_s"})}
    message = failure.error.message
    return Outcome(
        f"Error: {message}",
        http_status=failure.http_status,
        metadata={**failure.metadata, **facts, "warnings": [f"the output is an error: {message}"]},
        secrets=failure.secrets,
    )


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
        idempotency_key: The idempotency key of the call.
    """
    implementation = tool.implementation
    if not isinstance(implementation, HttpImplementation):
        return None
    if implementation.provider is not None and provider is None:
        return None
    try:
        operation = apply_arguments(tool, implementation, arguments)
        url = operation.url if provider is None else provider.locate(operation.url)
        shown = describe_request(Target(tool, operation, url, {}, idempotency_key), arguments)
    except (CallFailed, InvalidInput):
        return None
    return ShownRequest(shown["method"], shown["url"])
