"""Runs over the journal: the context that programs use, what recovery knows, and readings of the log."""

from toolcrib.runs.arguments import holds
from toolcrib.runs.beginning import BEGIN, confirmed
from toolcrib.runs.changed import as_asked
from toolcrib.runs.comparing import compare
from toolcrib.runs.context import Program, RunContext
from toolcrib.runs.forking import forked
from toolcrib.runs.handles import Place, calls_held, handle_missing, held_in, holding_pins, pinned_by, step_at
from toolcrib.runs.history import History, wait_key
from toolcrib.runs.indoubt import InDoubt
from toolcrib.runs.listening import listen
from toolcrib.runs.live import Live
from toolcrib.runs.log import RunLog
from toolcrib.runs.modelcalls import BudgetExhausted, ModelCall, ModelCalls, ModelRefused
from toolcrib.runs.narration import BEGINNING, StreamMessage
from toolcrib.runs.outputs import answer_of, calls_of, outputs_of, response_of
from toolcrib.runs.past import Past
from toolcrib.runs.pending import Pending, Underway
from toolcrib.runs.pins import check_pins, resolve_pins, selected, unfilled
from toolcrib.runs.program import Ended, Suspended
from toolcrib.runs.questions import Question
from toolcrib.runs.reading import read_trace
from toolcrib.runs.recorded import recorded_model
from toolcrib.runs.responses import read_response
from toolcrib.runs.result import Result, result_of
from toolcrib.runs.returns import signals_for
from toolcrib.runs.settling import as_settled, in_doubt, settlement_of
from toolcrib.runs.shortening import clipped, shortened
from toolcrib.runs.spent import spent_in
from toolcrib.runs.stored import StoredRun
from toolcrib.runs.surroundings import Nested, Surroundings
from toolcrib.runs.takeover import TakenOver
from toolcrib.runs.trace import trace_of
from toolcrib.runs.tree import Branch, open_question, read_tree
from toolcrib.runs.turns import turn_run_id
from toolcrib.runs.unrecorded import Unrecorded, outside_call
from toolcrib.runs.usage import as_contract
from toolcrib.runs.waiting import (
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
