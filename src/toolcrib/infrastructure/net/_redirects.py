"""What to ask for after a redirect: a pure function of the last request and its answer (RFC 9110, section 15.4)."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from yarl import URL

from toolcrib.contracts.base.errors import EgressDenied
from toolcrib.infrastructure.net._urls import join
from toolcrib.infrastructure.net.tls import TlsIdentity

REDIRECT_STATUSES: Final = frozenset({301, 302, 303, 307, 308})
_NEGOTIATION: Final = frozenset({"accept", "accept-encoding", "accept-language", "user-agent"})
"""The only headers that follow to another origin: an API key may sit in any other."""
_ABOUT_THE_BODY: Final = frozenset({"content-encoding", "content-language", "content-type"})


class Request(NamedTuple):
    """One hop."""

    method: str
    url: URL
    headers: Mapping[str, str]
    body: bytes | None
    tls: TlsIdentity | None = None
    """For the origin of the first hop only."""


def redirected(request: Request, status: int, location: str) -> Request:
    """The request that follows the redirect.

    303 turns into a GET, as do 301 and 302 after a POST; a HEAD stays one. Another origin gets content negotiation
    headers only.

    Raises:
        EgressDenied: The location is malformed, or a body would have to be sent to another origin.
    """
    try:
        url = join(request.url, location)
        same_origin = url.origin() == request.url.origin()
    except ValueError:
        raise EgressDenied(
            f"egress denied: host {request.url.raw_host!r} redirects to a malformed URL; ask for the final one"
        ) from None
    if (status == 303 and request.method != "HEAD") or (status in {301, 302} and request.method == "POST"):
        request = request._replace(method="GET", body=None, headers=_without(request.headers, _ABOUT_THE_BODY))
    if same_origin:
        return request._replace(url=url)
    if request.body:
        raise EgressDenied(
            f"egress denied: host {request.url.raw_host!r} redirects a request with a body to another origin, "
            f"{url.scheme}://{url.raw_host}; if that is the right one, call it directly"
        )
    kept = {name: value for name, value in request.headers.items() if name.lower() in _NEGOTIATION}
    return request._replace(url=url, headers=kept, tls=None)


def _without(headers: Mapping[str, str], names: frozenset[str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in names}
