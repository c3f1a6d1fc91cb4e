"""Caps: how they are written, whom and when they bind, and what they say when they are reached."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from toolcrib import Crib, SharingOptions
from toolcrib.contracts import InvalidSettings, Reason, Unavailable
from toolcrib.core.policy import CapReservation, Caps, CountedCaps, Shortage, Spend, Spender, SpendingCap, read_caps
from toolcrib.crib.settings import load_settings
from toolcrib.infrastructure.store import Charge, MemoryStore, Reserved

NOON = datetime(2026, 1, 31, 12, 34, 56, tzinfo=UTC)
ANN = Spender("acme", "ann", ("desk", "deals"))


class Watch:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.at = NOON

    def now(self) -> datetime:
        return self.at


def caps_of(*texts: str, watch: Watch | None = None) -> CountedCaps:
    return CountedCaps(read_caps(texts), MemoryStore().counters, (watch or Watch()).now)


async def spend(caps: Caps, ticket: str, usd: str, spender: Spender = ANN, tool: str | None = None) -> bool:
    """Reserve and settle a call; false if it is refused."""
    most = Spend(calls=int(tool is not None), tokens=100, usd=Decimal(usd))
    taken = await caps.reserve(spender, ticket, most, tool=tool)
    if isinstance(taken, Shortage):
        return False
    await caps.settle(taken, most)
    return True


@pytest.mark.requirement("shared_state.cap_forms")
@pytest.mark.parametrize(
    ("text", "cap"),
    [
        ("realm 50 usd/day", SpendingCap("realm", None, Decimal(50), "usd", "day")),
        ("principal=ann@acme  0.25 usd/hour", SpendingCap("principal", "ann@acme", Decimal("0.25"), "usd", "hour")),
        ("agent 5000000 tokens/month", SpendingCap("agent", None, Decimal(5_000_000), "tokens", "month")),
        (" tool=send_mail 1000 calls / day", SpendingCap("tool", "send_mail", Decimal(1000), "calls", "day")),
    ],
)
def test_a_cap_is_one_line_and_reads_as_it_was_written(text: str, cap: SpendingCap) -> None:
    assert SpendingCap.parse(text) == cap
    assert SpendingCap.parse(str(cap)) == cap


@pytest.mark.requirement("shared_state.cap_forms")
@pytest.mark.parametrize(
    "text",
    ["", "50 usd/day", "realm 50/day", "realm -5 usd/day", "team 5 usd/day", "realm 5 eur/day", "realm 5 usd/week"],
)
def test_what_is_no_cap_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(InvalidSettings, match=re.escape(f"budget {text!r} is not of the form SCOPE[=NAME] LIMIT")):
        SpendingCap.parse(text)
    with pytest.raises(InvalidSettings, match="budgets: budget"):
        load_settings({"budgets": [text]}, environment={})


@pytest.mark.requirement("shared_state.cap_forms")
def test_a_cap_that_could_never_bind_and_two_for_the_same_are_refused() -> None:
    with pytest.raises(InvalidSettings, match="calls of tools use no tokens"):
        SpendingCap.parse("tool 5 tokens/day")
    with pytest.raises(InvalidSettings, match="budget 'realm 7 usd/day' counts what another one counts"):
        Crib("memory://", sharing=SharingOptions(budgets=["realm 5 usd/day", "realm 7 usd/day"]))


@pytest.mark.requirement("shared_state.cap_forms", "settings.effect")
def test_caps_come_from_a_variable_parted_by_commas() -> None:
    variable = {"TOOLCRIB_BUDGETS": "realm 5 usd/day, tool 3 calls/hour"}
    assert load_settings(environment=variable).settings.budgets == ("realm 5 usd/day", "tool 3 calls/hour")


@pytest.mark.requirement("shared_state.cap_spans")
@pytest.mark.parametrize(
    ("span", "began", "ends"),
    [
        ("hour", "2026-01-31T12:00", "2026-01-31T13:00"),
        ("day", "2026-01-31T00:00", "2026-02-01T00:00"),
        ("month", "2026-01-01T00:00", "2026-02-01T00:00"),
    ],
)
def test_spans_begin_at_the_full_hour_at_midnight_and_on_the_first(span: str, began: str, ends: str) -> None:
    cap = SpendingCap.parse(f"realm 1 usd/{span}")
    assert cap.began(NOON) == datetime.fromisoformat(began).replace(tzinfo=UTC)
    assert cap.ends(cap.began(NOON)) == datetime.fromisoformat(ends).replace(tzinfo=UTC)


@pytest.mark.requirement("shared_state.cap_spans")
async def test_a_cap_that_is_reached_says_how_far_it_is_and_when_it_begins_anew_and_does() -> None:
    watch = Watch()
    caps = caps_of("realm 1 usd/day", watch=watch)
    assert await spend(caps, "r/1", "0.75")
    refused = await caps.reserve(ANN, "r/2", Spend(usd=Decimal("0.5")))
    assert isinstance(refused, Shortage)
    assert refused.message == (
        "budget 'realm 1 usd/day' has 0.75 usd used or reserved, and this may take 0.5; "
        "it resets at 2026-02-01T00:00Z, or raise the setting `budgets`"
    )
    assert (refused.reason, refused.value, refused.maximum) == (Reason.BUDGET_EXCEEDED, 1.25, 1)
    assert refused.free_in_s == (datetime(2026, 2, 1, tzinfo=UTC) - NOON).total_seconds()
    watch.at += timedelta(seconds=refused.free_in_s or 0)
    assert await spend(caps, "r/2", "0.5")


@pytest.mark.requirement("shared_state.cap_scopes")
async def test_each_has_a_cap_of_its_own_and_the_named_one_another_besides() -> None:
    caps = caps_of("principal 1 usd/day", "principal=ann 0.5 usd/day")
    ben = Spender("acme", "ben")
    assert [await spend(caps, f"r/{n}", "0.5", spender) for n, spender in enumerate((ANN, ANN, ben, ben, ben))] == [
        True,
        False,
        True,
        True,
        False,
    ]


@pytest.mark.requirement("shared_state.cap_scopes")
async def test_nothing_of_one_realm_counts_in_another() -> None:
    caps = caps_of("realm 1 usd/day", "principal 1 usd/day", "tool 1 calls/day")
    assert await spend(caps, "r/1", "1", tool="search")
    assert not await spend(caps, "r/2", "1", tool="search")
    assert await spend(caps, "r/3", "1", Spender("other", "ann"), tool="search")


@pytest.mark.requirement("shared_state.cap_scopes")
async def test_what_an_agent_calls_counts_for_it_and_for_those_that_called_it() -> None:
    caps = caps_of("agent 1 usd/day", "tool=search 2 calls/day")
    assert await spend(caps, "r/1", "0.6")
    assert await spend(caps, "r/2", "0.6", Spender("acme", "ann", ("other",)))
    assert not await spend(caps, "r/3", "0.6", Spender("acme", "ann", ("desk",)))
    assert not await spend(caps, "r/4", "0.6", Spender("acme", "ann", ("deals", "third")))
    calls = [await spend(caps, f"c/{n}", "0", Spender("acme", "ann"), tool="search") for n in range(3)]
    assert calls == [True, True, False]
    assert await spend(caps, "c/4", "0", Spender("acme", "ann"), tool="find")


@pytest.mark.requirement("shared_state.cap_scopes")
async def test_caps_on_dollars_are_not_asked_where_nobody_knows_the_price() -> None:
    caps = caps_of("realm 1 usd/day")
    assert await spend(caps, "r/1", "1")
    assert await caps.reserve(ANN, "r/2", Spend(tokens=5)) == CapReservation("r/2")


@pytest.mark.requirement("shared_state.cap_reservations")
async def test_what_is_reserved_counts_until_it_is_settled_or_its_process_is_surely_dead() -> None:
    watch = Watch()
    caps = caps_of("realm 1 usd/day", watch=watch)
    taken = await caps.reserve(ANN, "r/1", Spend(usd=Decimal("0.9")))
    assert isinstance(taken, CapReservation)
    assert taken.facts == {"budgets": {"realm 1 usd/day": 0.0}}
    assert not await spend(caps, "r/2", "0.2")
    watch.at += timedelta(minutes=16)
    assert await spend(caps, "r/3", "0.2")
    await caps.settle(taken, Spend(usd=Decimal("0.7")))
    assert not await spend(caps, "r/4", "0.2")
    assert await spend(caps, "r/5", "0.1")


@pytest.mark.requirement("shared_state.cap_reservations")
async def test_a_fraction_of_a_millionth_counts_as_one() -> None:
    caps = caps_of("realm 0.000002 usd/day")
    assert [await spend(caps, f"r/{n}", "0.0000001") for n in range(3)] == [True, True, False]


class Away:
    """Counters that nobody reaches."""

    async def reserve(self, ticket: str, charges: Sequence[Charge], *, now: datetime, until: datetime) -> Reserved:
        raise Unavailable("nobody there")

    async def settle(self, ticket: str, charges: Sequence[Charge]) -> None:
        raise Unavailable("nobody there")

    async def purge(self, *, now: datetime) -> int:
        raise Unavailable("nobody there")


@pytest.mark.requirement("shared_state.caps_away")
async def test_a_cap_that_cannot_be_asked_refuses_and_what_cannot_be_counted_fails_nothing() -> None:
    caps = CountedCaps(read_caps(["realm 1 usd/day"]), Away(), Watch().now)
    refused = await caps.reserve(ANN, "r/1", Spend(usd=Decimal(1)))
    assert isinstance(refused, Shortage)
    assert refused.reason is Reason.BUDGET_UNKNOWN
    assert refused.message == "budget 'realm 1 usd/day' cannot be asked, so nothing may be spent: nobody there"
    taken = await caps_of("realm 1 usd/day").reserve(ANN, "r/1", Spend(usd=Decimal(1)))
    assert isinstance(taken, CapReservation)
    await caps.settle(taken, Spend(usd=Decimal(1)))
