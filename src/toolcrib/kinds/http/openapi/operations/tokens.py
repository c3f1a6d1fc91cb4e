"""Parameters that repeat the bearer token, as Slack has them: filled in by authentication, never asked for.

Documents do not say so in a form of their own, and a `token` may as well be what an operation is about (a password's
reset, a revocation). So a parameter is taken for the credential only if it has such a name, is described as one, and at
least half of the operations that authenticate have it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from toolcrib.contracts import AuthorizationCodeAuth, BearerAuth, OAuth2Auth
from toolcrib.kinds.http.openapi.operations.parts import Operation
from toolcrib.kinds.http.openapi.operations.security import Security
from toolcrib.kinds.http.openapi.read.nodes import Node

_NAMES: Final = frozenset({"access_token", "api_token", "auth_token", "oauth_token", "token"})
_DESCRIBED: Final = re.compile(
    r"\b(auth(entication|orization)?|access|api|bearer|oauth)[ _-]?(token|key)\b", re.IGNORECASE
)


def repeated_tokens(operations: Sequence[Operation], security: Security) -> frozenset[str]:
    """Names of the parameters and form fields that carry the bearer token; empty if there is none to carry."""
    ways = (security.auth, *security.schemes.values())
    if not any(isinstance(way, BearerAuth | OAuth2Auth | AuthorizationCodeAuth) for way in ways):
        return frozenset()
    asking = [operation for operation in operations if authenticates(operation)]
    counts = Counter(name for operation in asking for name in set(_tokens(operation)))
    return frozenset(name for name, count in counts.items() if 2 * count >= len(asking))


def authenticates(operation: Operation) -> bool:
    """Whether an operation does not say that it needs no credentials."""
    return operation.security is None or operation.security.value != []


def _tokens(operation: Operation) -> Iterator[str]:
    for parameter in operation.parameters:
        if _is_token(parameter.name, parameter.node.get("description")):
            yield parameter.name
    for media in operation.body.media if operation.body is not None else ():
        for field in media.fields:
            if field.description is not None and _is_token(field.name, field.description):
                yield field.name
        for name, schema in media.schema.get("properties").members():
            if _is_token(name, schema.get("description")):
                yield name


def _is_token(name: str, description: Node) -> bool:
    text = description.value
    return name in _NAMES and isinstance(text, str) and _DESCRIBED.search(text) is not None
