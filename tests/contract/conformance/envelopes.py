"""What holds for every envelope, whatever kind of tool it is of and however the call ended."""

import pytest

from tests.contract.conformance.clock import TICK_S
from toolcrib.contracts import EFFECTS, ErrorCode, Reason, ToolEnvelope, ToolRevision, call_id

FIELDS = frozenset(ToolEnvelope.model_fields)
SPANS = frozenset(("queue", "validate", "policy", "wait", "execute", "serialize"))


def check_envelope(envelope: ToolEnvelope, tool: ToolRevision) -> None:
    """Hold an envelope against what is promised for all of them (contracts, sections 1 to 3)."""
    told = envelope.model_dump(mode="json")
    assert told.keys() == FIELDS
    assert told["timings"].keys() == SPANS
    assert (envelope.name, envelope.version) == (tool.name, tool.version)
    assert (envelope.content_hash, envelope.side_effects) == (tool.content_hash, tool.definition.side_effects)
    assert envelope.side_effects in EFFECTS
    assert envelope.run_id
    scope = f"{envelope.run_id}/" if envelope.position == "call" else ""  # a direct call has an id of its own
    assert envelope.call_id == call_id(tool.name, tool.version, envelope.input, scope + envelope.position)
    assert not envelope.requires_client_execution or tool.definition.runs_on == "client"
    check_outcome(envelope)
    check_time(envelope)


def check_outcome(envelope: ToolEnvelope) -> None:
    """Status, output, error and cost belong together."""
    assert (envelope.error is None) is (envelope.status in ("success", "skipped"))
    if envelope.error is not None:
        assert envelope.output is None
        assert envelope.error.code in ErrorCode
        assert envelope.error.reason in Reason
        assert envelope.error.message
    if envelope.status in ("denied", "skipped"):
        assert envelope.attempts == 0
        assert envelope.cost_usd is None
    assert not (envelope.cached and envelope.attempts)


def check_time(envelope: ToolEnvelope) -> None:
    """The spans are contiguous: they are the whole, but for the looks at the clock at its ends."""
    spans = list(envelope.timings.model_dump().values())
    assert min(spans) >= 0
    whole = (envelope.t_end - envelope.t_start).total_seconds()
    looks = 4 if envelope.requires_client_execution else 2  # also where it was handed over, and taken up again
    assert sum(spans) == pytest.approx(whole - looks * TICK_S, abs=1e-6) or (not any(spans) and whole <= TICK_S)
