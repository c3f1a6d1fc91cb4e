"""Runs over the journal: the context that programs use, what recovery knows, and readings of the log."""

from toolcrib.runs.context import RunContext, Surroundings
from toolcrib.runs.history import History
from toolcrib.runs.indoubt import InDoubt
from toolcrib.runs.log import RunLog
from toolcrib.runs.modelcalls import BudgetExhausted, ModelCall, ModelCalls, as_contract
from toolcrib.runs.pending import Pending
from toolcrib.runs.program import Ended, Program, Suspended

__all__ = [
    "BudgetExhausted",
    "Ended",
    "History",
    "InDoubt",
    "ModelCall",
    "ModelCalls",
    "Pending",
    "Program",
    "RunContext",
    "RunLog",
    "Surroundings",
    "Suspended",
    "as_contract",
]
