"""Who drives runs. The local engine: this process, the journal, and a lease per run; or Restate's workers."""

from toolcrib.engines.clock import SystemClock, new_run_id
from toolcrib.engines.limits import limits_of
from toolcrib.engines.local import EngineSettings, LocalEngine
from toolcrib.engines.nesting import child_run_id
from toolcrib.engines.outcomes import Driven, end_of
from toolcrib.engines.ports import Engine

__all__ = [
    "Driven",
    "Engine",
    "EngineSettings",
    "LocalEngine",
    "SystemClock",
    "child_run_id",
    "end_of",
    "limits_of",
    "new_run_id",
]
