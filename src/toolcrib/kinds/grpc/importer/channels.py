"""Connections to gRPC servers: one per provider and client certificate, to addresses that the egress policy allows.

A channel resolves no names and ignores proxy variables. Credentials are sent with each call; callers with client
certificates have their own channels. A caller that cannot reach a server reports it (`doubt`): before the next call
the name is resolved again, and a new channel is opened if its address has changed.
"""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import grpc
import grpc.aio

from toolcrib.contracts import GrpcConnection, InvalidSettings, ProviderDefinition
from toolcrib.infrastructure.net import HttpSession
from toolcrib.infrastructure.net.tls import TlsIdentity

if TYPE_CHECKING:
    from toolcrib.infrastructure.net.routes import Route

_HTTP: Final = {"grpc": "http", "grpcs": "https"}
"""What the egress policy takes each scheme for."""
MAX_CHANNELS: Final = 500

_GRACE_S: Final = 30.0
"""For the calls of a channel whose place another one takes."""


@dataclass(slots=True)
class _Entry:
    where: "tuple[str, str | None, Route]"
    """Address, authority and the way there."""
    channel: grpc.aio.Channel
    doubted: bool = False


class Channels:
    """The channels of a process.

    Args:
        session: Judges addresses.
    """

    def __init__(self, session: HttpSession) -> None:
        self._session = session
        self._entries: dict[tuple[str, str, TlsIdentity | None], _Entry] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def get(self, realm: str, provider: ProviderDefinition, tls: TlsIdentity | None = None) -> grpc.aio.Channel:
        """The channel to a provider.

        Args:
            realm: The provider's.
            provider: Where to.
            tls: The client certificate, and how the server's certificate is verified.

        Raises:
            InvalidSettings: The certificate of `tls` cannot be used.
            EgressDenied: The policy forbids the address.
            ConnectionFailed: The host name does not resolve.
        """
        key, address = (realm, provider.name, tls), provider.address
        authority = provider.connection.authority if isinstance(provider.connection, GrpcConnection) else None
        known = self._entries.get(key)
        if known is not None and known.where[:2] == (address, authority) and not known.doubted:
            return known.channel
        scheme, _, rest = address.partition("://")
        where = (address, authority, await self._session.route(f"{_HTTP.get(scheme, scheme)}://{rest}"))
        known = self._entries.get(key)
        if known is not None and known.where == where:
            known.doubted = False
            return known.channel
        if known is not None:
            self._retire(known.channel)
        elif len(self._entries) >= MAX_CHANNELS:
            self._retire(self._entries.pop(next(iter(self._entries))).channel)
        entry = self._entries[key] = _Entry(where, self._open(where[2], authority, tls))
        return entry.channel

    def doubt(self, realm: str, provider: ProviderDefinition, tls: TlsIdentity | None = None) -> None:
        """The provider could not be reached: look where it is before the next call."""
        entry = self._entries.get((realm, provider.name, tls))
        if entry is not None:
            entry.doubted = True

    async def close(self) -> None:
        """Close all channels; calls that are under way fail."""
        for task in self._closing:
            task.cancel()
        await asyncio.gather(*self._closing, return_exceptions=True)
        entries = list(self._entries.values())
        self._entries.clear()
        for entry in entries:
            await entry.channel.close()

    def _open(self, route: "Route", authority: str | None, tls: TlsIdentity | None) -> grpc.aio.Channel:
        target, options = target_of(route), _options(authority or route.origin.netloc, self._session.policy.max_bytes)
        if route.origin.scheme == "http":
            return grpc.aio.insecure_channel(target, options)
        options.append(("grpc.ssl_target_name_override", authority or route.origin.host))
        return grpc.aio.secure_channel(target, _tls_credentials(tls or TlsIdentity()), options)

    def _retire(self, channel: grpc.aio.Channel) -> None:
        task = asyncio.create_task(channel.close(_GRACE_S))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _tls_credentials(tls: TlsIdentity) -> grpc.ChannelCredentials:
    tls.context()  # says what is wrong; gRPC would only never connect
    if tls.password is not None:
        raise InvalidSettings("gRPC takes a client's key without a password only; give it unencrypted, from a vault")
    return grpc.ssl_channel_credentials(
        root_certificates=_encode_pem(tls.ca),
        private_key=_encode_pem(tls.key),
        certificate_chain=_encode_pem(tls.certificate),
    )


def _encode_pem(pem: str | None) -> bytes | None:
    return None if pem is None else pem.encode()


def as_is(data: bytes) -> bytes:
    """Identity serializer of channels: callers pass messages as bytes."""
    return data


def target_of(route: "Route") -> str:
    """The checked addresses as a gRPC target without name resolution: those of the first one's address family."""
    is_v6 = ":" in route.addresses[0]
    same = [address for address in route.addresses if (":" in address) == is_v6]
    port = route.origin.port
    return (
        f"ipv6:{','.join(f'[{a}]:{port}' for a in same)}" if is_v6 else f"ipv4:{','.join(f'{a}:{port}' for a in same)}"
    )


def _options(authority: str, max_bytes: int) -> list[tuple[str, Any]]:
    return [
        ("grpc.default_authority", authority),
        ("grpc.enable_http_proxy", 0),
        ("grpc.enable_retries", 0),
        ("grpc.max_receive_message_length", max_bytes),
        ("grpc.max_send_message_length", max_bytes),
        ("grpc.primary_user_agent", "toolcrib"),
        ("grpc.service_config_disable_resolution", 1),
        ("grpc.use_local_subchannel_pool", 1),
    ]
