"""Engines: what drives runs. The local engine, Restate's workers, and replays.

The crib and the interfaces import it. Decisions: docs/decisions/0021, 0031, 0034, 0035, 0038.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.core.engines.budgets import limits_of
    from toolcrib.core.engines.leases import HEARTBEAT
    from toolcrib.core.engines.left_runs import LeftRuns
    from toolcrib.core.engines.local import EngineSettings, LocalEngine, SystemClock, new_run_id
    from toolcrib.core.engines.nested_runs import child_run_id
    from toolcrib.core.engines.outcomes import DriveResult, end_of
    from toolcrib.core.engines.ports import Engine
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.core.engines.budgets": "limits_of",
            "toolcrib.core.engines.leases": "HEARTBEAT",
            "toolcrib.core.engines.left_runs": "LeftRuns",
            "toolcrib.core.engines.local": "EngineSettings LocalEngine SystemClock new_run_id",
            "toolcrib.core.engines.nested_runs": "child_run_id",
            "toolcrib.core.engines.outcomes": "DriveResult end_of",
            "toolcrib.core.engines.ports": "Engine",
        },
    )

__all__ = [
    "HEARTBEAT",
    "DriveResult",
    "Engine",
    "EngineSettings",
    "LeftRuns",
    "LocalEngine",
    "SystemClock",
    "child_run_id",
    "end_of",
    "limits_of",
    "new_run_id",
]
