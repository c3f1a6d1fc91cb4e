"""Runs over the journal: the context that programs use, what recovery knows, and readings of the log."""

from toolcrib.core.runs.context.beginning import BEGIN, confirmed
from toolcrib.core.runs.context.context import Program, RunContext
from toolcrib.core.runs.context.pending_part import Pending, Underway
from toolcrib.core.runs.context.ports import Nested, Surroundings
from toolcrib.core.runs.context.prior_runs import TakenOver
from toolcrib.core.runs.context.start import forked
from toolcrib.core.runs.forks.changed import as_asked
from toolcrib.core.runs.forks.recorded import recorded_model
from toolcrib.core.runs.interrupts.client_calls import signals_for
from toolcrib.core.runs.interrupts.program import Ended, Suspended
from toolcrib.core.runs.interrupts.questions import Question
from toolcrib.core.runs.interrupts.recovery import InDoubt
from toolcrib.core.runs.interrupts.settling import as_settled, in_doubt, settlement_of
from toolcrib.core.runs.interrupts.signals import (
    QUESTION_ASKED,
    client_signal,
    decision_on,
    question_key,
    tellers_of,
    waiting_approvals,
    waiting_at,
    waiting_handoffs,
    waiting_question,
)
from toolcrib.core.runs.interrupts.suspension import Past
from toolcrib.core.runs.interrupts.tree import Branch, open_question, read_tree
from toolcrib.core.runs.interrupts.turns import turn_run_id
from toolcrib.core.runs.journal.arguments import holds
from toolcrib.core.runs.journal.history import History, wait_key
from toolcrib.core.runs.journal.log import Unrecorded, outside_call
from toolcrib.core.runs.journal.log_part import RunLog
from toolcrib.core.runs.journal.spent import spent_in
from toolcrib.core.runs.journal.stored import StoredRun
from toolcrib.core.runs.journal.usage import as_contract
from toolcrib.core.runs.models.calls import BudgetExhausted, ModelCall, ModelCalls, ModelRefused
from toolcrib.core.runs.models.live import Live
from toolcrib.core.runs.views.comparison import compare
from toolcrib.core.runs.views.handles import (
    Place,
    calls_held,
    handle_missing,
    held_in,
    holding_pins,
    pinned_by,
    step_at,
)
from toolcrib.core.runs.views.listening import listen
from toolcrib.core.runs.views.outputs import answer_of, calls_of, outputs_of, response_of
from toolcrib.core.runs.views.pins import check_pins, resolve_pins, selected, unfilled
from toolcrib.core.runs.views.reading import read_trace
from toolcrib.core.runs.views.responses import read_response
from toolcrib.core.runs.views.result import Result, result_of
from toolcrib.core.runs.views.shortening import clipped, shortened
from toolcrib.core.runs.views.stream import BEGINNING, StreamMessage
from toolcrib.core.runs.views.trace_part import trace_of

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
