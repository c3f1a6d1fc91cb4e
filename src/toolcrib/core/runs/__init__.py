"""Runs over the journal: the context of programs, waits and recovery, forks, and views of the journal.

It imports the executor, policy, registry, llm and infrastructure. Engines, agents, workflows and the crib import it.
Decisions: docs/decisions/0010, 0015, 0017, 0018, 0036, 0039.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.core.runs.context.context import Program, RunBounds, RunContext
    from toolcrib.core.runs.context.pending import ConcurrentCalls, Pending
    from toolcrib.core.runs.context.ports import EnginePorts, Nested
    from toolcrib.core.runs.context.prior_runs import ReusedCalls
    from toolcrib.core.runs.context.start import BEGIN, ProgramStart
    from toolcrib.core.runs.forks.fork import as_asked
    from toolcrib.core.runs.forks.recording import recorded_model
    from toolcrib.core.runs.interrupts.approvals import Question
    from toolcrib.core.runs.interrupts.client_calls import signals_for
    from toolcrib.core.runs.interrupts.recovery import InterruptedCalls, as_settled, in_doubt, settlement_of
    from toolcrib.core.runs.interrupts.signals import (
        QUESTION_ASKED,
        Branch,
        client_signal,
        decision_on,
        may_ask,
        open_question,
        question_key,
        read_tree,
        tellers_of,
        waiting_approvals,
        waiting_at,
        waiting_handoffs,
        waiting_question,
    )
    from toolcrib.core.runs.interrupts.suspension import (
        EndedRuns,
        RunEnd,
        Suspended,
        end_after,
        end_of_failed_call,
        in_format,
        turn_run_id,
    )
    from toolcrib.core.runs.journal.history import History, StoredRun, as_contract, holds, spending_of, wait_key
    from toolcrib.core.runs.journal.log import NullJournal, RunLog, outside_call
    from toolcrib.core.runs.models.live import TokenHub
    from toolcrib.core.runs.models.model_requests import (
        BudgetExhausted,
        ModelCall,
        ModelCallRules,
        ModelCalls,
        ModelRefused,
    )
    from toolcrib.core.runs.views.agent_response import read_response
    from toolcrib.core.runs.views.comparison import compare
    from toolcrib.core.runs.views.handles import (
        HandleOwner,
        agent_pins,
        answer_of,
        calls_held,
        calls_of,
        check_pins,
        find_last_runs,
        find_unfilled,
        handle_missing,
        holding_pins,
        outputs_of,
        resolve_pins,
        response_of,
        select_call,
        step_at,
    )
    from toolcrib.core.runs.views.result import (
        CallTraceback,
        Result,
        read_result,
        result_of,
        tracebacks_of,
        without_traceback,
    )
    from toolcrib.core.runs.views.stream import BEGINNING, StreamMessage, listen
    from toolcrib.core.runs.views.trace import clip_text, complete_trace, read_trace, shorten_json, trace_of
    from toolcrib.core.runs.views.waiting import NOTHING_WAITS, Waiting, waiting_of
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.core.runs.context.context": "Program RunBounds RunContext",
            "toolcrib.core.runs.context.pending": "ConcurrentCalls Pending",
            "toolcrib.core.runs.context.ports": "EnginePorts Nested",
            "toolcrib.core.runs.context.prior_runs": "ReusedCalls",
            "toolcrib.core.runs.context.start": "BEGIN ProgramStart",
            "toolcrib.core.runs.forks.fork": "as_asked",
            "toolcrib.core.runs.forks.recording": "recorded_model",
            "toolcrib.core.runs.interrupts.approvals": "Question",
            "toolcrib.core.runs.interrupts.client_calls": "signals_for",
            "toolcrib.core.runs.interrupts.recovery": "InterruptedCalls as_settled in_doubt settlement_of",
            "toolcrib.core.runs.interrupts.signals": (
                "Branch QUESTION_ASKED client_signal decision_on may_ask open_question question_key read_tree "
                "tellers_of waiting_approvals waiting_at waiting_handoffs waiting_question"
            ),
            "toolcrib.core.runs.interrupts.suspension": (
                "EndedRuns RunEnd Suspended end_after end_of_failed_call in_format turn_run_id"
            ),
            "toolcrib.core.runs.journal.history": "History StoredRun as_contract holds spending_of wait_key",
            "toolcrib.core.runs.journal.log": "NullJournal RunLog outside_call",
            "toolcrib.core.runs.models.live": "TokenHub",
            "toolcrib.core.runs.models.model_requests": (
                "BudgetExhausted ModelCall ModelCallRules ModelCalls ModelRefused"
            ),
            "toolcrib.core.runs.views.agent_response": "read_response",
            "toolcrib.core.runs.views.comparison": "compare",
            "toolcrib.core.runs.views.handles": (
                "HandleOwner agent_pins answer_of calls_held calls_of check_pins find_last_runs find_unfilled "
                "handle_missing holding_pins outputs_of resolve_pins response_of select_call step_at"
            ),
            "toolcrib.core.runs.views.result": (
                "CallTraceback Result read_result result_of tracebacks_of without_traceback"
            ),
            "toolcrib.core.runs.views.stream": "BEGINNING StreamMessage listen",
            "toolcrib.core.runs.views.trace": "clip_text complete_trace read_trace shorten_json trace_of",
            "toolcrib.core.runs.views.waiting": "NOTHING_WAITS Waiting waiting_of",
        },
    )

__all__ = [
    "BEGIN",
    "BEGINNING",
    "NOTHING_WAITS",
    "QUESTION_ASKED",
    "Branch",
    "BudgetExhausted",
    "CallTraceback",
    "ConcurrentCalls",
    "EndedRuns",
    "EnginePorts",
    "HandleOwner",
    "History",
    "InterruptedCalls",
    "ModelCall",
    "ModelCallRules",
    "ModelCalls",
    "ModelRefused",
    "Nested",
    "NullJournal",
    "Pending",
    "Program",
    "ProgramStart",
    "Question",
    "Result",
    "ReusedCalls",
    "RunBounds",
    "RunContext",
    "RunEnd",
    "RunLog",
    "StoredRun",
    "StreamMessage",
    "Suspended",
    "TokenHub",
    "Waiting",
    "agent_pins",
    "answer_of",
    "as_asked",
    "as_contract",
    "as_settled",
    "calls_held",
    "calls_of",
    "check_pins",
    "client_signal",
    "clip_text",
    "compare",
    "complete_trace",
    "decision_on",
    "end_after",
    "end_of_failed_call",
    "find_last_runs",
    "find_unfilled",
    "handle_missing",
    "holding_pins",
    "holds",
    "in_doubt",
    "in_format",
    "listen",
    "may_ask",
    "open_question",
    "outputs_of",
    "outside_call",
    "question_key",
    "read_response",
    "read_result",
    "read_trace",
    "read_tree",
    "recorded_model",
    "resolve_pins",
    "response_of",
    "result_of",
    "select_call",
    "settlement_of",
    "shorten_json",
    "signals_for",
    "spending_of",
    "step_at",
    "tellers_of",
    "trace_of",
    "tracebacks_of",
    "turn_run_id",
    "wait_key",
    "waiting_approvals",
    "waiting_at",
    "waiting_handoffs",
    "waiting_of",
    "waiting_question",
    "without_traceback",
]
