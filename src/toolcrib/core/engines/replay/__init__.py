"""Replays: the code of today on what the world gave then, event by event."""

from toolcrib.core.engines.replay.code import ReplaySandbox
from toolcrib.core.engines.replay.models import Price, ReplayModels
from toolcrib.core.engines.replay.recording import RecordedFamily
from toolcrib.core.engines.replay.replay import Furniture, ReplayEngine, replay_of

__all__ = [
    "Furniture",
    "Price",
    "RecordedFamily",
    "ReplayEngine",
    "ReplayModels",
    "ReplaySandbox",
    "replay_of",
]
