"""Runs over the journal: the context that programs use, what recovery knows, and readings of the log."""

from toolcrib.core.runs.context.context import Program, RunContext
from toolcrib.core.runs.context.pending import Pending, Underway
from toolcrib.core.runs.context.ports import Nested, Surroundings
from toolcrib.core.runs.context.prior_runs import TakenOver
from toolcrib.core.runs.context.start import BEGIN, confirmed, forked
from toolcrib.core.runs.forks.fork import as_asked
from toolcrib.core.runs.forks.recording import recorded_model
from toolcrib.core.runs.interrupts.approvals import Question
from toolcrib.core.runs.interrupts.client_calls import signals_for
from toolcrib.core.runs.interrupts.recovery import InDoubt, as_settled, in_doubt, settlement_of
from toolcrib.core.runs.interrupts.signals import (
    QUESTION_ASKED,
    Branch,
    client_signal,
    decision_on,
    open_question,
    question_key,
    read_tree,
    tellers_of,
    waiting_approvals,
    waiting_at,
    waiting_handoffs,
    waiting_question,
)
from toolcrib.core.runs.interrupts.suspension import Ended, Past, Suspended, turn_run_id
from toolcrib.core.runs.journal.history import History, StoredRun, as_contract, holds, spent_in, wait_key
from toolcrib.core.runs.journal.log import RunLog, Unrecorded, outside_call
from toolcrib.core.runs.models.calls import BudgetExhausted, ModelCall, ModelCalls, ModelRefused
from toolcrib.core.runs.models.live import Live
from toolcrib.core.runs.views.comparison import compare
from toolcrib.core.runs.views.handles import (
    Place,
    answer_of,
    calls_held,
    calls_of,
    check_pins,
    handle_missing,
    held_in,
    holding_pins,
    outputs_of,
    pinned_by,
    resolve_pins,
    response_of,
    selected,
    step_at,
    unfilled,
)
from toolcrib.core.runs.views.result import Result, read_response, result_of
from toolcrib.core.runs.views.stream import BEGINNING, StreamMessage, listen
from toolcrib.core.runs.views.trace import clipped, read_trace, shortened, trace_of

__all__ = [
    "BEGIN",
    "BEGINNING",
    "QUESTION_ASKED",
    "Branch",
    "BudgetExhausted",
    "Ended",
    "History",
    "InDoubt",
    "Live",
    "ModelCall",
    "ModelCalls",
    "ModelRefused",
    "Nested",
    "Past",
    "Pending",
    "Place",
    "Program",
    "Question",
    "Result",
    "RunContext",
    "RunLog",
    "StoredRun",
    "StreamMessage",
    "Surroundings",
    "Suspended",
    "TakenOver",
    "Underway",
    "Unrecorded",
    "answer_of",
    "as_asked",
    "as_contract",
    "as_settled",
    "calls_held",
    "calls_of",
    "check_pins",
    "client_signal",
    "clipped",
    "compare",
    "confirmed",
    "decision_on",
    "forked",
    "handle_missing",
    "held_in",
    "holding_pins",
    "holds",
    "in_doubt",
    "listen",
    "open_question",
    "outputs_of",
    "outside_call",
    "pinned_by",
    "question_key",
    "read_response",
    "read_trace",
    "read_tree",
    "recorded_model",
    "resolve_pins",
    "response_of",
    "result_of",
    "selected",
    "settlement_of",
    "shortened",
    "signals_for",
    "spent_in",
    "step_at",
    "tellers_of",
    "trace_of",
    "turn_run_id",
    "unfilled",
    "wait_key",
    "waiting_approvals",
    "waiting_at",
    "waiting_handoffs",
    "waiting_question",
]
