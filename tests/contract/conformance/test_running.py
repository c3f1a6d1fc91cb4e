"""Calls that run, well or not: the same cases on every kind of tool."""

from decimal import Decimal

import pytest

from tests.contract.conformance.kind import Kind
from tests.contract.conformance.kinds import KINDS, every_kind, excuses, kinds_that
from tests.contract.conformance.stand import KEY, standing
from tests.contract.conformance.world import SECRET, Behaviour
from toolcrib.contracts import ErrorCode, RateLimit, Reason, RetryPolicy

TRANSIENT = (ErrorCode.TIMEOUT, ErrorCode.PROVIDER_ERROR, ErrorCode.RATE_LIMIT, ErrorCode.NETWORK_ERROR)


@pytest.mark.requirement("conformance.success")
@every_kind
async def test_a_call_that_goes_well_brings_its_output(kind: type[Kind]):
    async with standing(kind) as stand:
        envelope = await stand.call()

    assert envelope.status == "success"
    assert stand.kind.said(envelope.output) == "ok"
    assert (envelope.attempts, envelope.cached, envelope.truncated) == (1, False, False)
    assert stand.world.acts == ["ok"]


@pytest.mark.requirement("conformance.success")
@every_kind
async def test_each_direct_call_has_an_id_of_its_own(kind: type[Kind]):
    async with standing(kind) as stand:
        first, same, other = await stand.call(), await stand.call(), await stand.call(Behaviour.BE_BIG)

    assert len({first.call_id, same.call_id, other.call_id}) == 3
    assert first.run_id != same.run_id


@pytest.mark.requirement("conformance.cost")
@every_kind
async def test_a_cost_that_nobody_knows_is_null_and_a_price_is_told(kind: type[Kind]):
    async with standing(kind) as stand:
        assert (await stand.call()).cost_usd == (Decimal(0) if kind.prices_itself else None)
        await stand.define(cost_usd_per_call=Decimal("0.25"))
        assert (await stand.call()).cost_usd == (Decimal(0) if kind.prices_itself else Decimal("0.25"))


@pytest.mark.requirement("conformance.timeout")
@every_kind
async def test_a_call_that_does_not_end_in_time_is_cut_off(kind: type[Kind]):
    async with standing(kind) as stand:
        await stand.define(**stand.kind.hasty())
        error = await stand.failure(Behaviour.HANG)

    assert error.code is ErrorCode.TIMEOUT
    assert error.reason in (Reason.TOOL_TIMEOUT, Reason.RUN_TIMEOUT)


@pytest.mark.requirement("conformance.failures")
@kinds_that(Behaviour.BE_UNREACHABLE)
async def test_what_cannot_be_reached_is_a_network_error(kind: type[Kind]):
    async with standing(kind) as stand:
        error = await stand.failure(Behaviour.BE_UNREACHABLE)

    assert error.code is ErrorCode.NETWORK_ERROR


@pytest.mark.requirement("conformance.failures", "conformance.secrets")
@kinds_that(Behaviour.REFUSE_CREDENTIALS)
async def test_credentials_that_are_refused_are_asked_for_and_not_shown(kind: type[Kind]):
    async with standing(kind) as stand:
        envelope = await stand.call(Behaviour.REFUSE_CREDENTIALS)

    assert envelope.error is not None
    assert envelope.error.code is ErrorCode.AUTH_REQUIRED
    assert SECRET not in envelope.model_dump_json()


@pytest.mark.requirement("conformance.failures")
@every_kind
async def test_an_output_that_is_not_what_the_tool_promises_is_the_providers_error(kind: type[Kind]):
    async with standing(kind, output_schema={"type": "object", "required": ["never"]}) as stand:
        error = await stand.failure()

    assert (error.code, error.reason) == (ErrorCode.PROVIDER_ERROR, Reason.OUTPUT_SCHEMA_MISMATCH)


@pytest.mark.requirement("conformance.oversize")
@kinds_that(Behaviour.BE_BIG)
async def test_an_output_that_is_too_large_is_cut_and_the_whole_is_attached(kind: type[Kind]):
    async with standing(kind, max_output_bytes=300) as stand:
        envelope = await stand.call(Behaviour.BE_BIG)
        whole = envelope.attachments[-1]
        kept = await stand.crib.store.blobs.get(stand.tool.realm, whole.url.removeprefix("blob:sha256:"))

    assert (envelope.status, envelope.truncated, whole.kind) == ("success", True, "blob")
    assert whole.bytes == len(kept)
    assert b"big big big" in kept


@pytest.mark.requirement("conformance.rate_limit")
@every_kind
async def test_a_call_beyond_the_rate_limit_is_refused_with_the_wait(kind: type[Kind]):
    async with standing(kind, rate_limit=RateLimit(count=1, per_s=3600)) as stand:
        await stand.call()
        error = await stand.failure()

    assert (error.code, error.reason) == (ErrorCode.RATE_LIMIT, Reason.RATE_LIMITED)
    assert error.retry_after_s is not None
    assert stand.world.acts == ["ok"]


@pytest.mark.requirement("conformance.cache")
@every_kind
async def test_an_equal_call_is_served_from_the_cache_if_the_tool_allows_it(kind: type[Kind]):
    async with standing(kind, cache="forever") as stand:
        first, second = await stand.call(), await stand.call()

    assert (first.cached, second.cached) == (False, True)
    assert first.output == second.output
    assert stand.world.acts == ["ok"]


@pytest.mark.requirement("conformance.retry")
@kinds_that(Behaviour.FAIL_ONCE)
async def test_what_may_pass_is_tried_again_as_often_as_the_tool_says(kind: type[Kind]):
    async with standing(kind) as stand:
        assert (await stand.failure(Behaviour.FAIL_ONCE)).code in TRANSIENT
    async with standing(kind, retry=RetryPolicy(count=1)) as stand:
        envelope = await stand.call(Behaviour.FAIL_ONCE)

    assert (envelope.status, envelope.attempts) == ("success", 2)
    assert stand.world.acts == ["flaky", "flaky"]


@pytest.mark.requirement("conformance.secrets")
@kinds_that(Behaviour.TELL_SECRET)
async def test_a_secret_stands_neither_in_the_envelope_nor_in_the_journal(kind: type[Kind]):
    async with standing(kind, secrets=(KEY,)) as stand:
        result = await stand.kind.settle(stand.crib, await stand.start(Behaviour.TELL_SECRET))
        envelope = stand.ended(result)
        events = await stand.crib.store.journal.events(result.run_id)

    assert envelope.ok
    assert SECRET not in envelope.model_dump_json()
    assert not any(SECRET in event.model_dump_json() for event in events)


@pytest.mark.requirement("conformance.kinds")
def test_every_excuse_gives_a_reason_and_no_kind_is_excused_from_success():
    assert all(why and behaviour is not Behaviour.SUCCEED for _, behaviour, why in excuses())
    assert len({kind.name for kind in KINDS}) == len(KINDS)
