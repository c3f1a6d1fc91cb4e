"""The store of a replay: a journal that begins empty and takes nothing but what was recorded, and texts to be read."""

from collections.abc import Awaitable, Mapping, Sequence

from toolcrib.contracts import NotFound, Run, RunEvent, RunFinished, RunStatus, RunSuspended, Signal, digest
from toolcrib.core.engines.replay.stage import Stage
from toolcrib.core.runs import Past, result_of
from toolcrib.core.runs.context.ports import Texts
from toolcrib.infrastructure.store import Entry, RunChange


class ReplayStore:
    """What the driver of a replay is given for a store.

    Args:
        stage: Of the replay.
        past: Reads runs that are not replayed.
        blobs: Texts as they were kept.
    """

    def __init__(self, stage: Stage, past: Past, blobs: Texts) -> None:
        self.journal = ReplayJournal(stage, past)
        self.blobs = ReplayBlobs(blobs)


class ReplayJournal:
    """Takes what the code makes; what is read of it is what was made again by now."""

    def __init__(self, stage: Stage, past: Past) -> None:
        self._stage = stage
        self._past = past

    def append(
        self, run_id: str, epoch: int, events: Sequence[Entry], change: RunChange | None = None
    ) -> Awaitable[None]:
        """Hold events against the recorded ones; durable at once if all of them were so then."""
        made = [self._stage.make(run_id, entry.event) for entry in events]
        return next((each for each in made if not each.done()), made[-1])

    async def signal(self, run_id: str, signal: Signal) -> bool:
        """What is told to a run in a replay is in its recording already."""
        return True

    async def signals(self, run_id: str) -> Mapping[str, Signal]:
        """What had been left for a run by now."""
        return self._stage.signals(run_id)

    async def run(self, run_id: str) -> Run:
        """A run as it stands by now."""
        part = self._stage.parts.get(run_id)
        if part is None:
            return await self._past.run(run_id)
        events = self._stage.events(run_id)
        if not events:
            msg = f"run {run_id} has not begun yet"
            raise NotFound(msg)
        last = events[-1].event
        row = part.recorded.run.model_copy(update={"status": _status(events), "events": events[-1].number})
        if not isinstance(last, RunFinished):
            return row
        result = result_of(run_id, last)
        ended = {name: getattr(result, name) for name in type(result).model_fields.keys() & Run.model_fields.keys()}
        return row.model_copy(update=ended)

    async def runs(
        self,
        realm: str,
        *,
        tool: str | None = None,
        made_by: str | None = None,
        status: RunStatus | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> Sequence[Run]:
        """Runs that are not replayed."""
        return await self._past.runs(realm, tool=tool, made_by=made_by, status=status, before=before, limit=limit)

    async def events(self, run_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[RunEvent]:
        """What was made again by now."""
        if run_id not in self._stage.parts:
            return await self._past.events(run_id, after=after, limit=limit)
        return [entry for entry in self._stage.events(run_id) if entry.number > after][:limit]


class ReplayBlobs:
    """Large texts as they were kept; what is kept anew is held in memory."""

    def __init__(self, blobs: Texts) -> None:
        self._blobs = blobs
        self._kept: dict[str, bytes] = {}

    async def put(self, data: bytes, *, realm: str, made_by: str, content_type: str = "application/json") -> str:
        """The digest under which a text is kept."""
        name = digest(data)
        self._kept[name] = data
        return name

    async def get(self, realm: str, digest: str) -> bytes:
        """A text.

        Raises:
            NotFound: This realm has nothing of that digest.
        """
        if digest in self._kept:
            return self._kept[digest]
        return await self._blobs.get(realm, digest)


def _status(events: Sequence[RunEvent]) -> RunStatus:
    last = events[-1].event
    return last.status if isinstance(last, RunSuspended | RunFinished) else "running"
