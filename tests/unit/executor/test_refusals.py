"""What stops a call before anything runs, and in which order."""

from decimal import Decimal

import pytest

from tests.twins import Rig, call, echo, make_context, make_tool
from toolcrib.contracts import (
    CallStarted,
    ErrorCode,
    Limits,
    Principal,
    RateLimit,
    Reason,
    SecretReference,
    ToolRevision,
    Unavailable,
)
from toolcrib.core.executor import CallContext, CallFailed, Denied, Dispatch, Outcome
from toolcrib.core.policy import CallPolicy
from toolcrib.core.registry import Registry
from toolcrib.infrastructure.store import MemoryStore

NEEDS_TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
CLOSED = make_tool("closed", requires_confirmation=True)

REFUSED: list[tuple[str, ToolRevision, CallContext, ErrorCode, Reason]] = [
    (
        "elsewhere",
        make_tool("elsewhere", realm="other"),
        make_context(),
        ErrorCode.POLICY_DENIED,
        Reason.TOOL_NOT_FOUND,
    ),
    (
        "blocked",
        make_tool("blocked", status="blocked", status_message="use v2", replacement="new"),
        make_context(),
        ErrorCode.POLICY_DENIED,
        Reason.TOOL_BLOCKED,
    ),
    ("off", make_tool("off", enabled=False), make_context(), ErrorCode.POLICY_DENIED, Reason.TOOL_DISABLED),
    (
        "hidden",
        make_tool("hidden"),
        make_context(policy=CallPolicy(allowed=frozenset({"shown"}))),
        ErrorCode.POLICY_DENIED,
        Reason.TOOL_NOT_ALLOWED,
    ),
    (
        "writes",
        make_tool("writes", side_effects="writes"),
        make_context(policy=CallPolicy(side_effects="reads")),
        ErrorCode.POLICY_DENIED,
        Reason.SIDE_EFFECTS_FORBIDDEN,
    ),
    (
        "one_too_many",
        make_tool("one_too_many"),
        make_context(limits=Limits(max_tool_calls=0)),
        ErrorCode.POLICY_DENIED,
        Reason.MAX_TOOL_CALLS_EXCEEDED,
    ),
    (
        "dear",
        make_tool("dear", cost_usd_per_call=Decimal(2)),
        make_context(limits=Limits(max_cost_usd=Decimal(1))),
        ErrorCode.POLICY_DENIED,
        Reason.MAX_COST_EXCEEDED,
    ),
    (
        "picky",
        make_tool("picky", input_schema=NEEDS_TEXT),
        make_context(),
        ErrorCode.VALIDATION_ERROR,
        Reason.INPUT_SCHEMA_MISMATCH,
    ),
    (
        "private",
        make_tool("private"),
        make_context(principal=Principal(id="guest", grants=())),
        ErrorCode.POLICY_DENIED,
        Reason.PERMISSION_MISSING,
    ),
    (
        "secretive",
        make_tool("secretive", secrets=(SecretReference(name="key", reference="${env:KEY}"),)),
        make_context(),
        ErrorCode.AUTH_REQUIRED,
        Reason.MISSING_SECRET,
    ),
]


@pytest.mark.requirement("executor.order", "executor.budget_returned")
@pytest.mark.parametrize(("name", "tool", "context", "code", "reason"), REFUSED, ids=[row[0] for row in REFUSED])
async def test_a_refused_call_dispatches_nothing_records_no_intent_and_costs_nothing(
    name: str, tool: ToolRevision, context: CallContext, code: ErrorCode, reason: Reason
):
    rig = Rig(tool)
    context = make_context(
        principal=context.principal, policy=context.policy, budget=context.budget, journal=rig.journal
    )

    envelope = await rig.run(name, context=context)

    assert envelope.error is not None
    assert (envelope.error.code, envelope.error.reason) == (code, reason)
    assert envelope.status == ("denied" if code is ErrorCode.POLICY_DENIED else "error")
    assert envelope.output is None
    assert envelope.attempts == 0
    assert rig.untouched
    assert context.budget.tool_calls == 0


@pytest.mark.requirement("executor.order")
async def test_the_first_rule_that_is_broken_is_the_one_that_is_told():
    picky = make_tool("tool", input_schema=NEEDS_TEXT, secrets=(SecretReference(name="key", reference="${env:KEY}"),))
    guest = Principal(id="guest", grants=())
    forbidden = CallPolicy(allowed=frozenset())
    rig = Rig(picky, secrets={"${env:KEY}": "value-of-the-key"})

    told = [
        await rig.run("unknown", 1, context=make_context(principal=guest, policy=forbidden)),
        await rig.run("tool", 1, context=make_context(principal=guest, policy=forbidden)),
        await rig.run("tool", {}, context=make_context(principal=guest)),
        await rig.run("tool", {}),
    ]

    assert [envelope.error.reason for envelope in told if envelope.error] == [
        Reason.TOOL_NOT_FOUND,
        Reason.TOOL_NOT_ALLOWED,
        Reason.PERMISSION_MISSING,
        Reason.INPUT_SCHEMA_MISMATCH,
    ]
    assert rig.secrets.asked == []
    assert (await rig.run("tool", {"text": "x"})).ok


@pytest.mark.requirement("executor.order", "executor.rate_limit")
async def test_a_call_over_its_rate_is_refused_after_the_person_agreed_and_before_secrets_are_touched():
    secret = SecretReference(name="key", reference="${env:KEY}")
    tool = make_tool(
        requires_confirmation=True, rate_limit=RateLimit(count=1, per_s=60), secrets=(secret,), side_effects="writes"
    )
    rig = Rig(tool, secrets={"${env:KEY}": "value-of-the-key"})

    first, second = await rig.run(), await rig.run(position="t1.c2")

    assert first.ok
    assert second.error is not None
    assert second.error.code is ErrorCode.RATE_LIMIT
    assert second.error.reason is Reason.RATE_LIMITED
    assert second.error.retry_after_s == 60
    assert len(rig.journal.requests) == 2
    assert len(rig.secrets.asked) == len(rig.dispatcher.dispatched) == rig.budget.tool_calls == 1


@pytest.mark.requirement("executor.rate_limit")
async def test_a_rate_limit_forgets_calls_that_have_left_its_window():
    rig = Rig(make_tool(rate_limit=RateLimit(count=2, per_s=10)))

    outcomes: list[bool] = []
    for seconds in (0, 4, 5, 1, 3.5):
        rig.clock.advance(seconds)
        outcomes.append((await rig.run()).ok)

    assert outcomes == [True, True, False, True, False]


@pytest.mark.requirement("executor.intent_first")
async def test_the_intent_is_recorded_before_the_tool_is_dispatched():
    def behaviour(dispatch: Dispatch) -> Outcome:
        seen.extend(rig.journal.intents)
        return Outcome(dispatch.input)

    seen: list[CallStarted] = []
    tool = make_tool(side_effects="writes", version="2.1.0")
    rig = Rig(tool, behaviour=behaviour)

    envelope = await rig.run(arguments={"a": 1}, context=make_context(journal=rig.journal, attempt=2))

    assert len(seen) == 1
    intent = seen[0]
    assert intent.call_id == envelope.call_id
    assert (intent.name, intent.version, intent.content_hash) == (tool.name, "2.1.0", tool.content_hash)
    assert (intent.input, intent.side_effects, intent.attempt) == ({"a": 1}, "writes", 2)
    assert intent.idempotency_key == rig.dispatcher.dispatched[0].idempotency_key == "run_1/t1.c1"
    assert intent.decision.outcome == "allow"


@pytest.mark.requirement("executor.passes_through", "executor.budget_returned", "executor.intent_first")
async def test_a_journal_that_does_not_take_the_intent_stops_the_call():
    rig = Rig(make_tool(side_effects="writes"))
    rig.journal.refusal = Unavailable("no store")

    with pytest.raises(Unavailable):
        await rig.run()

    assert rig.untouched


@pytest.mark.requirement("executor.budget_returned")
async def test_a_dispatched_call_counts_whether_it_succeeds_or_fails():
    def behaviour(dispatch: Dispatch) -> Outcome:
        raise ValueError("no")

    rig = Rig(make_tool("fails"), make_tool("works"), behaviour=behaviour)
    await rig.run("fails")
    rig.dispatcher.behaviour = echo
    await rig.run("works")

    assert rig.budget.tool_calls == 2


@pytest.mark.requirement("executor.resolve")
@pytest.mark.parametrize("version", ["2.0.0", "^^ nonsense"])
async def test_a_version_that_there_is_not_is_denied(version: str):
    registry = Registry(MemoryStore().definitions)
    tool = make_tool()
    await registry.save(tool.definition, realm=tool.realm, made_by="owner", at=tool.created_at)
    rig = Rig(catalogue=registry)

    envelope = await rig.run(version=version)

    assert envelope.status == "denied"
    assert envelope.version == ""
    assert envelope.error is not None
    assert envelope.error.reason is Reason.TOOL_NOT_FOUND
    assert repr(f"look_up@{version}") in envelope.error.message
    assert (await rig.run(version="^1")).version == "1.0.0"


@pytest.mark.requirement("executor.resolve")
async def test_the_version_that_a_run_pins_is_used_unless_the_call_names_one():
    rig = Rig(make_tool(version="1.2.0"))
    pinned = make_context(policy=CallPolicy(versions={"look_up": "9.9.9"}))

    assert (await rig.run(context=pinned)).status == "denied"
    assert (await rig.run(context=pinned, version="1.2.0")).ok


@pytest.mark.requirement("executor.resolve")
async def test_the_message_for_an_unknown_tool_lists_what_may_be_called_and_is_short():
    rig = Rig()
    context = make_context(policy=CallPolicy(allowed=frozenset({"find", "fetch"})))

    envelope = await rig.run("x" * 10_000, context=context)

    assert envelope.error is not None
    assert envelope.error.message.endswith("; the tools are: fetch, find")
    assert len(envelope.error.message) < 300


@pytest.mark.requirement("executor.missing_secret")
async def test_an_optional_secret_may_be_missing():
    secrets = (
        SecretReference(name="key", reference="${env:KEY}"),
        SecretReference(name="extra", reference="${env:EXTRA}", required=False),
    )
    rig = Rig(make_tool(secrets=secrets), secrets={"${env:KEY}": "value-of-the-key"})

    assert (await rig.run()).ok
    assert dict(rig.dispatcher.dispatched[0].auth) == {"key": "value-of-the-key"}


@pytest.mark.requirement("executor.missing_secret", "executor.budget_returned")
async def test_a_vault_that_fails_refuses_the_call():
    class Sealed:
        async def resolve(self, reference: str, principal: Principal, hosts: object = ()) -> str | None:
            raise Unavailable("the vault is sealed")

    rig = Rig(make_tool(secrets=(SecretReference(name="key", reference="${env:KEY}"),)), vault=Sealed())

    envelope = await rig.run()

    assert envelope.error is not None
    assert (envelope.error.code, envelope.error.reason) == (ErrorCode.AUTH_REQUIRED, Reason.MISSING_SECRET)
    assert envelope.error.message.endswith("needs its secret 'key', which cannot be resolved: the vault is sealed")
    assert rig.untouched


@pytest.mark.requirement("executor.admit", "executor.budget_returned")
async def test_admit_returns_the_tool_or_says_why_not_and_takes_nothing():
    tool = make_tool(input_schema=NEEDS_TEXT)
    rig = Rig(tool, CLOSED)
    guest = make_context(principal=Principal(id="guest", grants=()), budget=rig.budget)

    assert rig.executor.admit(call(arguments={"text": "x"}), rig.context) is tool
    assert rig.executor.admit(call("closed"), rig.context) is CLOSED
    for asked, context, refusal in (
        (call("nothing"), rig.context, Denied),
        (call(arguments={}), rig.context, CallFailed),
        (call(arguments={"text": "x"}), guest, Denied),
        (call(), make_context(policy=CallPolicy(allowed=frozenset()), budget=rig.budget), Denied),
    ):
        with pytest.raises(refusal):
            rig.executor.admit(asked, context)

    assert rig.untouched
