"""In-memory twins of the seams: what tests hand to the executor in place of a clock, runtimes, a run and a vault."""

from tests.twins.access import MASTER_KEYS, make_access, make_holder, make_safe
from tests.twins.builders import AT, call, make_context, make_definition, make_tool
from tests.twins.clock import ManualClock
from tests.twins.ports import Behaviour, DictSecrets, DictTools, FunctionDispatcher, RecordingJournal, approve, echo
from tests.twins.rig import Rig

__all__ = [
    "AT",
    "MASTER_KEYS",
    "Behaviour",
    "DictSecrets",
    "DictTools",
    "FunctionDispatcher",
    "ManualClock",
    "RecordingJournal",
    "Rig",
    "approve",
    "call",
    "echo",
    "make_access",
    "make_context",
    "make_definition",
    "make_holder",
    "make_safe",
    "make_tool",
]
