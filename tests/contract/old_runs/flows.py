"""Workflows: side by side, over lists, tried again, taken back, that wait, and that were taken up after a failure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tests.contract.old_runs.agents import PAY
from tests.contract.old_runs.case import Case, Rounds, Said, agent, asks
from tests.contract.old_runs.hands import DAY
from tests.contract.old_runs.plans import case as plan_case
from tests.contract.old_runs.plans import one
from toolcrib.contracts import JsonObject, ToolDefinition

ITEM: Final[JsonObject] = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
LOOK: Final[JsonObject] = {"name": "first", "tool": "look", "input": {"item": "${input.item}"}}
LAST: Final[JsonObject] = {"name": "last", "tool": "send", "input": {"item": "${first}"}}


def case(
    name: str,
    *steps: JsonObject,
    item: str = "hat",
    how: str = "invoke",
    before: Rounds = (),
    then: Rounds | None = None,
    define: Sequence[ToolDefinition] = (),
    says: Mapping[str, Sequence[Said]] | None = None,
    dry_run: bool = False,
    inner: Sequence[JsonObject] = (),
    **fields: Any,
) -> Case:
    """A run of a workflow of its own."""
    name = f"flow_{name}"
    flow = {"name": name, "input_schema": ITEM, "steps": list(steps), **fields}
    return Case(
        name=name,
        given={"item": item},
        define=define,
        flows=(*inner, flow),
        says=says or {},
        how=how,
        before=before,
        then=then,
        options={"dry_run": True} if dry_run else {},
    )


def step(name: str, tool: str, *after: str, **fields: Any) -> JsonObject:
    """A step that calls a tool with the item."""
    return {
        "name": name,
        "tool": tool,
        "input": {"item": f"{name} ${{input.item}}"},
        "depends_on": list(after),
        **fields,
    }


def middle(**fields: Any) -> Sequence[JsonObject]:
    """Look, something in the middle, send."""
    return LOOK, {"name": "middle", "depends_on": ["first"], **fields}, {**LAST, "depends_on": ["middle"]}


def _ended() -> Iterator[Case]:
    yield case("plain", LOOK, LAST)
    yield case("value", {"name": "line", "output": "hello ${input.item}"}, output="${line}")
    yield case("side_by_side", step("one", "look"), step("two", "look"), step("three", "send", "one", "two"))
    yield case(
        "conditions",
        LOOK,
        step("big", "send", condition="${input.item == 'coat'}"),
        step("small", "send", condition="${input.item == 'hat'}"),
    )
    yield case(
        "fan_out",
        {"name": "found", "tool": "search_deals", "input": {"company": "Acme"}},
        {"name": "each", "tool": "keep", "for_each": "${found.results}", "input": {"item": "${item.id}"}},
    )
    yield case(
        "fan_out_partly",
        {
            "name": "each",
            "tool": "keep",
            "for_each": {"items": "${['a', 7, 'c']}", "on_item_error": "continue"},
            "input": {"item": "${item}"},
        },
        {"name": "report", "output": {"failed": "${steps.each.failed}"}},
    )
    yield case("dry_run", LOOK, LAST, dry_run=True)
    yield case(
        "fails", LOOK, {"name": "bad", "tool": "fail", "input": {"word": "${first}"}}, {**LAST, "depends_on": ["bad"]}
    )
    yield case(
        "continues",
        {"name": "bad", "tool": "fail", "input": {"word": "x"}, "on_error": "continue"},
        step("after", "send", "bad"),
    )


def _troubled() -> Iterator[Case]:
    yield case(
        "compensates",
        step("book", "send"),
        {
            "name": "bad",
            "tool": "fail",
            "input": {"word": "car"},
            "depends_on": ["book"],
            "on_error": {"go_to": "take_back"},
        },
        {"name": "take_back", "tool": "delete", "input": {"item": "${book}, because ${error.message}"}},
    )
    yield case("retried", {"name": "bad", "tool": "fail", "input": {"word": "x"}, "retry": {"count": 2, "base_s": 0.1}})
    yield case(
        "always",
        {"name": "bad", "tool": "fail", "input": {"word": "x"}, "on_error": "continue"},
        step("tidy", "keep", "bad", join="always"),
    )
    yield case(
        "approved", *middle(approval={"message": "Go on?", "show": {"item": "${input.item}"}}), before=[[["approve"]]]
    )
    yield case("rejected", *middle(approval={"message": "Go on?"}), before=[[["reject"]]])
    yield case("signalled", *middle(wait={"signal": "go"}), before=[[["signal", "go", {"by": "Ann"}]]])
    yield case("slept", *middle(wait={"seconds": 3600}), before=[[["later", 3601.0]]])
    yield case("cancelled", *middle(wait={"signal": "go"}), before=[[["cancel", "Nobody wants it."]]])
    yield case("resumed", LOOK, {"name": "bad", "tool": "fail", "input": {"word": "${first}"}}, before=[[["take up"]]])


def _inside() -> Iterator[Case]:
    yield case("rerun", LOOK, LAST, step("more", "keep", "last"), before=[[["rerun", "more"]]])
    yield case(
        "inside",
        LOOK,
        {"name": "inner", "workflow": "flow_inner", "input": {"item": "${first}"}},
        inner=[{"name": "flow_inner", "input_schema": ITEM, "steps": [LOOK, LAST]}],
    )
    yield case(
        "asks_agent",
        LOOK,
        {"name": "judge", "agent": "flow_judge", "input": {"message": "Is ${first}?"}},
        define=[agent("flow_judge", "look")],
        says={"flow_judge": [asks(("look", {"item": "it"})), "Yes."]},
        output="${judge.response}",
    )
    yield case(
        "all_kinds",
        *(
            {"name": name, "tool": tool, "input": given}
            for name, tool, given in (
                ("a", "web_look", {"text": "flow"}),
                ("b", "file_away", {"text": "flow"}),
                ("c", "World_Act", {"text": "flow"}),
                ("d", "get_part", {"sku": "bolt"}),
            )
        ),
    )
    plan = plan_case(
        "of_flow", one("look", item="hat"), {"summary": "Looked."}, steps=("look",), task="Look up the hat"
    )
    yield case(
        "asks_planner",
        {"name": "planned", "tool": "plan_of_flow", "input": {"task": "Look up the hat"}},
        define=plan.define,
        says=plan.says,
    )


def _waiting() -> Iterator[Case]:
    person = {"message": "Go on?", "show": {"item": "${input.item}"}}
    yield case("waits_approve", *middle(approval=person), then=[[["approve"]]])
    yield case(
        "waits_edit",
        *middle(approval=person),
        {"name": "said", "output": "${middle.item}"},
        then=[[["approve", {"item": "coat"}]]],
    )
    yield case("waits_reject", *middle(approval=person), then=[[["reject"]]])
    yield case("waits_signal", *middle(wait={"signal": "go"}), then=[[["signal", "go", {"by": "Ann"}]]])
    yield case("waits_in_vain", *middle(wait={"signal": "go", "timeout_s": DAY}), then=[[]])
    yield case("waits_time", *middle(wait={"seconds": DAY}), then=[[]])
    yield case("waits_until", *middle(wait={"until": "2026-02-05T12:00:00Z"}), then=[[]])
    yield case(
        "waits_payment",
        LOOK,
        {"name": "paid", "tool": "pay", "input": {"amount": 5}, "depends_on": ["first"]},
        {**LAST, "depends_on": ["paid"]},
        then=[[["approve"]]],
    )


def _waiting_inside() -> Iterator[Case]:
    yield case(
        "waits_client",
        LOOK,
        {"name": "picked", "tool": "pick", "input": {"item": "${first}"}},
        {"name": "sent", "tool": "send", "input": {"item": "${picked}"}},
        then=[[["client", "the red hat"]]],
    )
    yield case(
        "waits_each",
        {"name": "each", "tool": "pay", "for_each": "${[1, 2, 3]}", "input": {"amount": "${item}"}},
        then=[[["approve"]]],
    )
    yield case(
        "waits_retry",
        LOOK,
        {
            "name": "bad",
            "tool": "fail",
            "input": {"word": "x"},
            "retry": {"count": 1, "base_s": 3600, "max_s": 3600},
            "on_error": "continue",
        },
        {**LAST, "depends_on": ["bad"]},
        then=[[]],
    )
    yield case(
        "waits_agent",
        LOOK,
        {"name": "payer", "agent": "flow_payer", "input": {"message": "Pay"}},
        {"name": "sent", "tool": "send", "input": {"item": "${payer.response}"}},
        define=[agent("flow_payer", "pay")],
        says={"flow_payer": [asks(PAY), "Paid."]},
        then=[[["approve"]]],
    )
    yield case(
        "waits_inside",
        LOOK,
        {"name": "inner", "workflow": "flow_sleeper", "input": {"item": "${first}"}},
        inner=[{"name": "flow_sleeper", "input_schema": ITEM, "steps": list(middle(wait={"signal": "go"}))}],
        then=[[["cancel", "Too long."]]],
    )
    yield case(
        "waits_inside_approve",
        LOOK,
        {"name": "inner", "workflow": "flow_asker", "input": {"item": "${first}"}},
        inner=[{"name": "flow_asker", "input_schema": ITEM, "steps": list(middle(approval={"message": "Go on?"}))}],
        then=[[["approve"]]],
    )
    planner = plan_case("of_waiting_flow", one("pay", amount=6), {"summary": "Paid."}, steps=("pay",), task="Pay 6")
    yield case(
        "waits_planner",
        {"name": "planned", "tool": "plan_of_waiting_flow", "input": {"task": "Pay 6"}},
        {"name": "sent", "tool": "send", "input": {"item": "${planned.summary}"}},
        define=planner.define,
        says=planner.says,
        then=[[["approve"]]],
    )


def _left() -> Iterator[Case]:
    yield case("queued", LOOK, LAST, how="submit", item="queued hat", then=[[]])
    yield case("died_at_the_start", LOOK, LAST, how="die at the start", item="late hat", then=[[]])
    yield case(
        "died_in_a_call",
        LOOK,
        {"name": "kept", "tool": "hang_and_keep", "input": {"item": "${first}"}},
        how="die in a call",
        then=[[]],
    )
    yield case(
        "goes_on_after_failure",
        step("sent", "send"),
        {"name": "bad", "tool": "fail", "input": {"word": "x"}, "depends_on": ["sent"]},
        then=[[["take up"]]],
    )
    yield case("rerun_later", LOOK, LAST, step("more", "keep", "last"), then=[[["rerun", "more"]]])


CASES: Final[Sequence[Case]] = (
    *_ended(),
    *_troubled(),
    *_inside(),
    *_waiting(),
    *_waiting_inside(),
    *_left(),
)
