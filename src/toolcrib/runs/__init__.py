"""Runs over the journal: the context that programs use, what recovery knows, and readings of the log."""

from toolcrib.runs.context import RunContext, Surroundings
from toolcrib.runs.history import History
from toolcrib.runs.indoubt import InDoubt
from toolcrib.runs.log import RunLog
from toolcrib.runs.modelcalls import BudgetExhausted, ModelCall, ModelCalls, as_contract
from toolcrib.runs.pending import Pending
from toolcrib.runs.program import Ended, Program, Suspended
from toolcrib.runs.result import Result
from toolcrib.runs.trace import LLMStep, ToolStep, Trace, trace_of
from toolcrib.runs.unrecorded import Unrecorded

__all__ = [
    "BudgetExhausted",
    "Ended",
    "History",
    "InDoubt",
    "LLMStep",
    "ModelCall",
    "ModelCalls",
    "Pending",
    "Program",
    "Result",
    "RunContext",
    "RunLog",
    "Surroundings",
    "Suspended",
    "ToolStep",
    "Trace",
    "Unrecorded",
    "as_contract",
    "trace_of",
]
