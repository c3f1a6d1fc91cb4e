"""What went wrong, in the form that all of Google's APIs share.

https://cloud.google.com/apis/design/errors#error_model
"""

from typing import Any

from toolcrib.llm.base.errors import Fault
from toolcrib.llm.base.json_values import arr, count, obj, text

_REASON = "google.rpc.ErrorInfo"
_RETRY = "google.rpc.RetryInfo"
_QUOTA = "google.rpc.QuotaFailure"


def fault_of(body: Any) -> Fault:
    """The fault in a body: `{"error": {...}}`, or an array of it, which streams answer with."""
    content = obj(next(iter(arr(body)), body))
    error = obj(content.get("error"))
    if not error:
        return Fault(text(content.get("error")) or text(content.get("message")))
    details = {text(detail.get("@type")).rpartition("/")[2]: detail for detail in map(obj, arr(error.get("details")))}
    words = (text(obj(details.get(_REASON)).get("reason")), text(error.get("status")))
    return Fault(
        text(error.get("message")),
        tuple(word for word in words if word),
        count(error.get("code")),
        retry_after_s=_seconds(text(obj(details.get(_RETRY)).get("retryDelay"))),
        kind="quota" if _is_daily(obj(details.get(_QUOTA))) else None,
    )


def _is_daily(quota: dict[str, Any]) -> bool:
    """Whether waiting for a minute does not help."""
    return any("PerDay" in text(obj(violation).get("quotaId")) for violation in arr(quota.get("violations")))


def _seconds(duration: str) -> float | None:
    """A duration of protocol buffers: `17s`, `1.5s`."""
    try:
        return float(duration.removesuffix("s"))
    except ValueError:
        return None
