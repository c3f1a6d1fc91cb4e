"""Approvals: how the inbox shows a call that waits, or has waited, for a person's decision.

An approval is derived from its run's journal and stored beside it; the decision is a signal to the run. Approvals are
separate from the tool's permission, which is checked in any case.
"""

from hashlib import sha256
from typing import Literal, TypeAlias

from toolcrib.contracts.base.base import Contract, Json, JsonObject, JsonSchema, Timestamp
from toolcrib.contracts.base.envelope import SideEffects
from toolcrib.contracts.runs.runs import ApprovalQuestion

ApprovalStatus: TypeAlias = Literal["waiting", "approved", "edited", "rejected", "expired", "cancelled"]
"""`edited`: approved with other arguments. `cancelled`: withdrawn, or its run has ended."""

_SIGNAL = "approval:"


def approval_signal(position: str, number: int = 1) -> str:
    """Name of the signal that decides on the call at a position.

    Args:
        position: Of the call in its run.
        number: Of the request; 2 and more if the person was asked again.
    """
    return f"{_SIGNAL}{position}" if number == 1 else f"{_SIGNAL}{position}#{number}"


def is_approval_signal(name: str) -> bool:
    """Whether a signal decides on a call."""
    return name.startswith(_SIGNAL)


def approval_id(run_id: str, signal: str) -> str:
    """The id of an approval: a function of its run and the signal that decides it, so that a replay finds it again."""
    return f"apr_{sha256(f'{run_id}/{signal}'.encode()).hexdigest()[:32]}"


class Approval(Contract):
    """A call that waits, or has waited, for a person."""

    approval_id: str
    realm: str
    run_id: str
    """The run that makes the call, at any depth."""
    position: str
    number: int = 1
    """2 and more: asked again, because what the person was shown was not what would happen any more."""
    root_run_id: str
    """The outermost run; `run_id` if the run is not nested."""
    callers: tuple[str, ...] = ()
    """The tools that are open above the call, outermost first: `name@version`."""
    call_id: str
    tool: str
    """The tool's name without its version."""
    version: str
    content_hash: str
    arguments_hash: str
    policy_hash: str | None = None
    narrowed: JsonSchema | None = None
    """What arguments must meet besides the tool's own schema: live enums of reference data."""
    side_effects: SideEffects
    input: Json
    message: str = ""
    requested_by: str
    """Id of the principal who started the outermost run."""
    acting: str
    """Id of the principal who makes the call, such as the service account of an agent."""
    step: str | None = None
    """Name of the step that asks, where no call waits: `tool` is the workflow then, and `input` what is shown."""
    question: ApprovalQuestion = "permission"
    """`outcome`: the call was cut off, and the person is asked whether it took effect."""
    requested_at: Timestamp
    expires_at: Timestamp | None = None
    """After this time it cannot be approved, and the call is denied."""
    status: ApprovalStatus = "waiting"
    decided_by: str | None = None
    decided_at: Timestamp | None = None
    reason: str | None = None
    """What the person said, or why it was cancelled."""
    edited_input: JsonObject | None = None

    @property
    def signal(self) -> str:
        """Name of the signal that decides it."""
        return approval_signal(self.position, self.number)


class ApprovalPreview(Contract):
    """What would happen if a waiting call were approved, as far as it can be said without doing it; no secrets."""

    title: str
    """The tool's title, or its name."""
    description: str = ""
    side_effects: SideEffects
    arguments: Json
    method: str | None = None
    """For an HTTP call."""
    url: str | None = None
    """For an HTTP call, with its parameters and without credentials."""
    entity: str | None = None
    """For a call on an entity: what it is called."""
    operation: str | None = None
    """For a call on an entity: create, read, update…"""
    filter: Json = None
    """For a call on an entity: which rows."""


class ApprovalView(Contract):
    """An approval with a preview."""

    approval: Approval
    preview: ApprovalPreview | None = None
    """Null if the tool's revision cannot be read here any more."""


class ApprovalPage(Contract):
    """Some approvals, the oldest first."""

    items: tuple[Approval, ...]
    next: str | None = None
    """`after` of the next page; null on the last."""
