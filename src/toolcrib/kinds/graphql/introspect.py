"""Asking a GraphQL server for its schema, with the provider's credentials and under the egress policy.

A server that does not know the newer parts of introspection is asked once more without them. Loads graphql-core.
"""

from typing import Final

from graphql import get_introspection_query

from toolcrib.contracts import (
    InvalidDefinition,
    InvalidInput,
    JsonObject,
    Principal,
    ProviderDefinition,
    ReconnectRequired,
    ToolcribError,
    Unavailable,
)
from toolcrib.core.providers import Credentials, ProviderAccess
from toolcrib.infrastructure.net import HttpResponse, HttpSession
from toolcrib.kinds.graphql.exchange import Answer, UnsendableOperation, post, read_answer, write_operation
from toolcrib.kinds.graphql.failures import is_refusal
from toolcrib.kinds.graphql.schema import MAX_BYTES

TIMEOUT_S: Final = 60.0
"""Of each question."""

_NAME: Final = "IntrospectionQuery"
_QUESTIONS: Final = (
    get_introspection_query(specified_by_url=True, input_value_deprecation=True, one_of=True),
    get_introspection_query(),
)
_MAX_WORDS: Final = 300
_INSTEAD: Final = "give the schema as an SDL file instead"


async def introspect(
    session: HttpSession,
    providers: ProviderAccess,
    provider: ProviderDefinition,
    principal: Principal,
    *,
    within_s: float = TIMEOUT_S,
) -> JsonObject:
    """What a server says of its schema: an object with `__schema`, as `read_schema` reads it.

    Args:
        session: The way out.
        providers: Finds credentials.
        provider: Its address is where operations go.
        principal: In whose name the server is asked.
        within_s: Seconds for each of at most two questions.

    Raises:
        CallFailed: The credentials are not at hand.
        EgressDenied: The policy forbids the address.
        Unavailable: The server cannot be reached, or does not answer in time or with its own failure.
        ReconnectRequired: It refuses the credentials.
        InvalidInput: Introspection is turned off, or it answers with something else.
        InvalidDefinition: The answer is larger than a limit.
    """
    credentials = await providers.credentials(provider, provider.address, principal)
    response, answer = await _ask(session, provider, credentials, _QUESTIONS[0], within_s)
    if _is_misunderstood(response, answer):
        response, answer = await _ask(session, provider, credentials, _QUESTIONS[1], within_s)
    found = None if answer is None or answer.data is None else answer.data.get("__schema")
    if isinstance(found, dict):
        return {"__schema": found}
    raise _refusal(provider.address, response, answer)


async def _ask(
    session: HttpSession, provider: ProviderDefinition, credentials: Credentials, question: str, within_s: float
) -> tuple[HttpResponse, Answer | None]:
    try:
        response = await post(session, provider, credentials, write_operation(question, _NAME, {}), within_s=within_s)
    except UnsendableOperation as problem:
        raise InvalidInput(f"{provider.address} cannot be asked: {problem}; correct the provider's headers") from None
    if len(response.body) > MAX_BYTES:
        msg = f"{provider.address} describes its schema in {len(response.body)} bytes and {MAX_BYTES} is the most"
        raise InvalidDefinition(f"{msg}; {_INSTEAD}, with the part that you need")
    return response, read_answer(response)


def _is_misunderstood(response: HttpResponse, answer: Answer | None) -> bool:
    """Whether the server may know an older form of introspection: it answers in errors, and not about credentials."""
    if answer is None or answer.data is not None or response.status in {401, 403, 429}:
        return False
    return not is_refusal(answer)


def _refusal(address: str, response: HttpResponse, answer: Answer | None) -> ToolcribError:
    said = "; ".join(map(str, answer.errors[:2])) if answer is not None else ""
    told = f"{response.status}" + (f": {said[:_MAX_WORDS]}" if said else "")
    if response.status in {401, 403} or (answer is not None and is_refusal(answer)):
        return ReconnectRequired(f"{address} refused the credentials with {told}; check or renew them, or {_INSTEAD}")
    if response.status == 429 or (response.status >= 500 and answer is None):
        return Unavailable(f"{address} did not describe its schema and answered {told}; try again later, or {_INSTEAD}")
    if answer is None:
        msg = f"{address} answered {told} and no GraphQL; give the address that takes operations, or {_INSTEAD}"
        return InvalidInput(msg)
    return InvalidInput(f"{address} does not describe its schema, introspection may be turned off ({told}); {_INSTEAD}")
