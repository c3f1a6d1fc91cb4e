"""The errors: what a tool call may return as data, and what the library raises.

The failure of a tool is no exception: it is a `ToolError` in the envelope. Exceptions are for callers of the library:

    ToolcribError
    ├── InvalidInput            the caller's data is wrong
    │   ├── InvalidDefinition   a tool, provider or agentic tool is not well formed
    │   ├── InvalidExpression   a template or expression does not parse or evaluate
    │   ├── InvalidSettings     the configuration: a missing key, an unknown model
    │   └── IdempotencyMismatch an idempotency key was sent with another request
    ├── Unauthenticated         no or wrong credentials of the caller
    ├── PermissionDenied        known caller, not allowed
    │   └── EgressDenied        the address is not one this realm may reach
    ├── NotFound                no such tool, run, revision, blob
    │   └── UnknownName         no tool or other definition of this name; says which names there are
    ├── Conflict                the state does not allow it: a taken name, an ended run
    │   ├── RunNotCompleted     the output of a run was asked for that did not complete
    │   ├── JournalDivergence   replayed code asked for another call than the journal recorded
    │   └── IdempotencyConflict a request with the same idempotency key is being carried out
    ├── Fenced                  another process owns the run now; this one must stop
    ├── ReconnectRequired       a provider refuses the credentials that there are, or there are none
    ├── Unavailable             store or network is not there; trying again may help
    │   └── StoreUnavailable    the store, without which a run can neither continue nor end: it continues later
    └── ModelError              a model provider failed; `kind` says how

Each leaf has a stable `code`, an HTTP status, and says whether a retry can help (`retryable`).
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import ClassVar, Literal, TypeAlias, get_args

from toolcrib.contracts.base.base import JsonObject, Record


class ErrorCode(StrEnum):
    """The nine codes of a failed call. They are stable: callers branch on them. Finer causes are `Reason`s."""

    VALIDATION_ERROR = "VALIDATION_ERROR"
    TIMEOUT = "TIMEOUT"
    RATE_LIMIT = "RATE_LIMIT"
    POLICY_DENIED = "POLICY_DENIED"
    AUTH_REQUIRED = "AUTH_REQUIRED"
    PROVIDER_ERROR = "PROVIDER_ERROR"
    NETWORK_ERROR = "NETWORK_ERROR"
    SANDBOX_ERROR = "SANDBOX_ERROR"
    UNKNOWN = "UNKNOWN"


class Reason(StrEnum):
    """The closed second vocabulary: why a call failed, in `ToolError.details["reason"]`."""

    APPROVAL_EXPIRED = "approval_expired"
    APPROVAL_REJECTED = "approval_rejected"
    BAD_RESPONSE = "bad_response"
    BUDGET_EXCEEDED = "budget_exceeded"
    BUDGET_UNKNOWN = "budget_unknown"
    CANCELLED = "cancelled"
    CODE_FAILED = "code_failed"
    CONTENT_BLOCKED = "content_blocked"
    CONTENT_UNTRUSTED = "content_untrusted"
    CYCLE_DETECTED = "cycle_detected"
    DELETION_FORBIDDEN = "deletion_forbidden"
    DEPTH_EXCEEDED = "depth_exceeded"
    GUARDRAIL_REFUSED = "guardrail_refused"
    HANDLE_MISSING = "handle_missing"
    INPUT_SCHEMA_MISMATCH = "input_schema_mismatch"
    INVALID_ARGUMENTS_JSON = "invalid_arguments_json"
    MAX_COST_EXCEEDED = "max_cost_exceeded"
    MAX_ITERATIONS_EXCEEDED = "max_iterations_exceeded"
    MAX_REQUESTS_EXCEEDED = "max_requests_exceeded"
    MAX_TOKENS_EXCEEDED = "max_tokens_exceeded"
    MAX_TOOL_CALLS_EXCEEDED = "max_tool_calls_exceeded"
    MISSING_SECRET = "missing_secret"  # noqa: S105 - the name of a reason, not a secret
    NO_ROUTE = "no_route"
    NOT_FOUND = "not_found"
    NOT_GROUNDED = "not_grounded"
    NOTHING_DONE = "nothing_done"
    OUTCOME_UNKNOWN = "outcome_unknown"
    OUTPUT_SCHEMA_MISMATCH = "output_schema_mismatch"
    PERMISSION_MISSING = "permission_missing"
    PRICE_UNKNOWN = "price_unknown"
    PROVIDER_DISABLED = "provider_disabled"
    QUESTION = "question"
    RATE_LIMITED = "rate_limited"
    REALM_FORBIDDEN = "realm_forbidden"
    RECONNECT_REQUIRED = "reconnect_required"
    REFERENCE_UNRESOLVED = "reference_unresolved"
    REPEATED_CALLS = "repeated_calls"
    REQUEST_REFUSED = "request_refused"
    RUN_TIMEOUT = "run_timeout"
    RUNTIME_MISSING = "runtime_missing"
    SANDBOX_LIMIT_EXCEEDED = "sandbox_limit_exceeded"
    SANDBOX_UNAVAILABLE = "sandbox_unavailable"
    SIDE_EFFECTS_FORBIDDEN = "side_effects_forbidden"
    SSRF_BLOCKED = "ssrf_blocked"
    STALE_VERSION = "stale_version"
    TOOL_BLOCKED = "tool_blocked"
    TOOL_DISABLED = "tool_disabled"
    TOOL_DRIFTED = "tool_drifted"
    TOOL_FAILED = "tool_failed"
    TOOL_NOT_ALLOWED = "tool_not_allowed"
    TOOL_NOT_FOUND = "tool_not_found"
    TOOL_TIMEOUT = "tool_timeout"
    WAIT_TIMEOUT = "wait_timeout"


Effect: TypeAlias = Literal["none", "done", "unknown"]
"""The effect of a failed call: none is known; some or all of it took effect; or unknown."""


class ToolError(Record):
    """Why a call failed, as data that a model, a workflow or a person can act on."""

    code: ErrorCode
    message: str
    """Names the thing, the value, the limit and the next step. Never holds a secret."""
    details: JsonObject | None = None
    """`details["reason"]` is a `Reason`, `details["problems"]` a list of `{path, problem}` for invalid input,
    `details["effect"]` the `Effect` of a call that writes, if it is not `none`."""
    retry_after_s: float | None = None
    """Seconds to wait before the same call may work, where the other side said so."""

    @property
    def reason(self) -> Reason | None:
        """The finer cause, if it is one of the closed vocabulary."""
        value = (self.details or {}).get("reason")
        return next((reason for reason in Reason if reason == value), None)

    @property
    def effect(self) -> Effect:
        """What the call has changed although it failed."""
        if self.reason is Reason.OUTCOME_UNKNOWN:
            return "unknown"
        effect = (self.details or {}).get("effect")
        return effect if effect in {"done", "unknown"} else "none"


class ToolcribError(Exception):
    """Base of everything the library raises.

    Example:
        try:
            await crib.call("serch_deals", company="Acme")
        except ToolcribError as problem:
            print(problem)
    """

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False
    http_status: ClassVar[int] = 500


class InvalidInput(ToolcribError):
    """The caller's data is wrong; the message says what is allowed.

    Args:
        message: What is wrong, and what to do.
        problems: `{path, problem}` of each place, where there are several.
    """

    code = "invalid_input"
    http_status = 422

    def __init__(self, message: str, problems: Sequence[JsonObject] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class InvalidDefinition(InvalidInput):
    """A tool, provider or agentic tool is not well formed."""

    code = "invalid_definition"


class InvalidExpression(InvalidInput):
    """A template or expression does not parse, names something unknown, or exceeds its bounds."""

    code = "invalid_expression"


class InvalidSettings(InvalidInput):
    """The configuration is wrong: a missing API key, an unknown model, a bad URL."""

    code = "invalid_settings"


class IdempotencyMismatch(InvalidInput):
    """An idempotency key was sent with another request before; the message says what to do."""

    code = "idempotency_mismatch"


class Unauthenticated(ToolcribError):
    """No or wrong credentials of the caller."""

    code = "unauthenticated"
    http_status = 401


class PermissionDenied(ToolcribError):
    """The caller is known and not allowed; the message names the missing grant."""

    code = "permission_denied"
    http_status = 403


class EgressDenied(PermissionDenied):
    """The address is not one that this realm may reach."""

    code = "egress_denied"
    unsent = True
    """Whether nothing was sent to anybody, not even to a host that redirects there."""


class NotFound(ToolcribError):
    """No such tool, run, revision or blob in this realm."""

    code = "not_found"
    http_status = 404


class UnknownName(NotFound):
    """There is no tool or other definition of this name.

    Args:
        missing: What there is not.
        instead: What there is, or what to do.
        kind: Kind of the definition: `tool`, `provider`, …
        names: The names that `instead` tells. Who may not see them all is told `missing` alone.
    """

    def __init__(self, missing: str, instead: str, *, kind: str, names: Sequence[str] = ()) -> None:
        super().__init__(f"{missing}; {instead}")
        self.missing = missing
        self.kind = kind
        self.names = tuple(names)


class Conflict(ToolcribError):
    """The current state does not allow it: a taken name, an ended run."""

    code = "conflict"
    http_status = 409


class RunNotCompleted(Conflict):
    """The output of a run was asked for, and the run did not complete; the message says how it stands.

    Args:
        message: The run, its status, the cause, and what to do.
        run_id: The run.
        status: How it stands.
        error: Why it did not complete; null if it waits.

    Example:
        from toolcrib import RunNotCompleted

        result = await crib.invoke("send_offer", {"deal": "d1"})  # waits for an approval
        try:
            result.unwrap()
        except RunNotCompleted as problem:
            print(problem.status, problem)
    """

    code = "run_not_completed"

    def __init__(self, message: str, *, run_id: str = "", status: str = "", error: ToolError | None = None) -> None:
        super().__init__(message)
        self.run_id = run_id
        self.status = status
        self.error = error


class JournalDivergence(Conflict):
    """Replayed code made a different call at a position than the journal has recorded."""

    code = "journal_divergence"


class IdempotencyConflict(Conflict):
    """A request with the same idempotency key is being carried out; the same request succeeds later."""

    code = "idempotency_conflict"
    retryable = True


class Fenced(ToolcribError):
    """Another process owns the run now; this one must stop without writing."""

    code = "fenced"
    http_status = 409


class ReconnectRequired(ToolcribError):
    """A provider refuses the credentials, or there are none: a person has to connect it again."""

    code = "reconnect_required"
    http_status = 424


class Unavailable(ToolcribError):
    """Store or network is not there."""

    code = "unavailable"
    retryable = True
    http_status = 503


class StoreUnavailable(Unavailable):
    """The store cannot be reached, read or written.

    It never ends a run, because the end could not be stored: when the store is back, a process resumes the run
    from its journal.
    """

    code = "store_unavailable"


ModelErrorKind: TypeAlias = Literal[
    "rate_limit",
    "quota",
    "auth",
    "not_found",
    "context_length",
    "content_filter",
    "bad_request",
    "overloaded",
    "server",
    "timeout",
    "connection",
    "stream_cut",
    "bad_response",
]
"""How a model provider can fail: the closed set that every wire format is mapped to."""

MODEL_ERROR_KINDS: tuple[ModelErrorKind, ...] = get_args(ModelErrorKind)
RETRYABLE_MODEL_ERRORS: frozenset[str] = frozenset(
    {"rate_limit", "overloaded", "server", "timeout", "connection", "stream_cut"}
)
"""The kinds after which the loop tries the same request again, with back-off."""


def missing_extra(what: str, package: str | None, extra: str) -> str:
    """The message for something that needs packages which are not installed, with the command that installs them.

    Args:
        what: What needs them.
        package: The package that was looked for; null if that is not known.
        extra: The extra of Toolcrib that has them.
    """
    return f"{what} needs {package or extra!r}, which is not installed: pip install 'toolcrib[{extra}]'"


class ModelError(ToolcribError):
    """A model provider failed. The layer never retries; the loop decides by `kind` and journals every attempt.

    Args:
        kind: One of `MODEL_ERROR_KINDS`.
        message: What happened and what to do, without credentials.
        status: HTTP status, 0 if there was no answer.
        retry_after_s: Seconds to wait, where the provider said so.
        provider_code: The provider's own error code or type, untouched.
        request_id: The provider's id of the request.
    """

    code = "model_error"
    http_status = 502

    def __init__(
        self,
        kind: ModelErrorKind,
        message: str,
        *,
        status: int = 0,
        retry_after_s: float | None = None,
        provider_code: str | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: ModelErrorKind = kind
        self.status = status
        self.retry_after_s = retry_after_s
        self.provider_code = provider_code
        self.request_id = request_id

    @property
    def may_retry(self) -> bool:
        """Whether the same request can work later."""
        return self.kind in RETRYABLE_MODEL_ERRORS

    @property
    def may_fall_back(self) -> bool:
        """Whether the same request can work at another provider: the failure is not one of the request itself."""
        return self.kind not in {"bad_request", "content_filter", "context_length"}
