"""The recording that a fork uses: read once from the other run, and stored with the fork as a blob.

So the fork can be resumed and replayed even if the other run is deleted.
"""

from pydantic import Field

from toolcrib.contracts.base.base import Contract, Json, JsonSchema, Timestamp
from toolcrib.contracts.base.envelope import ToolEnvelope
from toolcrib.contracts.runs.events import Event, ModelFailed, ModelFinished, SignalReceived


class RecordedCall(Contract):
    """A tool call with its outcome."""

    event: int
    """Number of the event that has the outcome."""
    envelope: ToolEnvelope
    asked: Json = None
    """Its arguments before a person may have edited them."""


class RecordedAnswer(Contract):
    """A model call with its answer."""

    event: int
    """As of a call."""
    request_hash: str
    """Of the request to the model."""
    end: ModelFinished


class RecordedFailure(Contract):
    """A model call with the failure after which there was no other attempt."""

    event: int
    """As of a call."""
    request_hash: str
    """As of an answer."""
    end: ModelFailed


class RecordedRun(Contract):
    """A nested run, possibly with more than its end."""

    run_id: str
    tool: str
    """Name of the tool that was called."""
    at: int
    """Number of its last event at the time of the cut; 1 if it began later."""


class Recorded(Contract):
    """The other run, cut at one of its events."""

    run_id: str
    began_at: Timestamp
    """When the first run of the chain of forks was made: programs reckon from there."""
    seed: str
    """The id of that run: random numbers of code are those that it had."""
    known: tuple[Event, ...] = ()
    """What the fork knows from the start: with this its own journal begins."""
    calls: tuple[RecordedCall, ...] = ()
    """Those that it may take later, as all that follows."""
    answers: tuple[RecordedAnswer, ...] = ()
    failures: tuple[RecordedFailure, ...] = ()
    found: dict[str, Json] = Field(default_factory=dict)
    """What was found out, by key, in that order."""
    signals: tuple[SignalReceived, ...] = ()
    nested: dict[str, RecordedRun] = Field(default_factory=dict)
    """By position of the call."""
    schemas: dict[str, JsonSchema] = Field(default_factory=dict)
    """Input schemas of the tools that were called, by content hash."""
