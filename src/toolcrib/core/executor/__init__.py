"""The executor: every tool call runs through `Executor.execute` and returns an envelope.

It imports policy, registry, expressions and ports only: no store and no model. Runs, engines and the kinds of tools
import it. Decisions: docs/decisions/0037.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.core.executor.approval import differences
    from toolcrib.core.executor.concurrency import Lanes, Rates, SlidingWindow
    from toolcrib.core.executor.envelope import Denied, error
    from toolcrib.core.executor.fallbacks import MAX_DEPTH, check_nesting, cost_of, facts_of
    from toolcrib.core.executor.pipeline import ExecutionRules, Executor
    from toolcrib.core.executor.ports import (
        BlobSink,
        BrokenOff,
        CallContext,
        CallerQuestion,
        CallFailed,
        CallJournal,
        CallRequest,
        Clock,
        Dispatch,
        Dispatcher,
        LiveCall,
        LogLine,
        Outcome,
        Progress,
        Results,
        SecretResolver,
        Tools,
    )
    from toolcrib.core.executor.retries import has_acted, is_repeatable, may_run_twice
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.core.executor.approval": "differences",
            "toolcrib.core.executor.concurrency": "Lanes Rates SlidingWindow",
            "toolcrib.core.executor.envelope": "Denied error",
            "toolcrib.core.executor.fallbacks": "MAX_DEPTH check_nesting cost_of facts_of",
            "toolcrib.core.executor.pipeline": "ExecutionRules Executor",
            "toolcrib.core.executor.ports": (
                "BlobSink BrokenOff CallContext CallFailed CallJournal CallRequest CallerQuestion Clock Dispatch "
                "Dispatcher LiveCall "
                "LogLine Outcome Progress Results SecretResolver Tools"
            ),
            "toolcrib.core.executor.retries": "has_acted is_repeatable may_run_twice",
        },
    )

__all__ = [
    "MAX_DEPTH",
    "BlobSink",
    "BrokenOff",
    "CallContext",
    "CallFailed",
    "CallJournal",
    "CallRequest",
    "CallerQuestion",
    "Clock",
    "Denied",
    "Dispatch",
    "Dispatcher",
    "ExecutionRules",
    "Executor",
    "Lanes",
    "LiveCall",
    "LogLine",
    "Outcome",
    "Progress",
    "Rates",
    "Results",
    "SecretResolver",
    "SlidingWindow",
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
