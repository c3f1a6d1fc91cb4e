"""Replays: today's code on the recorded inputs of a run, compared event by event.

It opens no connection and writes nothing. The crib imports it.
"""

from toolcrib.core.engines.replay.recorded_models import Price, ReplayModels
from toolcrib.core.engines.replay.recorded_sandbox import ReplaySandbox
from toolcrib.core.engines.replay.recording import RecordedFamily
from toolcrib.core.engines.replay.replay import ReplayEngine, ReplayServices, replay_of

__all__ = [
    "Price",
    "RecordedFamily",
    "ReplayEngine",
    "ReplayModels",
    "ReplaySandbox",
    "ReplayServices",
    "replay_of",
]
