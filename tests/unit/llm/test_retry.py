"""The retry policy."""

import pytest

from toolcrib.contracts.base.errors import MODEL_ERROR_KINDS, RETRYABLE_MODEL_ERRORS, ModelError, ModelErrorKind
from toolcrib.llm import ModelRetryPolicy

pytestmark = pytest.mark.requirement("llm.retry_policy")


@pytest.mark.parametrize("kind", MODEL_ERROR_KINDS)
def test_only_what_may_pass_is_tried_again(kind: ModelErrorKind):
    wait = ModelRetryPolicy().wait_s(ModelError(kind, "x"), 0, 0.0)

    assert (wait is not None) == (kind in RETRYABLE_MODEL_ERRORS)


def test_waits_double_up_to_the_cap_and_end_after_three():
    error = ModelError("server", "x")

    assert [ModelRetryPolicy().wait_s(error, retries, 0.0) for retries in range(4)] == [0.5, 1.0, 2.0, None]
    assert ModelRetryPolicy(max_retries=99).wait_s(error, 20, 0.0) == 30.0


def test_jitter_shortens_a_wait_by_up_to_half():
    assert ModelRetryPolicy().wait_s(ModelError("server", "x"), 1, 0.5) == 0.75


def test_what_the_provider_asks_for_is_honoured_unless_it_is_absurd():
    policy = ModelRetryPolicy()

    assert policy.wait_s(ModelError("rate_limit", "x", retry_after_s=17.0), 0, 0.9) == 17.0
    assert policy.wait_s(ModelError("rate_limit", "x", retry_after_s=0.0), 0, 0.9) == 0.0
    assert policy.wait_s(ModelError("rate_limit", "x", retry_after_s=301.0), 0, 0.0) is None
    assert policy.wait_s(ModelError("rate_limit", "x", retry_after_s=1.0), 3, 0.0) is None
