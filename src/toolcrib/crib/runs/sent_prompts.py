"""The whole requests of a past run's model calls, which its journal has in pieces only.

The run is replayed: its program makes the requests again from what was recorded, and the replay compares the hash of
each with the one in the journal. So a request that is shown here is the one that was sent.
"""

from collections.abc import Sequence
from typing import Any

from toolcrib.contracts import Conflict, ModelStarted, NotFound
from toolcrib.contracts.tools.rendered_prompts import SentPrompt
from toolcrib.core.runs.views.model_prompts import prompt_of_request
from toolcrib.crib.container.container import CribServices
from toolcrib.crib.runs.bundles import replay_run
from toolcrib.llm import LanguageModel, Request


async def read_sent_prompts(parts: CribServices, run_id: str) -> Sequence[SentPrompt]:
    """The requests of a run's own model calls in the order in which they were made; see `ActingCrib.sent_prompts`."""
    found: list[SentPrompt] = []
    clock = parts.outside.clock

    def hear(asking_run: str, attempt: ModelStarted, model: LanguageModel, request: Request) -> None:
        if asking_run == run_id:
            fields: dict[str, Any] = dict(prompt_of_request(model, request, clock.now()))
            fields |= {"position": attempt.position, "purpose": attempt.purpose, "attempt": attempt.attempt}
            found.append(SentPrompt(run_id=run_id, **fields))

    replayed = await replay_run(parts, run_id, parked=True, hear=hear)
    if replayed.divergence is not None and not found:
        msg = (
            f"the requests of run {run_id} cannot be put together, because a replay of it differs at event "
            f"{replayed.divergence.event}; its events have the new messages of each request"
        )
        raise Conflict(msg)
    return found


def prompt_at(found: Sequence[SentPrompt], run_id: str, position: str) -> SentPrompt:
    """The last request that was sent at a position.

    Raises:
        NotFound: There is none.
    """
    sent = next((each for each in reversed(found) if each.position == position), None)
    if sent is None:
        known = ", ".join(dict.fromkeys(each.position for each in found)) or "no model call of its own"
        msg = f"run {run_id} has no model call {position!r} whose request can be put together; it has: {known}"
        raise NotFound(msg)
    return sent
