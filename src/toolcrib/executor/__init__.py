"""The one way in: every tool call runs through `Executor.execute` and comes back as an envelope."""

from toolcrib.executor.attempts import is_repeatable
from toolcrib.executor.lanes import Lanes
from toolcrib.executor.pipeline import Denied, Executor
from toolcrib.executor.ports import (
    Attic,
    CallContext,
    CallFailed,
    CallJournal,
    Clock,
    Dispatch,
    Dispatcher,
    Outcome,
    Results,
    Secrets,
    ToolCall,
    Tools,
)
from toolcrib.executor.rates import Rates, SlidingWindow
from toolcrib.executor.receipt import error

__all__ = [
    "Attic",
    "CallContext",
    "CallFailed",
    "CallJournal",
    "Clock",
    "Denied",
    "Dispatch",
    "Dispatcher",
    "Executor",
    "Lanes",
    "Outcome",
    "Rates",
    "Results",
    "Secrets",
    "SlidingWindow",
    "ToolCall",
    "Tools",
    "error",
    "is_repeatable",
]
