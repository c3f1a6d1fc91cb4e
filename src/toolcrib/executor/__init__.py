"""The one way in: every tool call runs through `Executor.execute` and comes back as an envelope."""

from toolcrib.executor.approval import differences
from toolcrib.executor.denial import Denied
from toolcrib.executor.effects import has_acted, is_repeatable, may_run_twice
from toolcrib.executor.lanes import Lanes
from toolcrib.executor.nesting import MAX_DEPTH, check_nesting, cost_of, facts_of
from toolcrib.executor.pipeline import Executor
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
    "MAX_DEPTH",
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
    "check_nesting",
    "cost_of",
    "differences",
    "error",
    "facts_of",
    "has_acted",
    "is_repeatable",
    "may_run_twice",
]
