"""Counterparts that do anything: every call ends in an envelope whose error, if it has one, is classified."""

from random import Random

import pytest

from tests.contract.conformance.kind import Kind
from tests.contract.conformance.kinds import KINDS, every_kind
from tests.contract.conformance.mischief import MISCHIEF
from tests.contract.conformance.stand import standing
from tests.contract.conformance.world import Mischief
from toolcrib.contracts import ClientResult, ErrorCode

SAMPLE, ALL = 495, 10_000
SLOW = {"code": 0.1}
"""The share of its part that a kind takes whose calls start processes; the others make up for it."""

KNOWN_UNKNOWNS = frozenset({"tool_failed", "cancelled", "outcome_unknown"})
"""Why a call may be UNKNOWN: code of the application raised what nobody foresaw, or stopped itself."""


async def misbehave(kind: type[Kind], calls: int) -> None:
    """So many calls, each with another mischief."""
    chance = Random(f"{kind.name}: 1")
    async with standing(kind, output_schema={"type": "object", "required": ["said"]}) as stand:
        for _ in range(calls):
            what = MISCHIEF[kind.name](chance)
            if kind.name == "client":
                stand.kind.result = ClientResult.model_validate(what)
            else:
                stand.world.mischief = Mischief(what)
            envelope = await stand.call()
            if envelope.error is not None and envelope.error.code is ErrorCode.UNKNOWN:
                assert envelope.error.reason in KNOWN_UNKNOWNS, envelope.error


def part(kind: type[Kind], total: int) -> int:
    """How many of all calls a kind makes."""
    slow = sum(SLOW.get(other.name, 1.0) for other in KINDS)
    return round(total / slow * SLOW.get(kind.name, 1.0)) + 1


@pytest.mark.requirement("conformance.fuzzed")
@every_kind
async def test_no_counterpart_makes_a_call_end_unclassified(kind: type[Kind]):
    await misbehave(kind, part(kind, SAMPLE))


@pytest.mark.soak
@pytest.mark.requirement("conformance.fuzzed")
@every_kind
async def test_ten_thousand_counterparts_make_no_call_end_unclassified(kind: type[Kind]):
    await misbehave(kind, part(kind, ALL))
