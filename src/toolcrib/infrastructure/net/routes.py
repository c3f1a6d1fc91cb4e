"""Checked addresses for clients that open their own sockets, such as gRPC.

Such a client connects to these addresses and resolves no name itself, so it reaches exactly what was checked.
"""

from typing import NamedTuple

from yarl import URL

from toolcrib.contracts.base.errors import EgressDenied
from toolcrib.infrastructure.net._urls import parse
from toolcrib.infrastructure.net.addresses import Resolver
from toolcrib.infrastructure.net.errors import ConnectionFailed
from toolcrib.infrastructure.net.policy import EgressPolicy, Origin


class Route(NamedTuple):
    """A judged way to an origin."""

    origin: Origin
    addresses: tuple[str, ...]
    """All of them may be reached, in the order to try them; IPv6 addresses without brackets."""


async def find_route(policy: EgressPolicy, resolver: Resolver, url: str) -> Route:
    """Judge a URL, resolve its host, and judge every address: one bad address refuses all of them.

    Raises:
        EgressDenied: The policy forbids the URL or an address behind it.
        ConnectionFailed: The host name does not resolve.
    """
    origin = policy.admit(_parse_url(url))
    try:
        addresses = await resolver.resolve(origin.host, origin.port)
    except OSError:
        addresses = ()
    if not addresses:
        msg = f"connection to {origin.netloc} failed: the host name does not resolve; check the host or try again later"
        raise ConnectionFailed(msg, unsent=True)
    for address in addresses:
        policy.vet(origin, address)
    return Route(origin, tuple(addresses))


def _parse_url(url: str) -> URL:
    try:
        return parse(url)
    except ValueError:
        raise EgressDenied("egress denied: the URL is malformed; write it as https://host/path") from None
