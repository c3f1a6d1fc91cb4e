"""A world that the guard is held against: it counts what tools and models really do, and knows nothing of budgets.

Families of runs act in it: turns of parallel tool calls, model calls, nested runs and waits. Calls fail and are
retried, processes die and others go on, several processes work on one family, runs are cancelled. Whatever comes to a
tool or a model is counted for its run and for all runs above it, and must be inside the limits of each of them; and
before it came, the journal must have said that it may.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from random import Random
from typing import Final, Literal, TypeAlias

from tests.twins import make_definition
from tests.unit.runs.house import LEASE_S, House
from toolcrib.contracts import (
    ENDED,
    WAITING,
    AgenticImplementation,
    CallStarted,
    Conflict,
    ErrorCode,
    Event,
    JsonObject,
    Limits,
    LLMConfig,
    ModelError,
    ModelErrorKind,
    ModelFailed,
    ModelFinished,
    ModelStarted,
    Reason,
    RetryPolicy,
    RunSuspended,
    ToolDefinition,
)
from toolcrib.core.executor import CallFailed, CallRequest, Dispatch, Outcome, error
from toolcrib.core.runs import BudgetExhausted, ModelCall, RunContext, RunEnd
from toolcrib.kinds.dispatch import DelegateRuntime
from toolcrib.llm import Cost, Message, Request, Response, Text, TokenUsage, user
from toolcrib.llm import Event as Said

Kind: TypeAlias = Literal["free", "priced", "flaky", "writes", "agent", "model", "wait"]

TOOLS: Final = (
    make_definition("free", side_effects="none"),
    make_definition("priced", cost_usd_per_call=Decimal("0.10")),
    make_definition("flaky", cost_usd_per_call=Decimal("0.05"), retry=RetryPolicy(count=2, backoff="none")),
    make_definition("writes", side_effects="writes", cost_usd_per_call=Decimal("0.07")),
)
PRICES: Final = {tool.name: tool.cost_usd_per_call or Decimal(0) for tool in TOOLS}
LIMITS: Final = (
    Limits(max_tool_calls=2, max_iterations=2, max_total_tokens=700, max_cost_usd=Decimal("0.20")),
    Limits(max_tool_calls=4, max_iterations=3, max_total_tokens=None, max_cost_usd=Decimal("0.40")),
    Limits(max_tool_calls=6, max_iterations=9, max_total_tokens=900, max_cost_usd=None),
    Limits(max_tool_calls=9, max_iterations=9, max_total_tokens=1500, max_cost_usd=Decimal("0.60")),
    Limits(max_tool_calls=25, max_iterations=20, max_total_tokens=5000, max_cost_usd=Decimal("2.00")),
)
DEPTH: Final = 3
_MOST_INPUT: Final = 30
_MOST_ROUNDS: Final = 80
_TURNS_OF_THE_LOOP: Final = 12
_PRICES: Final = (Decimal("0.0001"), Decimal("0.0005"))
"""US dollars per token read and written."""
_FAILURES: Final[tuple[ModelErrorKind, ...]] = ("overloaded", "stream_cut", "timeout", "bad_request")
_BILLED: Final = frozenset({"stream_cut", "timeout"})
_PEOPLE: Final = "ann"


def _agent(number: int, limits: Limits) -> ToolDefinition:
    inside = AgenticImplementation(mode="agentic", llm=LLMConfig(model="x:y"), system_prompt="", limits=limits)
    return make_definition(f"agent_{number}", side_effects="writes", implementation=inside)


AGENTS: Final = tuple(_agent(number, limits) for number, limits in enumerate(LIMITS))


Plan: TypeAlias = "tuple[tuple[Action, ...], ...]"
"""Turns, each of what is done at the same time."""


@dataclass(frozen=True)
class Action:
    """One thing that a run does in a turn."""

    kind: Kind
    tokens: int = 0
    """That a model may answer with."""
    agent: int = 0
    """Which agent is called."""
    plan: Plan = ()
    """What it does."""


def make_plan(random: Random, agents: Sequence[int]) -> Plan:
    """What a run does: up to four turns of up to four actions at the same time.

    Args:
        random: Chance.
        agents: Those that are not open above it.
    """
    kinds: list[Kind] = ["free", "priced", "flaky", "writes", "model", "wait"]
    weights = [2, 3, 2, 2, 5, 1]
    if len(AGENTS) - len(agents) <= DEPTH:
        kinds.append("agent")
        weights.append(4)
    return tuple(
        tuple(_action(random, kind, agents) for kind in random.choices(kinds, weights, k=random.randint(1, 4)))
        for _ in range(random.randint(1, 4))
    )


def _action(random: Random, kind: Kind, agents: Sequence[int]) -> Action:
    if kind != "agent":
        return Action(kind, random.choice([10, 40, 120]))
    chosen = random.choice(agents)
    return Action(kind, agent=chosen, plan=make_plan(random, [agent for agent in agents if agent != chosen]))


@dataclass
class Truth:
    """What a run has really used, with its nested runs."""

    limits: Limits
    calls: set[str] = field(default_factory=set[str])
    """Of tools, nested runs among them, by run and position."""
    tokens: int = 0
    cost: Decimal = Decimal(0)
    turns: int = 0
    """Its own, not those of nested runs."""

    def overspent(self) -> str:
        """What is not inside the limits; empty if everything is."""
        limits = self.limits
        crossed = {
            "tool calls": len(self.calls) > limits.max_tool_calls,
            "iterations": self.turns > limits.max_iterations,
            "tokens": limits.max_total_tokens is not None and self.tokens > limits.max_total_tokens,
            "cost": limits.max_cost_usd is not None and self.cost > limits.max_cost_usd,
        }
        return ", ".join(what for what, is_crossed in crossed.items() if is_crossed)


class World:
    """Tools, a model, and the truth about them.

    Args:
        seed: Of everything that happens.
    """

    name = "world:model"

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.truth: dict[str, Truth] = {}
        self.answers = 0
        """Last answers that were given."""
        self.limited = 0
        """Outermost runs that a limit has ended."""
        self.faults: list[str] = []
        """What must not be: who asks for it in a run would only see a call fail."""
        self._promised: set[str] = set()
        """Runs to which a last answer was promised when they began."""
        self._plans: list[Plan] = []
        self._parents: dict[str, str | None] = {}
        self._events = 0
        self._dies_at = 0
        self._died = asyncio.Event()
        self._processes = 0
        self._house = House(self.program, self.behave)

    # What runs do -----------------------------------------------------------------------------------------------------

    async def program(self, context: RunContext) -> RunEnd:
        """Do what the run's plan says; a limit ends it with a last answer."""
        request, run_id = context.request, context.run_id
        number = int(request.tool_name.removeprefix("agent_"))
        self._parents[run_id] = request.parent_run_id
        self.truth.setdefault(run_id, Truth(LIMITS[number]))
        is_new = context.run.epoch <= 1
        if context.keep_answer(self, _asking("x" * 60, "x" * 40, 20)) and is_new:
            self._promised.add(run_id)
        try:
            arguments: JsonObject = request.input
            place: int = arguments["plan"]
            for turn, actions in enumerate(self._plans[place]):
                places = [f"t{turn}.{index}" for index in range(len(actions))]
                acts = [self._act(context, place, does) for place, does in zip(places, actions, strict=True)]
                await context.wait_all([context.start(act) for act in acts])
        except BudgetExhausted as limit:
            await self._close(context)
            return RunEnd(output="stopped", stop_reason=limit.shortage.stop_reason)
        return RunEnd(output="done")

    async def _act(self, context: RunContext, place: str, does: Action) -> None:
        match does.kind:
            case "model":
                request = _asking(f"{context.run_id}|{place}", "x" * 60, does.tokens)
                try:
                    await context.model(ModelCall(place, "tool_selection", self, request, new=request.messages))
                except ModelError:
                    return
            case "wait":
                await context.wait_signal(f"go:{place}")
            case "agent":
                await context.call(CallRequest(place, f"agent_{does.agent}", {"plan": self._plans.index(does.plan)}))
            case kind:
                await context.call(CallRequest(place, kind, {}))

    async def _close(self, context: RunContext) -> None:
        request = _asking(f"{context.run_id}|answer", "x" * 40, 20)
        response = await context.last_answer(ModelCall("answer", "answer", self, request, new=request.messages))
        self.answers += response is not None
        if context.request.parent_run_id is None:
            self.limited += 1
            events = await self._house.events(context.run_id)
            asked = [event for event in events if isinstance(event, ModelStarted) and event.position == "answer"]
            if response is None and not asked and context.run_id in self._promised:
                self.faults.append(f"{context.run_id} was promised a last answer")

    # What comes to tools and models -----------------------------------------------------------------------------------

    async def behave(self, dispatch: Dispatch) -> Outcome:
        """Run a tool."""
        run_id, tool = dispatch.context.run_id, dispatch.tool.definition
        started = [event for event in await self._house.events(run_id) if isinstance(event, CallStarted)]
        decisions = [event.decision.outcome for event in started if event.position == dispatch.position]
        if decisions[-1:] != ["allow"]:
            self.faults.append(f"the call {run_id}/{dispatch.position} was not allowed")
        if tool.name.startswith("agent"):
            self._count(run_id, call=f"{run_id}/{dispatch.position}")
            return await DelegateRuntime().run(dispatch)
        dies = self._next_event()
        if dies and self.random.random() < 0.5:
            await self._die()
        fails = tool.name in {"flaky", "writes"} and self.random.random() < 0.3
        cost = Decimal(0) if fails else PRICES[tool.name]
        self._count(run_id, call=f"{run_id}/{dispatch.position}", cost=cost)
        if dies:
            await self._die()
        await asyncio.sleep(0)
        if fails:
            raise CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED, "not now"))
        return Outcome("made")

    async def request(self, request: Request) -> Response:
        """Answer, or fail, as a model."""
        run_id, place = request.system.split("|")
        about = [event for event in await self._house.events(run_id) if _is_model_call(event, place)]
        decision = about[-1].decision if about and isinstance(about[-1], ModelStarted) else None
        if decision is None or decision.outcome != "allow" or "tokens" not in decision.inputs:
            self.faults.append(f"the model call {run_id}/{place} was not allowed")
        dies = self._next_event()
        failure = self.random.choice(_FAILURES) if self.random.random() < 0.15 else None
        usage = TokenUsage(self.random.randint(0, _MOST_INPUT), self.random.randint(0, request.max_tokens or 0))
        if failure is None or failure in _BILLED or dies:
            answered = failure is None and not dies and place != "answer"
            self._count(run_id, usage=usage, turns=int(answered))
        if dies:
            await self._die()
        await asyncio.sleep(0)
        if failure is not None:
            raise ModelError(failure, "no")
        return Response(Message("assistant", (Text("yes"),)), "end", "", usage, self.name, "")

    async def stream(self, request: Request) -> AsyncGenerator[Said]:
        """Nobody watches."""
        raise AssertionError(request)
        yield

    def cost(self, usage: TokenUsage, at: datetime) -> Cost:
        """By tokens."""
        del at
        read, written = _PRICES
        return Cost(usage.input * read + usage.output * written, "world")

    def _count(
        self,
        run_id: str,
        *,
        call: str = "",
        cost: Decimal = Decimal(0),
        usage: TokenUsage | None = None,
        turns: int = 0,
    ) -> None:
        self.truth[run_id].turns += turns
        for each in self._family(run_id):
            truth = self.truth[each]
            truth.calls |= {call} if call else set()
            truth.cost += cost
            if usage is not None:
                truth.tokens += usage.input + usage.output
                truth.cost += self._price(usage)
            if crossed := truth.overspent():
                self.faults.append(f"{each} has overspent {crossed}: {truth}")

    def _price(self, usage: TokenUsage) -> Decimal:
        return usage.input * _PRICES[0] + usage.output * _PRICES[1]

    def _family(self, run_id: str | None) -> Iterator[str]:
        while run_id is not None:
            yield run_id
            run_id = self._parents[run_id]

    # What happens to processes ----------------------------------------------------------------------------------------

    def _next_event(self) -> bool:
        """Whether the process dies with this one."""
        self._events += 1
        return self._events == self._dies_at or self._died.is_set()

    async def _die(self) -> None:
        self._died.set()
        await asyncio.get_running_loop().create_future()

    async def live(self) -> None:
        """Start a family, and let processes work on it until it has ended."""
        random, house = self.random, self._house
        for definition in (*TOOLS, *AGENTS):
            await house.save(definition)
        first = random.randrange(len(AGENTS))
        whole = make_plan(random, [agent for agent in range(len(AGENTS)) if agent != first])
        self._plans = list(_plans(whole))
        tool = await house.save(AGENTS[first])
        request = await house.request(
            kind="agentic", tool=tool.ref, content_hash=tool.content_hash, input={"plan": self._plans.index(whole)}
        )
        run_id = await house.engine.create(request)
        for left in range(_MOST_ROUNDS, 0, -1):
            self._dies_at = self._events + random.randint(1, 12) if left > 20 and random.random() < 0.5 else 0
            await self._round(random.randint(1, 2))
            status = (await house.store.journal.run(run_id)).status
            if status in ENDED:
                assert not self.faults, (self.seed, self.faults)
                return
            if random.random() < 0.02:
                await self._cancel(run_id)
            await self._send_signals(all_of_them=left < 20)
        raise AssertionError((self.seed, "never ends"))

    async def _round(self, count: int) -> None:
        """Some processes go on with whatever can go on, until they can do no more or die."""
        self._died.clear()
        self._processes += count
        owners = [f"process {self._processes + number}" for number in range(count)]
        houses = [House(self.program, self.behave, other=self._house, owner=owner) for owner in owners]
        working = [asyncio.create_task(house.engine.recover()) for house in houses]
        while not (self._died.is_set() or all(task.done() for task in working)):
            if not await self._something_happens():
                await self._house.clock.pass_time(1)
        for task in working:
            task.cancel()
        await asyncio.wait(working)
        self.faults += [repr(task.exception()) for task in working if not task.cancelled() and task.exception()]
        for house in houses:
            await house.engine.close()
        self._house.clock.advance(LEASE_S + 1)

    async def _something_happens(self) -> bool:
        """Whether anything comes to a tool or a model before everybody waits."""
        before = self._events
        for _ in range(_TURNS_OF_THE_LOOP):
            await asyncio.sleep(0)
        return self._events > before

    async def _cancel(self, run_id: str) -> None:
        try:
            await self._house.engine.cancel(run_id, by=_PEOPLE)
        except Conflict:
            return

    async def _send_signals(self, *, all_of_them: bool) -> None:
        """Tell runs that wait to go on, some or all of them."""
        for run_id in list(self.truth):
            if (await self._house.store.journal.run(run_id)).status in WAITING:
                last = (await self._house.events(run_id))[-1]
                assert isinstance(last, RunSuspended)
                for name in last.waiting_for:
                    if name.startswith("go:") and (all_of_them or self.random.random() < 0.6):
                        await self._house.signal(run_id, name)


def _plans(whole: Plan) -> Iterator[Plan]:
    yield whole
    for turn in whole:
        for does in turn:
            if does.kind == "agent":
                yield from _plans(does.plan)


def _asking(system: str, text: str, tokens: int) -> Request:
    return Request(messages=(user(text),), system=system, max_tokens=tokens)


def _is_model_call(event: Event, place: str) -> bool:
    return isinstance(event, ModelStarted | ModelFailed | ModelFinished) and event.position == place
