"""A plan and the pipeline make the same call of the same tool: envelopes, events, budgets, whatever comes of it."""

import asyncio
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple, cast

import msgspec
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.twins import Rig, make_context, make_tool
from toolcrib.contracts import (
    OWNER,
    Attachment,
    ClientResult,
    ContentFilter,
    ErrorCode,
    ErrorRule,
    FailedCall,
    Json,
    Limits,
    MaxCost,
    NoDelete,
    Principal,
    RateLimit,
    Reason,
    RequireConfirmation,
    RetryPolicy,
    SecretReference,
    ToolEnvelope,
    ToolError,
    ToolRevision,
    canonical,
)
from toolcrib.core.executor import CallFailed, CallRequest, Dispatch, ExecutionRules, Outcome
from toolcrib.core.executor.plans import canonical_form
from toolcrib.core.policy import Budget, CallPolicy, Spend, Spender
from toolcrib.core.policy.caps import CapReservation

SECRET = "hunter2-but-longer"


class FreeCaps:
    """Caps that allow everything and tell what was spent."""

    async def reserve(self, spender: Spender, ticket: str, most: Spend, *, tool: str | None = None) -> CapReservation:
        """Allow it."""
        return CapReservation(ticket, (), {"spender": spender.principal, "most": most.calls, "tool": tool})

    async def settle(self, reservation: CapReservation, spent: Spend) -> None:
        """Forget it."""


class Situation(NamedTuple):
    """Everything that a call depends on, as data that both ways of making it start from."""

    tool: dict[str, Any]
    policy: dict[str, Any]
    context: dict[str, Any]
    limits: Limits
    input: Json
    request: dict[str, Any]
    behaviours: tuple[Any, ...]
    """What the tool does at each attempt, the last for ever."""
    waits: int
    """How often it lets others have a turn before that."""
    secrets: dict[str, str]
    prepared: bool
    failed: bool
    held: bool


def mostly(usual: Any, *others: Any) -> st.SearchStrategy[Any]:
    """The usual value almost always: of thirty of these, one or two are others, so that many calls are ordinary."""
    return st.sampled_from([usual] * 25 + list(others))


OBJECT = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "tags": {"type": "array", "default": ["a"]},
        "part": {"type": "object", "properties": {"x": {"default": 1.5}}},
    },
    "additionalProperties": False,
}
FLAT = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "default": 2},
        "tags": True,
        "text": {"default": "é"},
        "on": {"default": None},
    },
}
tools = st.fixed_dictionaries(
    {
        "side_effects": st.sampled_from(["none", "reads", "writes"]),
        "input_schema": st.sampled_from([{"type": "object"}, FLAT, OBJECT, {**OBJECT, "required": ["n"]}]),
        "output_schema": mostly(None, {"type": "string"}, {"type": "object"}, {}),
        "select": mostly(None, "$.n", "$.tags[*]"),
        "source": mostly("manual", "imported"),
        "untrusted": mostly(None, True, False),
        "idempotent": st.booleans(),
        "cache": mostly("none", "ttl", "forever"),
        "retry": mostly(RetryPolicy(), RetryPolicy(count=2, base_s=0.1, max_s=1)),
        "error_handling": mostly(
            (),
            (ErrorRule(when="TIMEOUT", action="retry"), ErrorRule(when="500", action="fail", message="broken")),
            (ErrorRule(when="RATE_LIMIT", action="fallback", tool="other"),),
        ),
        "rate_limit": mostly(None, RateLimit(count=1, per_s=10)),
        "cost_usd_per_call": mostly(None, Decimal("0.10"), Decimal(0)),
        "cost_from": mostly(None, "$.n"),
        "requires_confirmation": mostly(False, True),
        "sequential": st.booleans(),
        "max_output_bytes": mostly(10_000, 12),
        "runs_on": mostly("server", "client"),
        "secrets": mostly((), (SecretReference(name="key", reference="${env:KEY}"),)),
        "enabled": mostly(True, False),
    }
).flatmap(
    lambda fields: st.fixed_dictionaries(
        {
            "definition": st.just(fields),
            "status": mostly("active", "blocked", "deprecated"),
            "realm": mostly(OWNER.realm, "elsewhere"),
        }
    )
)
policies = st.fixed_dictionaries(
    {
        "allowed": mostly(None, frozenset({"look_up"}), frozenset({"other"}), frozenset()),
        "side_effects": mostly("writes", "reads", "none"),
        "guardrails": mostly(
            (),
            (MaxCost(usd=Decimal(1)),),
            (NoDelete(undeclared="deny"),),
            (RequireConfirmation(tools=("*",)),),
            (ContentFilter(words=("secret",), applies_to=("tool_input", "tool_output"), action="redact"),),
            (ContentFilter(words=("secret",), applies_to=("tool_input", "tool_output"), action="block"),),
        ),
        "confirm": mostly(frozenset(), frozenset({"look_up"})),
        "narrowed": mostly({}, {"look_up": {"properties": {"n": {"enum": [1, 2]}}}}),
        "versions": mostly({}, {"look_up": "1.0.0"}, {"look_up": "2.0.0"}),
    }
)
principals = mostly(
    OWNER,
    Principal(id="ann", grants=("ai://tools/utility/*/execute",)),
    Principal(id="bob", grants=("ai://tools/crm/*/execute",)),
    Principal(id="service:gone", kind="service", grants=("ai://*",)),
    Principal(id="job", kind="service", grants=("ai://*",)),
)
contexts = st.fixed_dictionaries(
    {
        "principal": principals,
        "dry_run": mostly(False, True),
        "attempt": mostly(1, 2),
        "starter": mostly(None, "ann"),
        "tainted_by": mostly(None, "mail at t1.c1"),
        "conversation_id": mostly(None, "conv_1"),
    }
)
inputs = st.one_of(
    st.fixed_dictionaries({}, optional={"n": st.integers(0, 3), "tags": st.just(["b"]), "part": st.just({"y": 2})}),
    st.fixed_dictionaries({"n": st.sampled_from([1, 1.5, "one", None, 2**63, 2**70])}),
    st.sampled_from(
        [{"é": 1.0}, {"text": "a secret"}, [], "not { json", None, 7, {"at": datetime(2026, 1, 1, tzinfo=UTC)}, {1: 2}]
    ),
)
DEEP: Any = [[[[]]] for _ in range(40)]
outputs: st.SearchStrategy[Any] = st.sampled_from(
    [
        None, "fine", "a secret " + SECRET, {"n": 3}, {"n": -1, "tags": [1, 2]}, [1] * 20, {1, 2}, "\ud800", 2**70,
        DEEP, datetime(2026, 1, 1, tzinfo=UTC), float("nan"),
    ]
)  # fmt: skip
outcomes = st.builds(
    Outcome,
    outputs,
    http_status=mostly(None, 200, 404),
    metadata=mostly({}, {"warnings": ["old"]}, {"paging": {"trouble": "cut"}}, {"bad": {1}}),
    attachments=mostly((), (Attachment(kind="image", url=f"https://a.b/{SECRET}"),)),
    cost_usd=mostly(None, Decimal("0.05")),
    secrets=mostly((), (SECRET,)),
    tainted=mostly(False, True),
)


def failure(code: ErrorCode, reason: Reason, status: int | None, sent: bool | None, effect: Any) -> CallFailed:
    told = ToolError(code=code, message=f"it failed with {SECRET}", details={"reason": reason.value})
    return CallFailed(told, http_status=status, sent=sent, effect=effect, metadata={"tool_calls": 1}, tainted=True)


failures = st.builds(
    failure,
    st.sampled_from(ErrorCode),
    st.sampled_from([Reason.TOOL_FAILED, Reason.RUNTIME_MISSING, Reason.BAD_RESPONSE]),
    st.sampled_from([None, 429, 500]),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, "none", "unknown", "done"]),
)
crashes = st.sampled_from([ValueError, TimeoutError, ConnectionResetError, SystemExit, asyncio.CancelledError])
behaviours = st.one_of(outcomes, failures, crashes)
HANGS = ("hang",)
situations = st.builds(
    Situation,
    tool=tools,
    policy=policies,
    context=contexts,
    limits=mostly(Limits(), Limits(max_tool_calls=0), Limits(max_cost_usd=Decimal("0.05"))),
    input=inputs,
    request=st.fixed_dictionaries(
        {
            "version": mostly(None, "1.0.0", "2.0.0", "no range"),
            "idempotency_key": mostly(None, "run_0/t1.c1"),
        }
    ),
    behaviours=st.lists(behaviours, min_size=1, max_size=3).map(tuple) | st.just(HANGS),
    waits=st.integers(0, 2),
    secrets=mostly({"${env:KEY}": SECRET}, {}),
    prepared=mostly(False, True),
    failed=mostly(False, True),
    held=mostly(False, True),
)


def tool_of(situation: Situation) -> ToolRevision:
    about = situation.tool
    # In real time: only a tool that hangs may come to its end.
    limit = 0.003 if situation.behaviours == HANGS else 60.0
    return make_tool(status=about["status"], realm=about["realm"], timeout_s=limit, **about["definition"])


def behave(situation: Situation) -> Callable[[Dispatch], Any]:
    rest: list[Any] = list(situation.behaviours)

    async def work(dispatch: Dispatch) -> Outcome:
        ending = rest.pop(0) if len(rest) > 1 else rest[0]
        dispatch.input["changed"] = True  # before its time can have passed, however slow the machine is
        for _ in range(situation.waits):
            await asyncio.sleep(0)
        if isinstance(ending, str):
            await asyncio.Event().wait()
        if isinstance(ending, type):
            raise ending("it broke")
        if isinstance(ending, CallFailed):
            raise deepcopy_failure(ending)
        return cast("Outcome", ending)

    return work


def deepcopy_failure(failed: CallFailed) -> CallFailed:
    """A failure of its own for each way: the executor completes the one that it catches."""
    return CallFailed(
        failed.error,
        http_status=failed.http_status,
        metadata=dict(failed.metadata),
        tainted=failed.tainted,
        effect=failed.effect,
        sent=failed.sent,
    )


async def lived(situation: Situation, *, planned: bool) -> dict[str, Any]:
    """All that is seen of two calls, of which the second has the same arguments."""
    tool, other = tool_of(situation), make_tool("other", side_effects="none")
    rig = Rig(tool, other, behaviour=behave(situation), secrets=situation.secrets, limits=situation.limits)
    rig.executor.caps = FreeCaps() if situation.context["starter"] else None
    vars(rig.executor)["_uses_plans"] = planned
    context = make_context(
        policy=CallPolicy(**situation.policy), budget=Budget(situation.limits, parent=rig.budget), journal=rig.journal
    )
    context = msgspec.structs.replace(context, **situation.context)
    rig.journal.perform = lambda prepared: ClientResult(output=prepared.output, tainted=True)
    if situation.prepared:
        rig.journal.prepared["t1.c1"] = prepared_envelope(tool, rig)
    if situation.failed:
        told = failure(ErrorCode.RATE_LIMIT, Reason.RATE_LIMITED, 429, None, None).error
        rig.journal.failures["t1.c1"] = FailedCall(tool=tool.ref, content_hash=tool.content_hash, error=told)
    if situation.held:
        context.budget.hold("t1.c1", context.budget.allowance(1))
    seen: dict[str, Any] = {"ends": []}
    for position in ("t1.c1", "t1.c2"):
        request = CallRequest(position, tool.name, deepcopy(situation.input), **situation.request)
        try:
            seen["ends"].append((await rig.executor.execute(request, context)).model_dump())
        except Exception as crash:  # noqa: BLE001 - both ways must raise the same
            seen["ends"].append(repr(crash))
        rig.clock.advance(0.5)
    for name in ("intents", "requests", "handed"):
        seen[name] = [event.model_dump() for event in getattr(rig.journal, name)]
        seen[f"{name} as written"] = [event.model_dump_json() for event in getattr(rig.journal, name)]
    seen["spawned"], seen["failed"] = rig.journal.spawned, [each.model_dump() for each in rig.journal.failed]
    seen["dispatched"] = [
        (each.input, each.auth, each.idempotency_key, each.position, each.attempt, each.timeout_s, each.tool.ref)
        for each in rig.dispatcher.dispatched
    ]
    seen["budgets"] = [(each.tool_calls, each.cost_usd, each.reserved_tool_calls) for each in context.budget.chain]
    seen["asked"], seen["naps"] = rig.secrets.asked, rig.clock.naps
    seen["free"] = context.lanes.enter_at_once(alone=True)
    return seen


def prepared_envelope(tool: ToolRevision, rig: Rig) -> ToolEnvelope:
    return ToolEnvelope(
        call_id="0" * 32,
        name=tool.name,
        version=tool.version,
        position="t1.c1",
        status="success",
        input={},
        output={"n": 1},
        t_start=rig.clock.now(),
        t_end=rig.clock.now(),
        attempts=1,
        side_effects=tool.definition.side_effects,
    )


@pytest.mark.requirement("executor.plans")
@given(situation=situations)
@settings(deadline=None, max_examples=200)
def test_a_plan_and_the_pipeline_make_the_same_of_every_call(situation: Situation):
    planned, staged = (asyncio.run(lived(situation, planned=planned)) for planned in (True, False))

    assert repr(planned) == repr(staged)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
OBJECTS = st.dictionaries(st.text(max_size=5), SCALARS | st.lists(SCALARS, max_size=2), max_size=5)


@pytest.mark.requirement("executor.plans")
@given(value=OBJECTS)
def test_a_plan_finds_the_canonical_form_of_arguments(value: dict[str, Json]):
    try:
        text = orjson.dumps(value)
    except orjson.JSONEncodeError:
        return
    arguments = orjson.loads(text)

    is_flat, form = canonical_form(arguments, text)

    assert form == canonical(arguments)
    assert not (is_flat and any(isinstance(part, list) for part in arguments.values()))


def expire(_: float) -> asyncio.Timeout:
    return asyncio.timeout(1)


def allow(budget: Budget, position: str, cost_usd: Decimal | None) -> None:
    return None


@pytest.mark.requirement("executor.plans")
def test_rules_of_a_replay_use_no_plans():
    assert ExecutionRules().uses_plans
    assert not ExecutionRules(deadline=expire).uses_plans
    assert not ExecutionRules(take_call=allow).uses_plans
    assert not ExecutionRules(shares_calls=False).uses_plans
