"""`GraphqlRuntime`: executes tools of kind `graphql`. It needs neither the schema nor graphql-core."""

from collections.abc import Mapping
from typing import Final

from toolcrib.contracts import (
    EgressDenied,
    ErrorCode,
    InvalidInput,
    JsonObject,
    ProviderDefinition,
    Reason,
    ToolDefinition,
)
from toolcrib.core.executor import CallFailed, Clock, Dispatch, Outcome, error
from toolcrib.core.providers import Credentials, ProviderAccess
from toolcrib.core.providers.request_errors import count_request, network_failure, request_limit_s
from toolcrib.infrastructure.net import HttpResponse, HttpSession, NetworkError
from toolcrib.kinds.graphql.exchange import (
    GraphqlAnswer,
    UnsendableOperation,
    errors_beside,
    errors_failure,
    no_answer,
    post,
    read_answer,
    write_operation,
)
from toolcrib.kinds.graphql.shape import GraphqlImplementation
from toolcrib.kinds.http.runtime.exchange import Access
from toolcrib.kinds.http.runtime.failures import status_failure
from toolcrib.kinds.http.runtime.response_bodies import visible_headers

_HEADER_KEY: Final = "header:"
_REFUSED: Final = frozenset({"UNAUTHENTICATED", "INVALID_JWT", "INVALID_TOKEN"})
"""Codes of errors with which a server refuses a token under a status of success."""


class GraphqlRuntime:
    """Executes queries and mutations of GraphQL servers.

    A call is one attempt, with one exception: if the server refuses a token that was fetched for it, the operation is
    sent once more with a new one. Errors beside data are a success with a warning; errors without it fail the call.

    Args:
        session: The way out.
        providers: Finds providers and the credentials for them.
        clock: Time.
    """

    def __init__(self, session: HttpSession, providers: ProviderAccess, *, clock: Clock) -> None:
        self._session = session
        self._providers = providers
        self._clock = clock

    async def run(self, dispatch: Dispatch) -> Outcome:
        """Execute once.

        Raises:
            CallFailed: As the table of `exchange` says; it names the credentials that must not be shown.
        """
        tool = dispatch.tool.definition
        implementation = tool.implementation
        if not isinstance(implementation, GraphqlImplementation):
            message = f"tool {tool.name!r} is of kind {implementation.kind!r}, which this runtime does not execute"
            raise CallFailed(error(ErrorCode.UNKNOWN, Reason.RUNTIME_MISSING, message))
        provider = self._providers.require(dispatch.tool, implementation.provider)
        variables = _variables(dispatch)
        if tool.runs_on == "client":
            return Outcome(describe_operation(implementation, provider, variables))
        access = Access(provider, provider.address, None, dispatch.context.principal, self._providers)
        call = _GraphqlCall(dispatch, implementation, provider, session=self._session, access=access, clock=self._clock)
        try:
            return await call.make(variables)
        except CallFailed as failure:
            failure.secrets += call.secrets
            failure.sent = True if call.is_answered else failure.sent
            raise


def describe_operation(
    implementation: GraphqlImplementation, provider: ProviderDefinition, variables: JsonObject
) -> JsonObject:
    """The operation that a client is to send itself, without credentials."""
    return {
        "kind": implementation.kind,
        "provider": implementation.provider,
        "url": provider.address,
        "query": implementation.document,
        "operationName": implementation.operation_name,
        "variables": variables,
    }


class _GraphqlCall:
    """The one or two requests of a call."""

    def __init__(
        self,
        dispatch: Dispatch,
        implementation: GraphqlImplementation,
        provider: ProviderDefinition,
        *,
        session: HttpSession,
        access: Access,
        clock: Clock,
    ) -> None:
        self._dispatch = dispatch
        self._implementation = implementation
        self._provider = provider
        self._access = access
        self._session = session
        self._clock = clock
        self.secrets: tuple[str, ...] = ()
        """Of all credentials that were used so far."""
        self.is_answered = False
        """Whether there was a response to a request."""

    @property
    def _tool(self) -> ToolDefinition:
        return self._dispatch.tool.definition

    async def make(self, variables: JsonObject) -> Outcome:
        """Ask, and once more if a fetched token was refused."""
        document, name = self._implementation.document, self._implementation.operation_name
        try:
            body = write_operation(document, name, variables)
        except UnsendableOperation as problem:
            raise _input_failure(self._tool, problem) from None
        credentials = await self._access.credentials()
        response, answer = await self._ask(body, credentials)
        if _is_refused(response, answer) and self._access.forget(credentials):
            response, answer = await self._ask(body, await self._access.credentials())
        try:
            return self._outcome(response, answer)
        except CallFailed as failure:
            raise self._access.with_reconnect_hint(failure, credentials) from None

    async def _ask(self, body: bytes, credentials: Credentials) -> tuple[HttpResponse, GraphqlAnswer | None]:
        tool = self._tool
        self.secrets = tuple(dict.fromkeys((*self.secrets, *credentials.secrets)))
        count_request(self._dispatch)
        try:
            response = await post(
                self._session,
                self._provider,
                credentials,
                body,
                within_s=request_limit_s(tool, self._provider),
                headers=_key_header(tool, self._dispatch.idempotency_key),
            )
        except UnsendableOperation as problem:
            raise _input_failure(tool, problem) from None
        except (EgressDenied, NetworkError, InvalidInput) as problem:
            raise network_failure(tool, problem) from None
        self.is_answered = True
        return response, read_answer(response)

    def _outcome(self, response: HttpResponse, answer: GraphqlAnswer | None) -> Outcome:
        tool, implementation = self._tool, self._implementation
        if answer is None:
            if 200 <= response.status < 300:
                raise no_answer(tool, implementation, response)
            is_again = self._dispatch.attempt > 1 or self._dispatch.context.attempt > 1
            raise status_failure(tool, response, self._clock.now(), again=is_again)
        key, data = implementation.output_key, answer.data
        output = data if key is None or data is None else data.get(key)
        if output is None and answer.errors:
            raise errors_failure(tool, implementation, response, answer, self._clock.now())
        if data is None or (key is not None and key not in data):
            raise no_answer(tool, implementation, response)
        return Outcome(
            output,
            http_status=response.status,
            metadata={"headers": visible_headers(response), **errors_beside(answer)},
            secrets=self.secrets,
        )


def _variables(dispatch: Dispatch) -> JsonObject:
    """The arguments, with the key of the call where the tool takes it as one of them."""
    taken_by = dispatch.tool.definition.idempotency_key
    if taken_by is None or taken_by.startswith(_HEADER_KEY):
        return dispatch.input
    return {taken_by: dispatch.idempotency_key, **dispatch.input}


def _key_header(tool: ToolDefinition, key: str) -> Mapping[str, str]:
    taken_by = tool.idempotency_key
    if taken_by is None or not taken_by.startswith(_HEADER_KEY):
        return {}
    return {taken_by.removeprefix(_HEADER_KEY).lower(): key}


def _is_refused(response: HttpResponse, answer: GraphqlAnswer | None) -> bool:
    """Whether the credentials were refused before anything was executed."""
    if response.status == 401:
        return True
    if answer is None or any(value is not None for value in (answer.data or {}).values()):
        return False
    if any(len(found.path or ()) > 1 for found in answer.errors):
        return False
    return any(found.code in _REFUSED for found in answer.errors)


def _input_failure(tool: ToolDefinition, problem: UnsendableOperation) -> CallFailed:
    message = f"tool {tool.name!r} was not called: {problem}; correct the arguments and call again"
    return CallFailed(error(ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH, message), sent=False)
