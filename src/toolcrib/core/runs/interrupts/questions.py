"""What a step of a workflow asks a person: a request in the same inbox as those of calls, though no call waits."""

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from toolcrib.contracts import (
    ApprovalRequested,
    Json,
    JsonObject,
    JsonSchema,
    ToolRevision,
    canonical,
    digest,
    hash_call,
)

_KINDS: Final[dict[type, str]] = {
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


class Question(Struct, frozen=True):
    """What a person is asked."""

    step: str
    """Name of the step."""
    message: str
    show: JsonObject
    """What the person sees and may change."""
    expires_s: float | None = None
    """Seconds after which it counts as rejected; null for never."""


def request_for(question: Question, position: str, workflow: ToolRevision, now: datetime) -> ApprovalRequested:
    """The request that stands in the inbox.

    Args:
        question: What is asked.
        position: Of the step in its run.
        workflow: The revision that runs; who may decide on its calls may decide on this.
        now: The moment in which it is asked.
    """
    shown, expires_s = canonical(question.show), question.expires_s
    return ApprovalRequested(
        position=position,
        call_id=hash_call(workflow.name, workflow.version, shown, position),
        name=workflow.name,
        version=workflow.version,
        input=question.show,
        arguments_hash=f"sha256:{digest(shown)}",
        content_hash=workflow.content_hash,
        narrowed=_like(question.show),
        side_effects=workflow.definition.side_effects,
        message=question.message,
        expires_at=None if expires_s is None else now + timedelta(seconds=expires_s),
        step=question.step,
    )


def _like(shown: JsonObject) -> JsonSchema:
    """What it may become: the same members with values of the same kinds, so that later steps can read it."""
    return {
        "type": "object",
        "properties": {name: _kind_of(value) for name, value in shown.items()},
        "required": list(shown),
        "additionalProperties": False,
    }


def _kind_of(value: Json) -> JsonSchema:
    return {} if value is None else {"type": _KINDS[type(value)]}
