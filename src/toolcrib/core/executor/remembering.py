"""Results of equal calls: when one may stand for another, and what of it is kept.

A cache that is not there is a miss, and what could not be kept is called again: neither fails a call.
"""

import contextlib
from datetime import timedelta

from toolcrib.contracts import Attachment, JsonObject, ToolEnvelope, ToolRevision, Unavailable, cache_key
from toolcrib.core.executor.envelope import Receipt
from toolcrib.core.executor.ports import Clock, Results
from toolcrib.core.policy import is_untrusted

_KEPT = {"output", "http_status", "metadata", "attachments", "tainted"}


class Remembering:
    """Keeps envelopes for equal calls, as far as their tools allow it.

    Args:
        results: Where they are kept.
        clock: Time, for how long.
    """

    def __init__(self, results: Results, clock: Clock) -> None:
        self._results = results
        self._clock = clock

    def key(self, receipt: Receipt, tool: ToolRevision) -> str | None:
        """What equal calls have in common; null if the tool's results are not kept."""
        definition = tool.definition
        if definition.cache == "none" or definition.side_effects == "writes":
            return None
        # What is read may depend on whose credentials read it, its provider's included; what is computed does not.
        pure = definition.side_effects == "none" and not definition.secrets and definition.provider is None
        scope = "" if pure else receipt.context.principal.id
        return cache_key(tool.realm, scope, tool.name, tool.content_hash, receipt.arguments)

    async def recall(self, key: str | None) -> JsonObject | None:
        """What was kept; null if nothing was."""
        if key is None:
            return None
        with contextlib.suppress(Unavailable):
            return await self._results.get(key, now=self._clock.now())
        return None

    async def keep(self, key: str | None, receipt: Receipt, tool: ToolRevision, envelope: ToolEnvelope) -> ToolEnvelope:
        """The envelope, which is kept for equal calls if it may be: of any run, so only as the tool brought it."""
        if key is None or not envelope.ok or envelope.truncated or not receipt.as_it_was:
            return envelope
        lifetime = tool.definition.cache_ttl_s
        expires = None if lifetime is None else self._clock.now() + timedelta(seconds=lifetime)
        value = envelope.model_dump(mode="json", include=_KEPT)
        made_by = receipt.context.principal.id
        with contextlib.suppress(Unavailable):
            await self._results.put(key, value, realm=tool.realm, made_by=made_by, expires_at=expires)
        return envelope


def sealed_again(receipt: Receipt, tool: ToolRevision, stored: JsonObject) -> ToolEnvelope:
    """The envelope of a call whose result was kept."""
    receipt.tainted = stored.get("tainted", is_untrusted(tool.definition))
    return receipt.seal(
        "success",
        output=stored["output"],
        http_status=stored["http_status"],
        metadata=stored["metadata"],
        attachments=tuple(Attachment.model_validate(item) for item in stored["attachments"]),
        cached=True,
    )
