"""Calls that are refused before anything runs: the same refusals on every kind of tool."""

from typing import Any

import msgspec
import pytest

from tests.contract.conformance.envelopes import check_outcome, check_time
from tests.contract.conformance.kind import NAME, Kind
from tests.contract.conformance.kinds import every_kind, every_kind_that_writes
from tests.contract.conformance.stand import Stand, standing
from toolcrib import Principal
from toolcrib.contracts import OWNER, SecretReference, ToolEnvelope, call_id
from toolcrib.core.executor import CallRequest
from toolcrib.core.policy import CallPolicy
from toolcrib.core.runs import outside_call

GUEST = Principal(id="guest", realm=OWNER.realm, grants=("ai://tools/other/*/execute",))


def outcome(envelope: ToolEnvelope) -> tuple[str, str | None, str | None]:
    assert envelope.error is not None
    return envelope.status, envelope.error.code, envelope.error.reason


@pytest.mark.requirement("conformance.refusals")
@every_kind
@pytest.mark.parametrize("arguments", [{}, {"text": 5}, {"text": "ok", "more": 1}])
async def test_arguments_that_are_not_valid_are_refused_with_their_problems(kind: type[Kind], arguments: Any):
    async with standing(kind) as stand:
        envelope = await stand.call(arguments=arguments)

    assert outcome(envelope) == ("error", "VALIDATION_ERROR", "input_schema_mismatch")
    assert envelope.error is not None
    assert envelope.error.details is not None
    assert envelope.error.details["problems"]
    assert stand.world.acts == []


@pytest.mark.requirement("conformance.refusals")
@every_kind
async def test_a_caller_without_the_grant_is_denied(kind: type[Kind]):
    async with standing(kind) as stand:
        envelope = await stand.call(principal=GUEST)

    assert outcome(envelope) == ("denied", "POLICY_DENIED", "permission_missing")
    assert stand.world.acts == []


@pytest.mark.requirement("conformance.refusals")
@every_kind
async def test_a_blocked_version_is_denied(kind: type[Kind]):
    async with standing(kind) as stand:
        await stand.crib.registry.set_status(OWNER.realm, NAME, "blocked", message="it leaks")
        envelope = await stand.call()

    assert outcome(envelope) == ("denied", "POLICY_DENIED", "tool_blocked")
    assert envelope.error is not None
    assert "it leaks" in envelope.error.message
    assert stand.world.acts == []


@pytest.mark.requirement("conformance.refusals")
@every_kind
async def test_a_disabled_tool_is_denied(kind: type[Kind]):
    async with standing(kind, enabled=False) as stand:
        envelope = await stand.call()

    assert outcome(envelope) == ("denied", "POLICY_DENIED", "tool_disabled")
    assert stand.world.acts == []


@pytest.mark.requirement("conformance.refusals")
@every_kind
async def test_a_tool_without_its_secret_is_not_run(kind: type[Kind]):
    missing = SecretReference(name="other", reference="${env:OTHER}")
    async with standing(kind, secrets=(missing,)) as stand:
        envelope = await stand.call()

    assert outcome(envelope) == ("error", "AUTH_REQUIRED", "missing_secret")
    assert stand.world.acts == []


@pytest.mark.requirement("conformance.refusals")
@every_kind
async def test_what_the_runs_policy_does_not_allow_is_denied(kind: type[Kind]):
    async with standing(kind) as stand:
        not_listed = await judged(stand, NAME, CallPolicy(allowed=frozenset(("other",))))
        too_much = await judged(stand, NAME, CallPolicy(side_effects="none"))
        unknown = await judged(stand, "nobody", CallPolicy())

    assert outcome(not_listed) == ("denied", "POLICY_DENIED", "tool_not_allowed")
    assert outcome(too_much) == ("denied", "POLICY_DENIED", "side_effects_forbidden")
    assert outcome(unknown) == ("denied", "POLICY_DENIED", "tool_not_found")
    assert (unknown.version, unknown.content_hash) == ("", None)
    assert unknown.call_id == call_id("nobody", "", {"text": "ok"}, "t1.c1")
    assert stand.world.acts == []


@pytest.mark.requirement("conformance.dry_run")
@every_kind_that_writes
async def test_a_dry_run_skips_a_tool_that_writes_and_runs_one_that_reads(kind: type[Kind]):
    async with standing(kind) as stand:
        assert (await stand.call(dry_run=True)).status == "success"
        acts = len(stand.world.acts)
        await stand.define(**stand.kind.writing())
        skipped = await stand.call(dry_run=True)

    assert (skipped.status, skipped.metadata["dry_run"]) == ("skipped", True)
    assert len(stand.world.acts) == acts


async def judged(stand: Stand, name: str, policy: CallPolicy) -> ToolEnvelope:
    """The envelope of a call under a policy that does not allow it."""
    context = msgspec.structs.replace(outside_call(OWNER), policy=policy)
    envelope = await stand.crib.executor.execute(CallRequest("t1.c1", name, {"text": "ok"}), context)
    check_outcome(envelope)
    check_time(envelope)
    return envelope
