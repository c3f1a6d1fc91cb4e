"""Replays: today's code on the recorded inputs of a run, compared event by event.

It opens no connection and writes nothing. The crib imports it.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.core.engines.replay.recorded_models import Hear, Price, ReplayModels
    from toolcrib.core.engines.replay.recorded_sandbox import ReplaySandbox
    from toolcrib.core.engines.replay.recording import RecordedFamily
    from toolcrib.core.engines.replay.replay import ReplayEngine, ReplayServices, replay_of
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.core.engines.replay.recorded_models": "Hear Price ReplayModels",
            "toolcrib.core.engines.replay.recorded_sandbox": "ReplaySandbox",
            "toolcrib.core.engines.replay.recording": "RecordedFamily",
            "toolcrib.core.engines.replay.replay": "ReplayEngine ReplayServices replay_of",
        },
    )

__all__ = [
    "Hear",
    "Price",
    "RecordedFamily",
    "ReplayEngine",
    "ReplayModels",
    "ReplaySandbox",
    "ReplayServices",
    "replay_of",
]
