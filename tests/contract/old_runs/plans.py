"""Deterministic agentic runs of many shapes: plans as the release of the stores has had them made."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

from tests.contract.old_runs.case import Case, Rounds, Said, agent, asks
from tests.contract.old_runs.hands import DAY
from toolcrib import AgenticContext, AgenticStep, Limits, LLMConfig, ReferenceSource
from toolcrib.agents import agentic_definition
from toolcrib.contracts import JsonObject

TASK: Final = "Move Acme's deals to Negotiation"
LIVE: Final = AgenticContext(
    reference_data=(ReferenceSource(name="stages", tool="list_stages", applies_to=("stage",)),)
)
DONE: Final[JsonObject] = {"summary": "The deals are in Negotiation now."}
ITEM: Final[JsonObject] = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
MOVE: Final = ("search_deals", "update_deals")
CLOSE: Final = ("search_deals", "close_deals")
_EACH: Final = "${search_deals.results}"
_IDS: Final = ["${item.id}"]


def plan(**changes: Any) -> JsonObject:
    """The plan that moves all of Acme's deals; a step may be replaced."""
    return {
        "reasoning": "Find the deals, then move them.",
        "search_deals": {"input": {"company": "Acme"}},
        "update_deals": {"for_each": _EACH, "input": {"ids": _IDS, "stage": "3003"}},
        **changes,
    }


def closing(for_each: str | None = _EACH, ids: Sequence[str] = tuple(_IDS)) -> JsonObject:
    """The plan that closes deals, which a person has to agree with."""
    close = {"for_each": for_each, "input": {"ids": list(ids)}}
    return {"reasoning": "", "search_deals": {"input": {"company": "Acme"}}, "close_deals": close}


def one(step: str, **given: Any) -> JsonObject:
    """The plan of a single step."""
    return {"reasoning": "", step: {"input": given}}


def case(
    name: str,
    *says: Said,
    steps: Sequence[str | AgenticStep] = MOVE,
    task: str = TASK,
    given: JsonObject | None = None,
    how: str = "invoke",
    before: Rounds = (),
    then: Rounds | None = None,
    dry_run: bool = False,
    beside: Sequence[Any] = (),
    others: dict[str, Sequence[Said]] | None = None,
    **options: Any,
) -> Case:
    """A run of a deterministic agentic tool of its own."""
    name = f"plan_{name}"
    model = f"priced_{name}" if name.startswith("plan_cost") else name
    llm = LLMConfig(model=f"scripted:{model}", **options.pop("llm", {}))
    tool = agentic_definition(name, mode="deterministic", llm=llm, steps=steps, **options)
    return Case(
        name=name,
        given=given or {"task": task},
        define=(*beside, tool),
        says={model: says, **(others or {})},
        options={"dry_run": True} if dry_run else {},
        how=how,
        before=before,
        then=then,
    )


def _plain() -> Iterator[Case]:
    yield case("batches", plan(), DONE)
    yield case(
        "no_batches", plan(update_deals={"input": {"ids": ["${search_deals.results[0].id}"], "stage": "3003"}}), DONE
    )
    yield case(
        "all_ids",
        plan(update_deals={"input": {"ids": "${search_deals.results[*].id}", "stage": "3003"}}),
        plan()["update_deals"],
        DONE,
    )
    yield case(
        "empty_list",
        plan(search_deals={"input": {"company": "Nobody"}}),
        DONE,
        task="Move Nobody's deals to Negotiation",
    )
    yield case(
        "twice",
        {
            "reasoning": "",
            "search_deals": {"input": {"company": "Acme"}},
            "update_deals": {"input": {"ids": ["${search_deals.results[0].id}"], "stage": "3001"}},
            "search_deals_2": {"input": {"company": "Acme", "limit": "${update_deals.updated}"}},
        },
        DONE,
        steps=("search_deals", "update_deals", "search_deals"),
    )
    yield case("single_step", one("look", item="hat"), DONE, steps=("look",), task="Look up the hat")
    yield case(
        "each_alone",
        {
            "reasoning": "",
            "search_deals": {"input": {"company": "Acme"}},
            "look": {"for_each": _EACH, "input": {"item": "${item.id}"}},
        },
        DONE,
        steps=("search_deals", "look"),
        task="Look up Acme's deals",
    )
    yield case(
        "own_ids",
        {"reasoning": "", "first": {"input": {"item": "hat"}}, "second": {"input": {"item": "${first}"}}},
        DONE,
        steps=(AgenticStep(id="first", tool="look"), AgenticStep(id="second", tool="send", purpose="Sends it")),
        task="Send the hat",
    )


def _unusual() -> Iterator[Case]:
    yield case("skipped", plan(update_deals={"skip": True}), DONE, task="Find Acme's deals")
    yield case("question", plan(question="Which Acme?", search_deals={"skip": True}, update_deals={"skip": True}))
    yield case(
        "fence",
        'Here:\n```json\n{"reasoning": "", "look": {"input": {"item": "hat"}}}\n```',
        DONE,
        steps=("look",),
        task="Look up the hat",
    )
    yield case("dry_run", plan(), DONE, dry_run=True)
    yield case(
        "result_schema",
        plan(),
        {"summary": "done"},
        {"summary": "done", "moved": 7},
        result_schema={
            "type": "object",
            "properties": {"summary": {"type": "string"}, "moved": {"type": "integer"}},
            "required": ["summary", "moved"],
        },
    )
    yield case(
        "parameters",
        plan(update_deals={"input": {"ids": ["d0"], "stage": "${input.stage}"}}),
        DONE,
        given={"stage": "3002"},
        input_schema={"type": "object", "properties": {"stage": {"type": "string"}}, "required": ["stage"]},
    )
    yield case(
        "prompt", plan(), DONE, system_prompt="TASK {{user_task}} TOOLS {{available_tools}} {{integration_schema}}"
    )
    yield case(
        "limit_of_search",
        plan(search_deals={"input": {"company": "Acme", "limit": 2}}),
        DONE,
        task="Move 2 Acme deals to Negotiation",
    )


def _doubted() -> Iterator[Case]:
    wrong = plan()
    wrong["update_deals"] = {"for_each": _EACH, "input": {"ids": _IDS, "stage": "3001"}}
    more = plan(search_deals={"input": {"company": "Acme", "limit": 1}})
    reading = plan(update_deals={"skip": True})
    task = "Move all Acme deals to Negotiation"
    yield case("live", plan(), DONE, task=task, context=LIVE)
    yield case(
        "label",
        plan(update_deals={"for_each": _EACH, "input": {"ids": _IDS, "stage": "negotiation"}}),
        DONE,
        task=task,
        context=LIVE,
    )
    yield case(
        "uses",
        {"uses": {"Acme": "select by company", "Negotiation": "set stage"}, **plan()},
        DONE,
        task=task,
        context=LIVE,
    )
    yield case("left_out", more, DONE, task=task, context=LIVE)
    yield case("repaired", wrong, plan(), DONE, task=task, context=LIVE)
    yield case("becomes_question", wrong, wrong, task=task, context=LIVE)
    yield case(
        "leftover_word",
        plan(),
        plan(question="What is stale?"),
        task="Move all stale Acme deals to Negotiation",
        context=LIVE,
    )
    yield case("only_reads_in_doubt", reading, reading, DONE, task="Find Acme deals over 500", context=LIVE)
    yield case(
        "documented",
        plan(search_deals={"input": {"company": "Acme", "limit": 50}}),
        DONE,
        task=task,
        context=LIVE.model_copy(update={"documentation": "Show at most 50 deals."}),
    )


def _troubled() -> Iterator[Case]:
    nowhere = {"for_each": "${search_deals.deals}", "input": {"ids": _IDS, "stage": "3003"}}
    right = plan()["update_deals"]
    refused = {"for_each": _EACH, "input": {"ids": _IDS, "stage": _EACH}}
    yield case("prose_first", "I will look.", {"reasoning": ""}, plan(), DONE)
    yield case("never", "Sure!", "Right away!", "Done!")
    yield case("reviewed", plan(update_deals=nowhere), right, DONE)
    yield case("reviewed_refusal", plan(update_deals=refused), right, DONE)
    yield case("reviewed_missing", plan(search_deals={}), {"input": {"company": "Acme"}}, DONE)
    yield case("reviewed_skip", plan(update_deals=nowhere), {"skip": True}, DONE)
    yield case("reviewed_in_vain", plan(update_deals=nowhere), nowhere, DONE)
    yield case("refused_twice", plan(update_deals=refused), refused, DONE)
    yield case("unformatted", plan(), "Moved.", "All moved.", "Really, all moved.")
    yield case("format_fails", plan(), {"fails": "bad_request"})
    yield case("plan_fails", {"fails": "auth"})
    yield case(
        "step_fails",
        {"reasoning": "", "fail": {"input": {"word": "hat"}}, "look": {"input": {"item": "hat"}}},
        DONE,
        steps=("fail", "look"),
        task="Get the hat",
    )
    yield case("no_tool_left", steps=())
    yield case("calls_limit", plan(), DONE, limits=Limits(max_tool_calls=2))
    yield case("tokens_limit", plan(), limits=Limits(max_total_tokens=100))
    yield case("iterations_limit", plan(update_deals=nowhere), right, DONE, limits=Limits(max_iterations=1))
    yield case("cost_of_plan", limits=Limits(max_cost_usd=Decimal("0.05")))
    yield case("cost_of_answer", plan(), limits=Limits(max_cost_usd=Decimal("0.15")))
    yield case("cost_of_review", plan(update_deals=nowhere), limits=Limits(max_cost_usd=Decimal("0.15")))
    yield case(
        "time_limit",
        {"reasoning": "", "look": {"input": {"item": "hat"}}, "hang": {"input": {"item": "hat"}}},
        steps=("look", "hang"),
        task="Get the hat",
        limits=Limits(timeout_s=0.3),
        how="run out of time",
    )
    yield case("cancelled", one("hang", item="hat"), steps=("hang",), task="Get the hat", how="cancel in a call")


def _decided() -> Iterator[Case]:
    task = "Close Acme's deals"
    for name, answer in (("approved", ["approve"]), ("rejected", ["reject"]), ("edited", ["approve", {"ids": ["d6"]}])):
        yield case(f"closed_{name}", closing(), DONE, steps=CLOSE, task=task, before=[[answer]])
    yield case(
        "client_answered",
        {"reasoning": "", "pick": {"input": {"item": "hat"}}, "send": {"input": {"item": "${pick}"}}},
        DONE,
        steps=("pick", "send"),
        task="Send the hat",
        before=[[["client", "the red hat"]]],
    )


def _waiting() -> Iterator[Case]:
    """In the middle of their plans, or before them."""
    task = "Close Acme's deals"
    for name, answer in (("approve", ["approve"]), ("reject", ["reject"]), ("edit", ["approve", {"ids": ["d6"]}])):
        yield case(f"waits_{name}", closing(), DONE, steps=CLOSE, task=task, then=[[answer]])
    yield case(
        "waits_single",
        closing(None, ["${search_deals.results[0].id}"]),
        DONE,
        steps=CLOSE,
        task=task,
        then=[[["approve"]]],
    )
    both = {
        **plan(),
        "close_deals": closing()["close_deals"],
        "look": {"for_each": _EACH, "input": {"item": "${item.name}"}},
    }
    yield case(
        "waits_in_the_middle",
        both,
        DONE,
        steps=("search_deals", "update_deals", "close_deals", "look"),
        task="Move Acme's deals to Negotiation, then close them and look them up",
        then=[[["approve"]]],
    )


def _waiting_often() -> Iterator[Case]:
    two = {"reasoning": "", "pay": {"input": {"amount": 5}}, "pay_2": {"input": {"amount": 7}}}
    yield case("waits_twice", two, DONE, steps=("pay", "pay"), task="Pay 5 and 7", then=[[["approve"]], [["reject"]]])
    yield case(
        "waits_second_time",
        two,
        DONE,
        steps=("pay", "pay"),
        task="Pay 5 and 7",
        before=[[["approve"]]],
        then=[[["approve"]]],
    )
    picked = {"reasoning": "", "pick": {"input": {"item": "hat"}}, "send": {"input": {"item": "${pick}"}}}
    yield case(
        "waits_client", picked, DONE, steps=("pick", "send"), task="Send the hat", then=[[["client", "the red hat"]]]
    )
    asked = {
        "reasoning": "",
        "plan_payer": {"input": {"message": "Pay 5"}},
        "send": {"input": {"item": "${plan_payer.response}"}},
    }
    payer = agent("plan_payer", "pay")
    pays: dict[str, Sequence[Said]] = {"plan_payer": [asks(("pay", {"amount": 5})), "Paid."]}
    yield case(
        "waits_agent",
        asked,
        DONE,
        steps=("plan_payer", "send"),
        task="Pay 5 and send it",
        beside=[payer],
        others=pays,
        then=[[["approve"]]],
    )


def _waiting_inside() -> Iterator[Case]:
    task = "Close Acme's deals"
    inner = case("inner", closing(), DONE, steps=CLOSE, task=task)
    nested = {
        "reasoning": "",
        "plan_inner": {"input": {"task": task}},
        "send": {"input": {"item": "${plan_inner.summary}"}},
    }
    yield case(
        "waits_nested",
        nested,
        DONE,
        steps=("plan_inner", "send"),
        task="Close Acme's deals and send it",
        beside=inner.define,
        others={**inner.says},
        then=[[["approve"]]],
    )
    yield case(
        "waits_too_long", one("pay_today", amount=5), DONE, steps=("pay_today",), task="Pay 5", then=[[["later", DAY]]]
    )
    yield case(
        "waits_review",
        {**closing(), "close_deals": {"for_each": "${search_deals.deals}", "input": {"ids": _IDS}}},
        closing()["close_deals"],
        DONE,
        steps=CLOSE,
        task=task,
        then=[[["approve"]]],
    )
    yield case(
        "waits_live",
        {**plan(), "close_deals": closing()["close_deals"]},
        DONE,
        steps=(*MOVE, "close_deals"),
        task="Move all Acme deals to Negotiation and close them",
        context=LIVE,
        then=[[["approve"]]],
    )
    yield case("waits_unformatted", closing(), "Closed.", DONE, steps=CLOSE, task=task, then=[[["approve"]]])
    yield case("queued", plan(), DONE, how="submit", then=[[]])
    yield case("died_at_the_start", plan(), DONE, how="die at the start", then=[[]])
    kept = {
        "reasoning": "",
        "look": {"input": {"item": "${input.item}"}},
        "hang_and_keep": {"input": {"item": "${look}"}},
    }
    yield case(
        "died_in_a_call",
        kept,
        DONE,
        steps=("look", "hang_and_keep"),
        given={"item": "hat"},
        input_schema=ITEM,
        how="die in a call",
        then=[[]],
    )


CASES: Final[Sequence[Case]] = (
    *_plain(),
    *_unusual(),
    *_doubted(),
    *_troubled(),
    *_decided(),
    *_waiting(),
    *_waiting_often(),
    *_waiting_inside(),
)
