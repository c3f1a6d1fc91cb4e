"""Replays: the code of today on what the world gave then, event by event."""

from toolcrib.core.engines.replay.code import ReplaySandbox
from toolcrib.core.engines.replay.models import Price, ReplayModels
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
