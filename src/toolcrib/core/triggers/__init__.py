"""When triggers start runs: the times of schedules, and the signatures of webhooks. Nothing is started here.

It imports contracts. The crib and the interfaces import it.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.core.triggers.schedule import check_schedule, due_times, next_time
    from toolcrib.core.triggers.signatures import sign, verify
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.core.triggers.schedule": "check_schedule due_times next_time",
            "toolcrib.core.triggers.signatures": "sign verify",
        },
    )

__all__ = ["check_schedule", "due_times", "next_time", "sign", "verify"]
