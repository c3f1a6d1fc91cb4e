"""The one error vocabulary."""

import re
from inspect import getdoc

import pytest

from toolcrib.contracts import MODEL_ERROR_KINDS, ErrorCode, ModelError, Reason, ToolcribError, ToolError
from toolcrib.contracts.base import errors

TREE = {
    "ToolcribError": ("error", 500, False, "Exception"),
    "InvalidInput": ("invalid_input", 422, False, "ToolcribError"),
    "InvalidDefinition": ("invalid_definition", 422, False, "InvalidInput"),
    "InvalidExpression": ("invalid_expression", 422, False, "InvalidInput"),
    "InvalidSettings": ("invalid_settings", 422, False, "InvalidInput"),
    "Unauthenticated": ("unauthenticated", 401, False, "ToolcribError"),
    "PermissionDenied": ("permission_denied", 403, False, "ToolcribError"),
    "EgressDenied": ("egress_denied", 403, False, "PermissionDenied"),
    "ReconnectRequired": ("reconnect_required", 424, False, "ToolcribError"),
    "NotFound": ("not_found", 404, False, "ToolcribError"),
    "IdempotencyConflict": ("idempotency_conflict", 409, True, "Conflict"),
    "IdempotencyMismatch": ("idempotency_mismatch", 422, False, "InvalidInput"),
    "UnknownName": ("not_found", 404, False, "NotFound"),
    "Conflict": ("conflict", 409, False, "ToolcribError"),
    "RunNotCompleted": ("run_not_completed", 409, False, "Conflict"),
    "JournalDivergence": ("journal_divergence", 409, False, "Conflict"),
    "Fenced": ("fenced", 409, False, "ToolcribError"),
    "Unavailable": ("unavailable", 503, True, "ToolcribError"),
    "StoreUnavailable": ("store_unavailable", 503, True, "Unavailable"),
    "ModelError": ("model_error", 502, False, "ToolcribError"),
}
"""Code, HTTP status, retryable and parent: callers branch on them, so a line changes in a major version only."""


def defined() -> dict[str, type[ToolcribError]]:
    return {
        name: found
        for name, found in vars(errors).items()
        if isinstance(found, type) and issubclass(found, ToolcribError)
    }


def drawn() -> dict[str, str]:
    """The drawing at the top of the module: each class with its parent."""
    parents: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r" {4}((?:│   |    )*(?:├── |└── )?)([A-Z]\w+)", line)
        if match:
            depth = len(match.group(1)) // 4
            path[depth:] = [match.group(2)]
            parents[match.group(2)] = path[depth - 1] if depth else "Exception"
    return parents


@pytest.mark.requirement("contracts.error_tree")
def test_codes_statuses_and_parents_are_stable():
    found = {
        name: (error.code, error.http_status, error.retryable, error.__base__ and error.__base__.__name__)
        for name, error in defined().items()
    }

    assert found == TREE
    assert len({error.code for error in defined().values()}) == len(TREE) - 1  # UnknownName is not_found too


@pytest.mark.requirement("contracts.error_tree")
def test_the_drawing_shows_every_exception_in_its_place():
    assert drawn() == {name: parent for name, (_, _, _, parent) in TREE.items()}


@pytest.mark.requirement("contracts.error_tree")
@pytest.mark.parametrize("name", TREE)
def test_every_exception_says_when_it_is_raised(name: str):
    assert getdoc(defined()[name])


@pytest.mark.requirement("contracts.error_codes")
def test_the_nine_codes_are_closed():
    assert list(ErrorCode) == [
        "VALIDATION_ERROR",
        "TIMEOUT",
        "RATE_LIMIT",
        "POLICY_DENIED",
        "AUTH_REQUIRED",
        "PROVIDER_ERROR",
        "NETWORK_ERROR",
        "SANDBOX_ERROR",
        "UNKNOWN",
    ]


@pytest.mark.requirement("contracts.error_codes")
def test_reasons_are_sorted_and_spelled_in_snake_case():
    assert list(Reason) == sorted(Reason)
    assert [reason for reason in Reason if reason.name.lower() != reason.value] == []


@pytest.mark.requirement("contracts.error_codes")
@pytest.mark.parametrize(
    ("details", "reason"),
    [
        ({"reason": "outcome_unknown"}, Reason.OUTCOME_UNKNOWN),
        ({"reason": "of a later release"}, None),
        ({"reason": ["outcome_unknown"]}, None),
        ({}, None),
        (None, None),
    ],
)
def test_a_tool_error_knows_its_reason_if_it_is_of_the_vocabulary(
    details: dict[str, object] | None, reason: Reason | None
):
    assert ToolError(code=ErrorCode.UNKNOWN, message="it failed", details=details).reason is reason


@pytest.mark.requirement("contracts.model_errors")
def test_exactly_the_passing_failures_of_a_model_may_be_tried_again():
    retryable = {kind for kind in MODEL_ERROR_KINDS if ModelError(kind, "it failed").may_retry}

    assert retryable == {"rate_limit", "overloaded", "server", "timeout", "connection", "stream_cut"}
    assert set(MODEL_ERROR_KINDS) - retryable == {
        "quota",
        "auth",
        "not_found",
        "context_length",
        "content_filter",
        "bad_request",
        "bad_response",
    }


@pytest.mark.requirement("contracts.model_errors")
def test_a_model_error_keeps_what_the_provider_said():
    error = ModelError(
        "rate_limit", "too many", status=429, retry_after_s=2.5, provider_code="slow_down", request_id="r1"
    )

    assert (error.status, error.retry_after_s, error.provider_code, error.request_id) == (429, 2.5, "slow_down", "r1")
    assert str(error) == "too many"
