"""Runs over the journal: the context that programs use, what recovery knows, and readings of the log."""

from toolcrib.runs.context import Nested, Program, RunContext, Surroundings
from toolcrib.runs.history import History
from toolcrib.runs.indoubt import InDoubt
from toolcrib.runs.log import RunLog
from toolcrib.runs.modelcalls import BudgetExhausted, ModelCall, ModelCalls, as_contract
from toolcrib.runs.pending import Pending
from toolcrib.runs.program import Ended, Suspended
from toolcrib.runs.reading import read_trace
from toolcrib.runs.result import Result
from toolcrib.runs.shortening import clipped, shortened
from toolcrib.runs.trace import trace_of
from toolcrib.runs.unrecorded import Unrecorded, outside_call
from toolcrib.runs.waiting import (
    approval_signal,
    client_signal,
    decision_on,
    waiting_approvals,
    waiting_at,
    waiting_handoffs,
)

__all__ = [
    "BudgetExhausted",
    "Ended",
    "History",
    "InDoubt",
    "ModelCall",
    "ModelCalls",
    "Nested",
    "Pending",
    "Program",
    "Result",
    "RunContext",
    "RunLog",
    "Surroundings",
    "Suspended",
    "Unrecorded",
    "approval_signal",
    "as_contract",
    "client_signal",
    "clipped",
    "decision_on",
    "outside_call",
    "read_trace",
    "shortened",
    "trace_of",
    "waiting_approvals",
    "waiting_at",
    "waiting_handoffs",
]
