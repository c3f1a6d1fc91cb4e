"""`EgressPolicy`: which URLs and addresses a realm may reach.

The policy is pure data: it resolves no name and opens no socket. It checks a URL before the request and an address
before the connection, because a name says nothing about its address. A denial is `EgressDenied`; its message names
only the host.
"""

import re
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Final, NamedTuple

from toolcrib.contracts.base.errors import EgressDenied, InvalidSettings
from toolcrib.infrastructure.net.addresses import IPAddress, IPNetwork, Kind, denied_range, target_addresses

if TYPE_CHECKING:
    from yarl import URL

_HOST_NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_][a-z0-9_-]{0,62})*")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_OPENED_BY_NAME: Final[frozenset[Kind]] = frozenset({"loopback", "private", "shared"})
"""What `allow=("name:port",)` opens. Whoever controls the name's records must not lead us to metadata or multicast."""


class Origin(NamedTuple):
    """Where a request goes. The host is lower-case ASCII without a trailing dot, an IPv6 address without brackets."""

    scheme: str
    host: str
    port: int

    @property
    def netloc(self) -> str:
        """`host:port`, as in a URL and in `EgressPolicy.allow`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """The addresses that a realm's requests may reach. The default is the public internet on ports 80 and 443.

    Raises:
        InvalidSettings: A pattern, port, scheme, exception or limit is malformed.

    Example:
        policy = EgressPolicy(hosts=("*.crm.example",), allow=("127.0.0.1:8123",))
        crib = Crib("memory://", egress=policy)
    """

    hosts: tuple[str, ...] = ("*",)
    """Host names that may be asked for: `*`, an exact name, or `*.example.com` for every name below it."""
    ports: tuple[int, ...] = (443, 80)
    schemes: tuple[str, ...] = ("https", "http")
    allow: tuple[str, ...] = ()
    """Exceptions from all of the above and from the denied ranges, each with its port:

    - `localhost:11434`: this name, wherever in loopback, private or shared ranges it leads;
    - `127.0.0.1:8123`, `[::1]:8123`: this address, asked for literally; no name that leads there;
    - `10.2.0.0/16:443`, `[fd00:1::/32]:443`: every address of the network, also through a name that `hosts` allows.

    A cloud's metadata address is only ever opened by the second form.
    """
    max_redirects: int = 3
    max_bytes: int = 10 * 2**20
    """The largest body of an answer, in bytes after decompression."""
    _hosts: frozenset[tuple[str, int]] = field(init=False, repr=False, compare=False)
    _networks: tuple[tuple[IPNetwork, int], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for pattern in self.hosts:
            if pattern != "*" and not _HOST_NAME.fullmatch(pattern.removeprefix("*.")) and not _literal(pattern):
                raise InvalidSettings(
                    f"egress host pattern {pattern!r} is not '*', a lower-case host name or '*.' and a host name"
                )
        if unknown := sorted(set(self.schemes) - {"http", "https"}):
            raise InvalidSettings(f"egress scheme {unknown[0]!r} is unknown; only 'http' and 'https' exist")
        for port in self.ports:
            _check_port(port, str(port))
        if self.max_redirects < 0 or self.max_bytes < 1:
            raise InvalidSettings(
                f"egress needs max_redirects >= 0 and max_bytes >= 1, not {self.max_redirects} and {self.max_bytes}"
            )
        parsed = [_exception(text) for text in self.allow]
        object.__setattr__(self, "_hosts", frozenset((key, port) for key, port in parsed if isinstance(key, str)))
        object.__setattr__(self, "_networks", tuple((key, port) for key, port in parsed if not isinstance(key, str)))

    @classmethod
    def from_settings(cls, text: str) -> "EgressPolicy":
        """The default policy with the exceptions of a comma list: `127.0.0.1:8123, 10.2.0.0/16:443`.

        Raises:
            InvalidSettings: An entry is not an exception in one of the forms of `allow`.
        """
        return cls(allow=tuple(entry for part in text.split(",") if (entry := part.strip())))

    def admit(self, url: "URL") -> Origin:
        """Judge a URL before anything is resolved; a literal address is vetted right here.

        Raises:
            EgressDenied: Scheme, user information, host, port or literal address is not allowed.
        """
        host = _canonical_host(url.raw_host)
        if url.scheme not in self.schemes:
            allowed = " or ".join(self.schemes)
            raise EgressDenied(f"egress denied: scheme {url.scheme!r} to host {host!r}; use {allowed}")
        if url.raw_user is not None or url.raw_password is not None:
            raise EgressDenied(f"egress denied: URL to host {host!r} carries user information; send it in a header")
        origin = Origin(url.scheme, host, url.port or 0)
        literal = _literal(host)
        if (host, origin.port) in self._hosts:
            return origin
        if origin.port not in self.ports and all(port != origin.port for _, port in self._networks):
            raise self._port_denied(origin)
        if literal is not None:
            self._vet(origin, literal)
        if not self._matches(host) and not (literal is not None and self._in_opened_network(literal, origin.port)):
            raise EgressDenied(f"egress denied: host {host!r} is not in the policy's `hosts`: {', '.join(self.hosts)}")
        return origin

    def vet(self, origin: Origin, address: str) -> None:
        """Judge an address that the origin's host leads to, as text without a scope.

        Raises:
            EgressDenied: The address, or an IPv4 address inside of it, lies in a denied range that no exception opens.
        """
        try:
            parsed = ip_address(address)
        except ValueError:
            raise EgressDenied(
                f"egress denied: {origin.netloc} resolves to {address!r}, which is not an address"
            ) from None
        self._vet(origin, parsed)

    def _vet(self, origin: Origin, address: IPAddress) -> None:
        for candidate in target_addresses(address):
            self._vet_one(origin, address, candidate)

    def _vet_one(self, origin: Origin, address: IPAddress, candidate: IPAddress) -> None:
        named = (origin.host, origin.port) in self._hosts
        if named and origin.host == str(candidate):
            return
        denied = denied_range(candidate)
        if denied is None:
            if not named and origin.port not in self.ports and not self._in_opened_network(candidate, origin.port):
                raise self._port_denied(origin)
            return
        if named and denied.kind in _OPENED_BY_NAME:
            return
        if denied.kind != "metadata" and self._in_opened_network(candidate, origin.port):
            return
        leads = f"{address}" if candidate == address else f"{address}, which carries {candidate}"
        remedy = (
            f"if it may be reached, add '{origin.netloc}' to the policy's `allow` (TOOLCRIB_EGRESS_ALLOW)"
            if denied.kind in _OPENED_BY_NAME
            else "no host name opens this range"
        )
        raise EgressDenied(
            f"egress denied: {origin.netloc} leads to {leads} ({denied.kind}, {denied.network}); {remedy}"
        )

    def _matches(self, host: str) -> bool:
        return any(
            pattern in {"*", host} or (pattern.startswith("*.") and host.endswith(pattern[1:]))
            for pattern in self.hosts
        )

    def _in_opened_network(self, address: IPAddress, port: int) -> bool:
        return any(port == opened and address in network for network, opened in self._networks)

    def _port_denied(self, origin: Origin) -> EgressDenied:
        ports = ", ".join(map(str, self.ports))
        return EgressDenied(
            f"egress denied: {origin.netloc} is on port {origin.port}, allowed are {ports}; "
            f"if it may be reached, add '{origin.netloc}' to the policy's `allow` (TOOLCRIB_EGRESS_ALLOW)"
        )


def _canonical_host(raw_host: str | None) -> str:
    """The one spelling of a host. Spellings that only a lenient parser takes for an address are refused."""
    host = (raw_host or "").lower()
    if ":" in host:
        try:
            parsed = IPv6Address(host)
        except ValueError:
            parsed = None
        if parsed is None or parsed.scope_id is not None:
            raise EgressDenied(f"egress denied: {host!r} is not a plain IPv6 address; zones are not allowed")
        return str(parsed)
    name = host.removesuffix(".")
    if not _HOST_NAME.fullmatch(name):
        raise EgressDenied(f"egress denied: {host[:100]!r} is not a host name; write an absolute URL with a plain host")
    if _NUMBER.fullmatch(name.rpartition(".")[2]) and (name != host or _literal(name) is None):
        raise EgressDenied(f"egress denied: {host!r} is an unusual spelling of an address; write four decimal numbers")
    return name


def _literal(host: str) -> IPAddress | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _exception(text: str) -> tuple[str | IPNetwork, int]:
    head, _, port_text = text.rpartition(":")
    bracketed = head.startswith("[") and head.endswith("]")
    target = head[1:-1] if bracketed else head
    port = _check_port(int(port_text) if port_text.isascii() and port_text.isdigit() else 0, text)
    if ":" in target and not bracketed:
        raise _entry_error(text)
    try:
        if "/" in target:
            return ip_network(target), port
        return str(ip_address(target)), port
    except ValueError:
        name = target.lower().removesuffix(".")
        odd = bracketed or "/" in target or _NUMBER.fullmatch(name.rpartition(".")[2])
        if odd or not _HOST_NAME.fullmatch(name):
            raise _entry_error(text) from None
        return name, port


def _check_port(port: int, text: str) -> int:
    if not 1 <= port <= 65535:
        raise _entry_error(text)
    return port


def _entry_error(text: str) -> InvalidSettings:
    return InvalidSettings(
        f"egress entry {text!r} needs a port from 1 to 65535 and one of the forms 'localhost:11434', '127.0.0.1:8123', "
        "'10.2.0.0/16:443' (a network without host bits), '[::1]:8123'"
    )
