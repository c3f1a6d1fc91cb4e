"""Workers in processes of their own, for a test, that are gone in the end."""

from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM
from typing import Self

from tests.chaos.processes import Child
from tests.servers.restate import RestateServer
from tests.unit.engines_restate.shop import Shop, until, work


class Crew:
    """The workers of a shop; to be used as a context.

    Args:
        shop: What they work in.
        server: Calls them.
    """

    def __init__(self, shop: Shop, server: RestateServer) -> None:
        self._shop = shop
        self._server = server
        self._hired = 0
        self._workers: list[Child] = []

    async def hire(self, *, tools: bool = True, drain_s: float = 5.0) -> Child:
        """Start a worker, with the tools of the shop or without; it is registered on return."""
        self._hired += 1
        listens = self._shop.folder / f"listens-{self._hired}"
        worker = Child(self._shop.folder / f"worker-{self._hired}", work, self._shop, tools, listens, drain_s)
        self._workers.append(worker)
        await until(lambda: listens.exists() and any(listens.read_text() in url for url in self._server.workers))
        return worker

    async def kill(self, worker: Child) -> None:
        """Kill a worker, as a power cut does."""
        self._workers.remove(worker)
        worker.signal(SIGKILL)
        await worker.ended()

    async def stop(self, worker: Child) -> None:
        """Tell a worker to stop; it must do so well."""
        self._workers.remove(worker)
        worker.signal(SIGTERM)
        assert await worker.ended() == 0

    def freeze(self, worker: Child) -> None:
        """Have a worker do nothing any more."""
        worker.signal(SIGSTOP)

    def wake(self, worker: Child) -> None:
        """Have a frozen worker go on where it was."""
        worker.signal(SIGCONT)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.signal(SIGKILL)
        for worker in self._workers:
            await worker.ended()
