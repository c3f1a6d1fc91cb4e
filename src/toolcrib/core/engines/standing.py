"""How runs stand that this process does not drive: readings of the journal."""

from toolcrib.contracts import Run, RunFinished, RunResult
from toolcrib.core.engines.outcomes import Driven
from toolcrib.core.runs import result_of
from toolcrib.infrastructure.store import Entry, Journal


async def read_driven(journal: Journal, run: Run) -> Driven:
    """A run as the journal has it, whoever has driven it.

    Args:
        journal: Has its log.
        run: Its row, which was read before the log.
    """
    log = [Entry.of(shown) for shown in await journal.events(run.run_id)]
    last = log[-1].event
    if isinstance(last, RunFinished):
        return Driven(result_of(run.run_id, last), log)
    return Driven(RunResult(run_id=run.run_id, status=run.status), log)
