"""From a host name to its addresses: the port, and the system's implementation. Nothing is vetted or cached here."""

import asyncio
import socket
from collections.abc import Sequence
from typing import Protocol


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
