"""Replays: the code of today on what the world gave then, event by event."""

from toolcrib.engines.replay.code import ReplaySandbox
from toolcrib.engines.replay.engine import Furniture, ReplayEngine
from toolcrib.engines.replay.findings import replay_of
from toolcrib.engines.replay.models import Price, ReplayModels
from toolcrib.engines.replay.recording import RecordedFamily

__all__ = [
    "Furniture",
    "Price",
    "RecordedFamily",
    "ReplayEngine",
    "ReplayModels",
    "ReplaySandbox",
    "replay_of",
]
