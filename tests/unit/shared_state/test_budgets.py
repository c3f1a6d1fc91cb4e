"""Budgets of a crib: what counts, who shares them, and what a run does that reaches one."""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.servers.redis import RedisTestServer, running_redis
from tests.unit.agents.crm import MODEL, PricedModel, asks
from toolcrib import Crib, Limits, SharingOptions, tool
from toolcrib.contracts import CallStarted, ErrorCode, LimitReached, ModelStarted, Principal, Reason, ToolEnvelope
from toolcrib.infrastructure.store import Charge, MemoryStore, Reserved

ANN = Principal(id="ann", realm="default", grants=("ai://*",))
BEN = Principal(id="ben", realm="default", grants=("ai://*",))


@tool(side_effects="reads", cost_usd_per_call=Decimal("0.40"))
async def search(text: str) -> str:
    """Search."""
    if text == "fail":
        raise ValueError(text)
    return text


@tool(side_effects="reads", cost_usd_per_call=Decimal("0.40"), cache="forever")
async def recall(text: str) -> str:
    """Recall."""
    return text


@tool(side_effects="writes", cost_usd_per_call=Decimal("0.40"))
async def send(text: str) -> str:
    """Send."""
    return text


@tool(side_effects="writes", requires_confirmation=True)
async def publish(text: str) -> str:
    """Publish, if a person agrees."""
    return text


@tool(side_effects="reads", cost_from="$.cost")
async def translate(cost: float) -> dict[str, float]:
    """Translate, and say what it cost."""
    return {"cost": cost}


def crib_with(
    *budgets: str, answers: Sequence[Any] = (), store: str | MemoryStore = "memory://", **options: Any
) -> Crib:
    sharing = SharingOptions(budgets=budgets, **options)
    crib = Crib(store, sharing=sharing, models={MODEL: PricedModel(list(answers))})
    crib.add(search, recall, send, translate, publish)
    return crib


def refused(envelope: ToolEnvelope) -> Reason | None:
    return None if envelope.error is None else envelope.error.reason


async def ask(crib: Crib, name: str, *texts: str) -> list[Reason | None]:
    """Why each call was refused, null if it was not."""
    return [refused(await crib.call(name, {"text": text})) for text in texts]


REACHED = Reason.BUDGET_EXCEEDED


@pytest.mark.requirement("shared_state.caps_bind")
async def test_the_prices_of_calls_count_and_a_call_that_costs_too_much_is_denied_before_it_runs() -> None:
    async with crib_with("realm 1 usd/day") as crib:
        assert await ask(crib, "search", "a", "b") == [None, None]
        envelope = await crib.call("search", {"text": "c"})

    assert (envelope.status, envelope.attempts) == ("denied", 0)
    assert envelope.error is not None
    assert envelope.error.code is ErrorCode.POLICY_DENIED
    assert "budget 'realm 1 usd/day' has 0.8 usd used or reserved, and this may take 0.4" in envelope.error.message
    assert envelope.error.details is not None
    assert envelope.error.details["rule"] == "budget"
    assert envelope.error.details["inputs"].items() >= {"value": 1.2, "maximum": 1.0}.items()
    assert envelope.error.retry_after_s is not None


@pytest.mark.requirement("shared_state.caps_bind")
async def test_calls_that_fail_or_are_cached_or_skipped_are_not_paid() -> None:
    async with crib_with("realm 0.5 usd/day", "tool=search 3 calls/day") as crib:
        assert await ask(crib, "search", "fail", "fail") == [Reason.TOOL_FAILED] * 2
        skipped = await crib.invoke("send", {"text": "a"}, dry_run=True)
        assert skipped.summary.status == "completed"
        assert await ask(crib, "recall", "a", "a", "a") == [None, None, None]
        assert await ask(crib, "recall", "b") == [REACHED]
        assert await ask(crib, "search", "a") == [REACHED]


@pytest.mark.requirement("shared_state.caps_bind")
async def test_calls_count_whether_or_not_they_succeed() -> None:
    async with crib_with("tool=search 2 calls/day") as crib:
        assert await ask(crib, "search", "fail", "a", "b") == [Reason.TOOL_FAILED, None, REACHED]
        assert await ask(crib, "recall", "a") == [None]


@pytest.mark.requirement("shared_state.caps_bind")
async def test_what_a_tool_says_that_it_cost_counts_once_it_has_said_so() -> None:
    async with crib_with("realm 1 usd/day") as crib:
        said = [refused(await crib.call("translate", {"cost": cost})) for cost in (0.9, 0.3, 0.1)]
        assert said == [None, None, REACHED]


@pytest.mark.requirement("shared_state.caps_bind")
async def test_each_principal_spends_under_a_cap_of_its_own() -> None:
    async with crib_with("principal 0.5 usd/day") as crib:
        ended = [await crib.acting_as(who).invoke("search", {"text": "a"}) for who in (ANN, ANN, BEN)]
    assert [result.summary.status for result in ended] == ["completed", "failed", "completed"]


@pytest.mark.requirement("shared_state.caps_bind")
async def test_the_record_of_an_allowed_call_has_what_was_spent_before() -> None:
    async with crib_with("realm 2 usd/day", "tool 9 calls/hour") as crib:
        await crib.call("search", {"text": "a"})
        result = await crib.invoke("search", {"text": "b"})
    (started,) = (entry.event for entry in result.events if isinstance(entry.event, CallStarted))
    assert started.decision is not None
    assert started.decision.inputs["budgets"] == {"realm 2 usd/day": 0.4, "tool 9 calls/hour": 1.0}


async def run_agent(crib: Crib, *, name: str = "desk", tools: Sequence[str] = ("search",)) -> Any:
    limits = Limits(max_cost_usd=Decimal(9))
    agent = crib.agentic_tool(name, mode="agentic", model=MODEL, tools=list(tools), limits=limits)
    return await agent("Search")


SEARCH = asks(("search", {"text": "a"}))


@pytest.mark.requirement("shared_state.caps_bind", "shared_state.caps_replay")
@pytest.mark.parametrize("budget", ["realm 0.55 usd/day", "principal 0.55 usd/month", "agent=desk 0.55 usd/hour"])
async def test_an_agent_that_reaches_a_cap_ends_with_what_it_has_and_says_why(budget: str) -> None:
    async with crib_with(budget, answers=[SEARCH, "Done."]) as crib:
        result = await run_agent(crib)
        replay = await crib.replay(result.run_id)

    assert (result.summary.status, result.summary.stop_reason) == ("incomplete", "policy")
    assert f"budget '{budget}' has 0.5 usd used or reserved, and this may take 0.1" in result.summary.warnings[0]
    reached = [entry.event for entry in result.events if isinstance(entry.event, LimitReached)]
    assert [(event.limit, event.value, event.maximum) for event in reached] == [("budget", 0.6, 0.55)]
    first = next(entry.event for entry in result.events if isinstance(entry.event, ModelStarted))
    assert first.decision is not None
    assert first.decision.inputs["budgets"] == {budget: 0.0}
    assert replay.divergence is None


@pytest.mark.requirement("shared_state.caps_bind", "shared_state.caps_replay")
async def test_an_agent_goes_on_when_a_cap_refuses_one_of_its_tools() -> None:
    async with crib_with("tool=search 1 calls/day", answers=[SEARCH, SEARCH, "Done."]) as crib:
        result = await run_agent(crib)
        replay = await crib.replay(result.run_id)
    assert result.summary.stop_reason == "final_answer"
    assert [found["status"] for found in result.output.get("calls", [])] in ([], ["success", "denied"])
    assert replay.divergence is None


@pytest.mark.requirement("shared_state.caps_bind")
async def test_tokens_of_models_count() -> None:
    async with crib_with("agent 1 tokens/day", answers=[SEARCH, "Done."]) as crib:
        result = await run_agent(crib)
    assert "budget 'agent 1 tokens/day' has 0 tokens used or reserved" in result.summary.warnings[0]


@pytest.mark.requirement("shared_state.caps_bind")
async def test_a_nested_agent_that_waited_for_a_person_is_one_call() -> None:
    counters = Recorded()
    store = Counting(counters)
    answers = [asks(("inner", {"task": "Publish"})), asks(("publish", {"text": "a"})), "Sent.", "Done."]
    async with crib_with("tool 9 calls/day", answers=answers, store=store) as crib:
        crib.agentic_tool("inner", mode="agentic", model=MODEL, tools=["publish"], description="Publish.")
        result = await run_agent(crib, name="outer", tools=["inner"])
        assert result.summary.status == "awaiting_approval"
        (waiting,) = (await crib.approvals.page()).items
        await crib.approvals.decide(waiting.approval_id, approve=True)
        ended = await crib.resume(result.run_id)
    assert ended.summary.status == "completed"
    assert sum(charge.amount for _, charge in counters.settled) == 2


class Recorded:
    """Counters that refuse nothing and remember everything."""

    def __init__(self) -> None:
        self.reserved: list[tuple[str, Charge]] = []
        self.settled: list[tuple[str, Charge]] = []

    async def reserve(self, ticket: str, charges: Sequence[Charge], **times: Any) -> Reserved:
        self.reserved += [(ticket, charge) for charge in charges]
        return Reserved(tuple(0 for _ in charges))

    async def settle(self, ticket: str, charges: Sequence[Charge]) -> None:
        self.settled += [(ticket, charge) for charge in charges]

    async def purge(self, **times: Any) -> int:
        return 0


class Counting(MemoryStore):
    """A store with counters of the test's own."""

    def __init__(self, counters: Recorded) -> None:
        super().__init__()
        self._recorded: Any = counters

    @property
    def counters(self) -> Any:
        return self._recorded


@pytest.mark.requirement("shared_state.caps_free")
async def test_without_budgets_no_counter_is_asked() -> None:
    counters = Recorded()
    async with crib_with(store=Counting(counters), answers=[SEARCH, "Done."]) as crib:
        assert (await run_agent(crib)).ok
    assert (counters.reserved, counters.settled) == ([], [])


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, str]]:
    """What cribs share: a store, or a Redis server beside stores of their own."""
    if request.param == "redis":
        server: RedisTestServer = request.getfixturevalue("running")
        server.forget()
        return "memory://", {"redis": server.url()}
    if request.param == "postgres":
        return request.getfixturevalue("postgres_store"), {}
    return f"sqlite:///{tmp_path}/crib.db", {}


@pytest.mark.requirement("shared_state.caps_shared")
async def test_cribs_spend_under_one_cap_together(shared: tuple[str, dict[str, str]]) -> None:
    store, options = shared
    async with (
        crib_with("realm 1 usd/day", store=store, **options) as here,
        crib_with("realm 1 usd/day", store=store, **options) as there,
    ):
        ended = await asyncio.gather(*(ask(crib, "search", "a", "b", "c") for crib in (here, there)))
    assert sorted(str(reason) for reasons in ended for reason in reasons) == [*["None"] * 2, *[str(REACHED)] * 4]


SPENDER = """
import asyncio, sys
from datetime import UTC, datetime
from decimal import Decimal
from toolcrib.core.policy import CountedCaps, Spend, Spender, CapReservation, read_caps
from toolcrib.infrastructure.redis import RedisCounters, RedisServer
from toolcrib.infrastructure.store import open_store

def now():
    return datetime.now(UTC)

async def main(place, name):
    server = RedisServer(place) if place.startswith("redis:") else None
    store = open_store("memory://" if server else place)
    await store.open()
    counters = RedisCounters(server, now) if server else store.counters
    caps, most = CountedCaps(read_caps(["realm 1 usd/month"]), counters, now), Spend(usd=Decimal("0.13"))

    async def spend(number):
        taken = await caps.reserve(Spender("acme", "ann"), f"{name}/{number}", most)
        if isinstance(taken, CapReservation):
            await caps.settle(taken, Spend(usd=Decimal("0.11")))
        return isinstance(taken, CapReservation)

    done = await asyncio.gather(*(spend(number) for number in range(12)))
    await store.close()
    if server:
        await server.close()
    print(sum(done))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.requirement("shared_state.caps_shared", "shared_state.cap_reservations")
def test_processes_that_spend_at_once_never_exceed_a_cap(shared: tuple[str, dict[str, str]]) -> None:
    store, options = shared
    place = options.get("redis", store)
    commands = [[sys.executable, "-c", SPENDER, place, f"p{number}"] for number in range(3)]
    spenders = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    done = sum(int(spender.communicate(timeout=120)[0]) for spender in spenders)
    assert 7 <= done <= 9, "0.13 is reserved of which 0.11 are spent: seven fit at once, nine one after the other"


@pytest.mark.requirement("shared_state.caps_away")
async def test_without_redis_nothing_is_spent_under_a_cap_and_all_else_goes_on() -> None:
    with running_redis() as gone:
        gone.stop()
        async with crib_with("tool=search 5 calls/day", redis=gone.url(), answers=["Hello."]) as crib:
            assert await ask(crib, "search", "a") == [Reason.BUDGET_UNKNOWN]
            assert await ask(crib, "recall", "a") == [None]
            envelope = await crib.call("search", {"text": "a"})
    assert envelope.error is not None
    assert "cannot be asked, so nothing may be spent: Redis at 127.0.0.1" in envelope.error.message
    assert "swordfish" not in envelope.error.message
