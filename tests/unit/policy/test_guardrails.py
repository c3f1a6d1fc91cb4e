"""Guardrails: what each rule says of a call, which answer counts, and rules of other packages."""

import sys
from decimal import Decimal
from typing import Any

import pytest

from tests.twins import make_tool
from toolcrib.contracts import (
    AgentImplementation,
    ContentFilter,
    CustomGuardrail,
    GuardDecision,
    Guardrail,
    Implementation,
    JsonObject,
    LLMConfig,
    MaxCost,
    NoDelete,
    RealmBoundary,
    Reason,
    RequireConfirmation,
    ToolRevision,
    UntrustedContent,
)
from toolcrib.core.policy import (
    Check,
    Guarded,
    GuardedCall,
    GuardedModel,
    Guardrails,
    Objection,
    deletes,
    guardrails_of,
    is_untrusted,
    strictest,
)
from toolcrib.kinds.entity.shape import EntityColumn, EntityImplementation, EntityOperation
from toolcrib.kinds.grpc.shape import GrpcImplementation
from toolcrib.kinds.http.shape import HttpImplementation, HttpMethod
from toolcrib.kinds.mcp.shape import McpImplementation
from toolcrib.kinds.plugin.shape import PluginImplementation
from toolcrib.kinds.python.shape import PythonImplementation

PYTHON = PythonImplementation(function="x:y")
AGENT = AgentImplementation(llm=LLMConfig(model="x:y"))
MCP = McpImplementation(provider="p", name="n", fingerprint={})
GRPC = GrpcImplementation(provider="p", method="/a.B/C", request="a.R", response="a.S", descriptors="d")
PLUGIN = PluginImplementation(runtime="ledger")


def http(method: HttpMethod, **fields: Any) -> HttpImplementation:
    return HttpImplementation(method=method, url="https://x.example/", **fields)


def entity(operation: EntityOperation) -> EntityImplementation:
    columns = {"id": EntityColumn(type="integer")}
    return EntityImplementation(provider="p", operation=operation, table="t", columns=columns, key=("id",))


def tool(implementation: Implementation = PYTHON, name: str = "change", **fields: Any) -> ToolRevision:
    made: dict[str, Any] = {"side_effects": "writes", "implementation": implementation, **fields}
    return make_tool(name, **made)


def called(tool: ToolRevision, arguments: JsonObject | None = None, **fields: Any) -> GuardedCall:
    return GuardedCall(tool, arguments or {}, **{"realm": tool.realm, "principal": "ann", **fields})


def model(**fields: Any) -> GuardedModel:
    facts: dict[str, Any] = {"realm": "default", "principal": "ann", "tokens": 10, "priced": True, **fields}
    return GuardedModel("x:y", **facts)


def judged(rule: Guardrail, guarded: Guarded) -> tuple[str, str, Reason | None]:
    decision = Guardrails().judge([rule], guarded)
    return ("none", "", None) if decision is None else (decision.outcome, decision.rule, decision.reason)


NONE = ("none", "", None)
DENIED = ("deny", "no_delete", Reason.DELETION_FORBIDDEN)
ASKED = ("ask", "no_delete", None)


@pytest.mark.requirement("guardrails.deletion")
@pytest.mark.parametrize(
    ("found", "arguments", "expected"),
    [
        (tool(http("DELETE")), {}, DENIED),
        (tool(http("POST")), {}, NONE),
        (tool(http("GET", method_argument="how")), {"how": "DELETE"}, DENIED),
        (tool(http("DELETE", method_argument="how")), {"how": "PUT"}, NONE),
        (tool(http("DELETE", method_argument="how")), {}, DENIED),
        (tool(http("DELETE", method_argument="how")), {"how": ""}, DENIED),
        (tool(http("DELETE"), deletes=False), {}, NONE),
        (tool(http("DELETE"), side_effects="reads"), {}, NONE),
        (tool(entity("delete")), {}, DENIED),
        (tool(entity("update")), {}, NONE),
        (tool(deletes=True), {}, DENIED),
        (tool(deletes=False), {}, NONE),
        (tool(name="delete_everything"), {}, ASKED),
        (tool(name="delete_everything", side_effects="reads"), {}, NONE),
        (tool(MCP), {}, ASKED),
        (tool(GRPC), {}, ASKED),
        (tool(PLUGIN), {}, ASKED),
        (tool(AGENT, name="delete_everything"), {}, NONE),
    ],
)
def test_no_delete_goes_by_what_is_declared_and_by_the_operation(
    found: ToolRevision, arguments: JsonObject, expected: tuple[str, str, Reason | None]
):
    assert judged(NoDelete(), called(found, arguments)) == expected


@pytest.mark.requirement("guardrails.deletion")
def test_what_becomes_of_a_tool_of_which_nothing_is_said_is_the_rules_matter():
    assert judged(NoDelete(undeclared="allow"), called(tool())) == NONE
    assert judged(NoDelete(undeclared="deny"), called(tool())) == DENIED
    assert judged(NoDelete(), model()) == NONE
    assert deletes(tool().definition, {}) is None


@pytest.mark.requirement("guardrails.confirmation")
def test_a_call_waits_for_a_person_if_its_tool_is_named_and_does_enough():
    assert judged(RequireConfirmation(), called(tool()))[:2] == ("ask", "require_confirmation")
    assert judged(RequireConfirmation(), called(tool(side_effects="reads"))) == NONE
    assert judged(RequireConfirmation(side_effects="reads"), called(tool(side_effects="reads")))[0] == "ask"
    assert judged(RequireConfirmation(tools=("ch*", "x")), called(tool()))[0] == "ask"
    assert judged(RequireConfirmation(tools=("Ch*", "x")), called(tool())) == NONE


@pytest.mark.requirement("guardrails.confirmation")
def test_a_tool_that_calls_others_is_asked_for_under_its_whole_name_only():
    assert judged(RequireConfirmation(), called(tool(AGENT))) == NONE
    assert judged(RequireConfirmation(tools=("change",)), called(tool(AGENT)))[0] == "ask"


@pytest.mark.requirement("guardrails.confirmation", "guardrails.deletion", "taint.guarded")
def test_what_a_client_performs_is_an_act_also_if_a_tool_that_calls_others_has_prepared_it():
    prepared = tool(AGENT, runs_on="client")

    assert judged(RequireConfirmation(), called(prepared))[0] == "ask"
    assert judged(RequireConfirmation(tools=("ch*",)), called(prepared))[0] == "ask"
    assert judged(NoDelete(), called(prepared))[:2] == ("ask", "no_delete")
    assert judged(UntrustedContent(), called(prepared, tainted_by="x"))[0] == "ask"


@pytest.mark.requirement("guardrails.strictest")
def test_the_strictest_answer_counts_and_the_earliest_end_of_a_question():
    rules = [RequireConfirmation(expires_s=60), RequireConfirmation(expires_s=5), RequireConfirmation()]

    asked = Guardrails().judge(rules, called(tool()))
    denied = Guardrails().judge([*rules, NoDelete(undeclared="deny")], called(tool()))

    assert asked is not None
    assert (asked.outcome, asked.expires_s) == ("ask", 5)
    assert denied is not None
    assert (denied.outcome, denied.expires_s) == ("deny", None)
    assert strictest([]) is None
    allowed = GuardDecision(outcome="allow", rule="allowed")
    assert strictest([allowed]) == allowed


@pytest.mark.requirement("guardrails.realms")
@pytest.mark.parametrize(
    ("realms", "guarded", "outside"),
    [
        ((), called(tool()), None),
        ((), called(tool(), realm="other"), "default"),
        (("other",), called(tool()), "default"),
        (("default", "other"), called(tool(), realm="other"), None),
        (("other",), model(), "default"),
        ((), model(), None),
    ],
)
def test_a_call_reaches_the_realms_that_its_run_is_bound_to(
    realms: tuple[str, ...], guarded: Guarded, outside: str | None
):
    decision = Guardrails().judge([RealmBoundary(realms=realms)], guarded)

    assert (decision and decision.inputs["realm"]) == outside
    assert decision is None or decision.reason is Reason.REALM_FORBIDDEN


@pytest.mark.requirement("guardrails.cost")
def test_a_model_of_unknown_price_is_refused_where_a_rule_says_so():
    strict, lax = MaxCost(usd=Decimal(1), deny_unpriced=True), MaxCost(usd=Decimal(1))

    assert judged(strict, model(priced=False)) == ("deny", "max_cost", Reason.PRICE_UNKNOWN)
    assert judged(strict, model()) == NONE
    assert judged(lax, model(priced=False)) == NONE
    assert judged(strict, called(tool())) == NONE
    assert judged(ContentFilter(), called(tool())) == NONE


@pytest.mark.requirement("taint.guarded")
def test_calls_of_a_run_that_has_read_what_outsiders_write_wait_or_are_denied():
    tainted = called(tool(), tainted_by="read_mail at t1.c1")
    confirm, deny = UntrustedContent(), UntrustedContent(action="deny")

    decision = Guardrails().judge([confirm], tainted)
    assert decision is not None
    assert (decision.outcome, decision.inputs["tainted_by"]) == ("ask", "read_mail at t1.c1")
    assert "(read_mail at t1.c1)" in (decision.message or "")
    assert judged(deny, tainted) == ("deny", "untrusted_content", Reason.CONTENT_UNTRUSTED)
    assert judged(deny, called(tool())) == NONE
    assert judged(deny, called(tool(side_effects="reads"), tainted_by="x")) == NONE
    assert judged(deny, called(tool(AGENT), tainted_by="x")) == NONE, "the calls inside are held to it"


@pytest.mark.requirement("taint.followed")
@pytest.mark.parametrize(
    ("implementation", "untrusted"),
    [
        (PYTHON, False),
        (entity("get"), False),
        (AGENT, False),
        (http("GET"), True),
        (MCP, True),
        (GRPC, True),
        (PLUGIN, True),
    ],
)
def test_what_another_system_says_is_untrusted_unless_the_tool_says_otherwise(
    implementation: Implementation, *, untrusted: bool
):
    assert is_untrusted(tool(implementation).definition) is untrusted
    assert is_untrusted(tool(implementation, untrusted=not untrusted).definition) is not untrusted


def at_most(parameters: JsonObject) -> Check:
    """A rule as another package would write it."""
    most = parameters["most"]

    def check(guarded: Guarded) -> Objection | None:
        if isinstance(guarded, GuardedModel):
            return Objection("no models", outcome="ask") if most < 0 else None
        amount = guarded.arguments["amount"]
        if amount <= most:
            return None
        return Objection(f"{amount} is much", outcome="deny" if amount > 2 * most else "ask", facts={"amount": amount})

    return check


@pytest.mark.requirement("guardrails.custom")
def test_a_rule_of_another_package_allows_asks_and_denies_with_its_facts():
    guardrails = Guardrails({"at_most": at_most})
    rule = CustomGuardrail(name="at_most", parameters={"most": 10})

    found = [guardrails.judge([rule], called(tool(), {"amount": amount})) for amount in (10, 15, 25)]

    assert [decision and (decision.outcome, decision.rule, decision.inputs) for decision in found] == [
        None,
        ("ask", "custom:at_most", {"amount": 15}),
        ("deny", "custom:at_most", {"amount": 25}),
    ]
    assert guardrails.judge([rule], model()) is None


@pytest.mark.requirement("guardrails.custom")
def test_nobody_can_be_asked_about_a_model_call_so_a_question_denies_it():
    rule = CustomGuardrail(name="at_most", parameters={"most": -1})

    decision = Guardrails({"at_most": at_most}).judge([rule], model())

    assert decision is not None
    assert (decision.outcome, decision.reason) == ("deny", Reason.GUARDRAIL_REFUSED)


@pytest.mark.requirement("guardrails.custom")
def test_a_rule_that_fails_or_is_not_released_denies():
    failing = Guardrails({"at_most": at_most}).judge([CustomGuardrail(name="at_most")], called(tool()))
    missing = Guardrails({"at_most": at_most}).judge([CustomGuardrail(name="other")], called(tool()))

    assert failing is not None
    assert failing.outcome == "deny"
    assert "failed with KeyError" in (failing.message or "")
    assert missing is not None
    assert missing.outcome == "deny"
    assert "it has: at_most; install it and name it in TOOLCRIB_PLUGINS" in (missing.message or "")


@pytest.mark.requirement("guardrails.custom")
@pytest.mark.parametrize(
    "answer", [True, "no", {"outcome": "ask"}, Objection("no", facts={"seen": object()}), Objection("\ud800"), sys.exit]
)
@pytest.mark.parametrize("guarded", [called(make_tool()), GuardedModel("m:x", "default", "owner", 1, priced=True)])
def test_a_rule_that_answers_with_what_is_no_objection_or_ends_the_process_denies(answer: Any, guarded: Guarded):
    def check(_: Guarded) -> Any:
        return answer() if answer is sys.exit else answer

    decision = Guardrails({"odd": lambda _: check}).judge([CustomGuardrail(name="odd")], guarded)

    assert decision is not None
    assert (decision.outcome, decision.reason) == ("deny", Reason.GUARDRAIL_REFUSED)
    assert "guardrail 'odd' failed with" in (decision.message or "")


@pytest.mark.requirement("guardrails.custom")
def test_a_rule_that_changes_arguments_changes_nothing_of_the_call():
    def forgetful(guarded: Guarded) -> None:
        assert isinstance(guarded, GuardedCall)
        guarded.arguments["to"].clear()

    arguments: JsonObject = {"to": ["ann"]}
    Guardrails({"odd": lambda _: forgetful}).judge([CustomGuardrail(name="odd")], called(tool(), arguments))

    assert arguments == {"to": ["ann"]}


@pytest.mark.requirement("guardrails.inherited")
def test_an_agent_brings_its_rules_and_the_approval_that_it_requires():
    rules = (NoDelete(),)

    assert guardrails_of(tool()) == ()
    assert guardrails_of(tool(AGENT)) == ()
    agent = AGENT.model_copy(update={"guardrails": rules, "requires_approval": True})
    assert guardrails_of(tool(agent)) == (*rules, RequireConfirmation())
