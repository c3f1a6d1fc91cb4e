"""Addresses that are not public: an explicit table, IPv4 addresses inside IPv6 ones, and the port of name resolution.

Sources: the IANA special-purpose registries for IPv4 and IPv6 (RFC 6890 and its updates), and the documented metadata
endpoints of AWS, Azure, Google, Oracle and Alibaba. `ipaddress.is_global` is not used: on Python 3.11 it calls NAT64
and 6to4 forms of 127.0.0.1, multicast and the Azure wire server global. `policy` makes the decisions.
"""

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

IPAddress: TypeAlias = IPv4Address | IPv6Address
IPNetwork: TypeAlias = IPv4Network | IPv6Network

Kind: TypeAlias = Literal[
    "metadata", "loopback", "private", "shared", "link-local", "multicast", "documentation", "reserved"
]
"""What a range is for. `metadata` hands out cloud credentials; `shared` is carrier-grade NAT and mesh VPNs."""


class DeniedRange(NamedTuple):
    """One row of the table."""

    network: IPNetwork
    kind: Kind


_TABLE: Final[tuple[tuple[Kind, str], ...]] = (
    ("metadata", "169.254.169.254/32 168.63.129.16/32 100.100.100.200/32 192.0.0.192/32"),
    ("metadata", "fd00:ec2::254/128 fd20:ce::254/128"),
    ("loopback", "127.0.0.0/8 ::1/128"),
    ("private", "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7"),
    ("shared", "100.64.0.0/10"),
    ("link-local", "169.254.0.0/16 fe80::/10"),
    ("multicast", "224.0.0.0/4 ff00::/8"),
    ("documentation", "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20"),
    ("reserved", "0.0.0.0/8 192.0.0.0/24 192.88.99.0/24 198.18.0.0/15 240.0.0.0/4"),
    # Protocol assignments (Teredo, ORCHID, benchmarking); then all of IPv6 outside of 2000::/3, the one unicast block.
    ("reserved", "2001::/23 ::/3 4000::/2 8000::/1"),
)
_DENIED: Final = tuple(DeniedRange(ip_network(text), kind) for kind, texts in _TABLE for text in texts.split())
_DENIED_V4: Final = tuple(row for row in _DENIED if row.network.version == 4)
_DENIED_V6: Final = tuple(row for row in _DENIED if row.network.version == 6)

_NAT64: Final = IPv6Network("64:ff9b::/96")
_COMPATIBLE: Final = IPv6Network("::/96")
_TRANSLATED: Final = IPv6Network("::ffff:0:0:0/96")
_ISATAP_MARKS: Final = (b"\x00\x00\x5e\xfe", b"\x02\x00\x5e\xfe")


def denied_range(address: IPAddress) -> DeniedRange | None:
    """The first row that holds this very address, or None if it is an ordinary public one. Unwraps nothing."""
    table = _DENIED_V4 if address.version == 4 else _DENIED_V6
    return next((row for row in table if address in row.network), None)


def target_addresses(address: IPAddress) -> tuple[IPAddress, ...]:
    """Every address that a packet to this one may end up at: all must be vetted.

    A mapped (RFC 4291) or NAT64 (RFC 6052) address only carries; it stands for its IPv4 address alone. A compatible,
    translated (RFC 7915), 6to4 (RFC 3056), Teredo (RFC 4380) or ISATAP (RFC 5214) address is vetted beside what it
    carries.
    """
    if isinstance(address, IPv4Address):
        return (address,)
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    last = IPv4Address(address.packed[12:])
    if address in _NAT64:
        return (last,)
    if address in _TRANSLATED or (address in _COMPATIBLE and int(address) > 1):
        return (last, address)
    if address.sixtofour is not None:
        return (address.sixtofour, address)
    if address.teredo is not None:
        return (*address.teredo, address)
    if address.packed[8:12] in _ISATAP_MARKS:
        return (last, address)
    return (address,)


class Resolver(Protocol):
    """Answers with every address of a name."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """All addresses of the host as text, in the order to try them.

        Raises:
            OSError: There is no such name, or no answer.
        """
        ...


class SystemResolver:
    """What the machine's own resolver says (`getaddrinfo`), asked in the event loop's thread pool."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """All addresses of the host, each once; see `Resolver.resolve`."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))
