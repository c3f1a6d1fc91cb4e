"""Signatures of webhooks, by the forms that senders use: made and checked here, with HMAC-SHA256 in all of them.

Formats: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md,
https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries,
https://docs.stripe.com/webhooks#verify-manually, https://docs.slack.dev/authentication/verifying-requests-from-slack.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import Final, cast

from pydantic_core import from_json

from toolcrib.contracts import JsonObject, Unauthenticated, WebhookForm

_PREFIX: Final = "whsec_"
_LONGEST: Final = 4096
"""Characters of a header that is looked at."""


def sign(form: WebhookForm, secret: str, body: bytes, *, event_id: str, at: datetime) -> dict[str, str]:
    """The headers that sign a webhook.

    Args:
        form: How.
        secret: The shared secret; `standard` takes `whsec_` and base64 as well as any other text.
        body: What is sent.
        event_id: Names the event, in `standard`; the other forms sign none.
        at: The present.
    """
    seconds = str(int(at.timestamp()))
    match form:
        case "standard":
            signed = f"{event_id}.{seconds}.".encode() + body
            value = base64.b64encode(_mac(_key(secret), signed)).decode()
            return {"webhook-id": event_id, "webhook-timestamp": seconds, "webhook-signature": f"v1,{value}"}
        case "github":
            return {"x-hub-signature-256": f"sha256={_mac(secret.encode(), body).hex()}"}
        case "stripe":
            value = _mac(secret.encode(), f"{seconds}.".encode() + body).hex()
            return {"stripe-signature": f"t={seconds},v1={value}"}
        case "slack":
            value = _mac(secret.encode(), f"v0:{seconds}:".encode() + body).hex()
            return {"x-slack-request-timestamp": seconds, "x-slack-signature": f"v0={value}"}


def verify(
    form: WebhookForm,
    secret: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    now: datetime,
    tolerance_s: float = 300.0,
) -> str:
    """Check that a webhook was signed with a secret, not long ago.

    Args:
        form: How it is signed.
        secret: The shared secret.
        headers: Of the request, with names in lower case.
        body: Of the request, byte for byte as it came.
        now: The present.
        tolerance_s: Seconds by which its time may differ.

    Returns:
        The id of the event: the sender's, or a digest of what was signed.

    Raises:
        Unauthenticated: It is not signed so. The message does not say what is wrong.
    """
    given = {name: value for name, value in headers.items() if len(value) <= _LONGEST}
    key = _key(secret) if form == "standard" else secret.encode()
    signed, offered, event_id, seconds = _read(form, given, body)
    expected = _mac(key, signed)
    # All of them are compared, and the time is looked at afterwards: how long it takes tells nothing.
    matches = [hmac.compare_digest(expected, each) for each in offered]
    if not any(matches) or (seconds is not None and abs(now.timestamp() - seconds) > tolerance_s):
        raise Unauthenticated("the webhook's signature is missing, wrong or too old")
    return event_id or hashlib.sha256(signed).hexdigest()


def _read(form: WebhookForm, headers: Mapping[str, str], body: bytes) -> tuple[bytes, list[bytes], str, float | None]:
    """What was signed, the signatures, the id of the event, and when it was signed; null if no time is signed."""
    match form:
        case "standard":
            event_id, seconds = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
            marks = [mark.partition(",") for mark in headers.get("webhook-signature", "").split(" ")]
            offered = [_base64(value) for version, _, value in marks if version == "v1"]
            return f"{event_id}.{seconds}.".encode() + body, offered, event_id, _seconds(seconds)
        case "github":
            mark = headers.get("x-hub-signature-256", "").removeprefix("sha256=")
            return body, [_hex(mark)], "", None  # the header that names a delivery is not signed
        case "stripe":
            pairs = [part.strip().partition("=") for part in headers.get("stripe-signature", "").split(",")]
            seconds = next((value for name, _, value in pairs if name == "t"), "")
            offered = [_hex(value) for name, _, value in pairs if name == "v1"]
            return f"{seconds}.".encode() + body, offered, _id_in(body), _seconds(seconds)
        case "slack":
            seconds = headers.get("x-slack-request-timestamp", "")
            mark = headers.get("x-slack-signature", "").removeprefix("v0=")
            return f"v0:{seconds}:".encode() + body, [_hex(mark)], "", _seconds(seconds)


def _id_in(body: bytes) -> str:
    """The id of the event that a body describes: it stays the same when the event is sent again."""
    try:
        found = from_json(body)
    except ValueError:
        return ""
    event_id = cast("JsonObject", found).get("id") if isinstance(found, dict) else None
    return event_id[:200] if isinstance(event_id, str) else ""


def _mac(key: bytes, signed: bytes) -> bytes:
    return hmac.new(key, signed, hashlib.sha256).digest()


def _key(secret: str) -> bytes:
    if not secret.startswith(_PREFIX):
        return secret.encode()
    return base64.b64decode(secret.removeprefix(_PREFIX) + "==")


def _seconds(text: str) -> float:
    """A time as it is signed; one that is none is too old."""
    return float(text) if text.isascii() and text.isdigit() and len(text) <= 12 else float("-inf")


def _hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
