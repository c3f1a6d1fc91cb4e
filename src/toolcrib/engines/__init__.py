"""Who drives runs. The local engine: this process, the journal, and a lease per run."""

from toolcrib.engines.clock import SystemClock, new_run_id
from toolcrib.engines.local import Driven, EngineSettings, LocalEngine, child_run_id, limits_of

__all__ = ["Driven", "EngineSettings", "LocalEngine", "SystemClock", "child_run_id", "limits_of", "new_run_id"]
