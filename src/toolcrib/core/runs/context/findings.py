"""What an envelope tells about the call besides its output: why it was denied, and what of it is missing."""

from collections.abc import Iterable
from typing import cast

from toolcrib.contracts import GuardDecision, JsonObject, ToolEnvelope


def denial_of(envelope: ToolEnvelope) -> GuardDecision | None:
    """The decision by which a call was denied; null if it was not."""
    if envelope.status != "denied" or envelope.error is None:
        return None
    details = envelope.error.details or {}
    return GuardDecision(
        outcome="deny",
        rule=details.get("rule", "resolve"),
        reason=envelope.error.reason,
        message=envelope.error.message,
        inputs=details.get("inputs", {}),
    )


def incomplete(envelope: ToolEnvelope) -> Iterable[str]:
    """Warnings of a list that ends before its end: what is made of it is not made of all of it."""
    paging = envelope.metadata.get("paging")
    if isinstance(paging, dict) and cast("JsonObject", paging).get("complete") is False:
        for warning in envelope.metadata.get("warnings", ()):
            yield f"{envelope.name}: {warning}"
