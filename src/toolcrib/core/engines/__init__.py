"""Engines: what drives runs. The local engine, Restate's workers, and replays.

The crib and the interfaces import it. Decisions: docs/decisions/0021, 0031, 0034, 0035, 0038.
"""

from toolcrib.core.engines.budgets import limits_of
from toolcrib.core.engines.local import EngineSettings, LocalEngine, SystemClock, new_run_id
from toolcrib.core.engines.nested_runs import child_run_id
from toolcrib.core.engines.outcomes import DriveResult, end_of
from toolcrib.core.engines.ports import Engine

__all__ = [
    "DriveResult",
    "Engine",
    "EngineSettings",
    "LocalEngine",
    "SystemClock",
    "child_run_id",
    "end_of",
    "limits_of",
    "new_run_id",
]
