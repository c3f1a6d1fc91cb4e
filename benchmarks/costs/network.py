"""An event loop whose time and network are simulated, so that the same work takes the same steps every time.

It is asyncio's own loop, with three differences. Time stands still while anything is ready, and jumps to the next timer
when nothing is. What is given to a thread runs at once, in the thread of the loop, and is counted. And a
connection leads to a function of this process, which gets the bytes of each HTTP request and returns those of the
answer; it comes after `LATENCY_S`, as a model's would, so that whatever waits for time to pass gets its turn.
"""

import asyncio
import selectors
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from typing import Any, Final, NoReturn

LATENCY_S: Final = 0.1
"""Simulated seconds before an answer."""

Server = Callable[[bytes], bytes]
"""From the body of a request to that of its answer, JSON both."""


class StuckError(Exception):
    """Everything waits, and nothing is left that could happen."""


class _Selector(selectors.SelectSelector):
    """Never waits: it lets simulated time pass instead. Nothing comes from outside."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise StuckError("everything waits, and no timer is left; does the work use a thread or a socket?")
        self.now += max(timeout, 0.0)
        return []


class CountingLoop(asyncio.SelectorEventLoop):
    """The loop.

    Args:
        servers: Who answers, by port.
    """

    def __init__(self, servers: Mapping[int, Server]) -> None:
        self._instant = _Selector()
        super().__init__(self._instant)
        self._servers = servers
        self._ports: dict[int, int] = {}
        """To which port a socket is connected."""
        self.thread_jobs = 0
        """Functions that were given to threads."""

    def time(self) -> float:
        return self._instant.now

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any, context: Any = None) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)  # there is one thread

    def run_in_executor(self, executor: Executor | None, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        return asyncio.wrap_future(self.run_at_once(func, *args), loop=self)

    def run_at_once(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Future[Any]:
        """What `Executor.submit` does, at once."""
        self.thread_jobs += 1
        done = Future[Any]()
        try:
            done.set_result(function(*arguments, **named))
        except BaseException as problem:  # noqa: BLE001  whoever waits gets it
            done.set_exception(problem)
        return done

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        """Every address can be reached; `create_connection` finds out who is there."""
        self._ports[sock.fileno()] = address[1]

    async def create_connection(self, protocol_factory: Callable[[], Any], *_: Any, sock: Any = None, **__: Any) -> Any:
        """A connection to a server of this process."""
        protocol = protocol_factory()
        transport = Wire(self, protocol, sock, self._servers[self._ports.pop(sock.fileno())])
        protocol.connection_made(transport)
        return transport, protocol


class Wire(asyncio.Transport):
    """The client's end of a connection to a server.

    Args:
        loop: Its loop.
        protocol: Gets the answers.
        sock: Not connected; for whoever sets options.
        server: Answers.
    """

    def __init__(self, loop: CountingLoop, protocol: Any, sock: socket.socket, server: Server) -> None:
        super().__init__({"socket": sock, "peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self._loop = loop
        self._protocol = protocol
        self._socket = sock
        self._server = server
        self._sent = b""
        self._closing = False

    def write(self, data: Any) -> None:
        """Take a part of a request; answer it when it is complete."""
        self._sent += bytes(data)
        head, end, body = self._sent.partition(b"\r\n\r\n")
        if end and len(body) == _length(head):
            self._sent = b""
            answer = self._server(body)
            header = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(answer)
            self._loop.call_later(LATENCY_S, self._protocol.data_received, header + answer)

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There is no buffer."""

    def get_write_buffer_size(self) -> int:
        return 0

    def get_protocol(self) -> Any:
        return self._protocol

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def is_reading(self) -> bool:
        return True

    def pause_reading(self) -> None:
        """An answer comes in one piece."""

    resume_reading = pause_reading

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._socket.close()
            self._loop.call_soon(self._protocol.connection_lost, None)

    abort = close

    def can_write_eof(self) -> bool:
        return False

    def write_eof(self) -> NoReturn:
        raise NotImplementedError


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line[15:])
    return 0
