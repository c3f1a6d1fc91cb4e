"""Agentic tools that choose, agents, delegates, limits, rules, conversations, handles, forks."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from tests.contract.old_runs.case import Case, Rounds, Said, agent, asks
from tests.contract.old_runs.hands import DAY
from toolcrib import Limits, LLMConfig
from toolcrib.agents import agentic_definition
from toolcrib.contracts import (
    ContentFilter,
    JsonObject,
    NoDelete,
    PinnedHandle,
    PinSelector,
    RequireConfirmation,
    UntrustedContent,
)

LOOK: Final = ("look", {"item": "hat"})
SEND: Final = ("send", {"item": "hat"})
PAY: Final = ("pay", {"amount": 5})
PICK: Final = ("pick", {"item": "hat"})
SCHEMA: Final[JsonObject] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def chooser(
    name: str,
    *says: Said,
    tools: Sequence[str] = ("look", "send"),
    how: str = "invoke",
    before: Rounds = (),
    then: Rounds | None = None,
    beside: Sequence[Any] = (),
    others: Mapping[str, Sequence[Said]] | None = None,
    dry_run: bool = False,
    **fields: Any,
) -> Case:
    """A run of an agentic tool that chooses."""
    name = f"choice_{name}"
    model = f"priced_{name}" if name.startswith("choice_cost") else name
    llm = LLMConfig(model=f"scripted:{model}", **fields.pop("llm", {}))
    tool = agentic_definition(name, mode="agentic", llm=llm, tools=tools, **fields)
    options = {"dry_run": True} if dry_run else {}
    return Case(
        name=name,
        given={"task": "Go"},
        define=(*beside, tool),
        says={model: says, **(others or {})},
        how=how,
        before=before,
        then=then,
        options=options,
    )


def asked(
    name: str,
    *says: Said,
    tools: Sequence[str] = ("look", "send"),
    how: str = "ask",
    before: Rounds = (),
    then: Rounds | None = None,
    beside: Sequence[Any] = (),
    others: Mapping[str, Sequence[Said]] | None = None,
    given: JsonObject | None = None,
    **fields: Any,
) -> Case:
    """A run of an agent."""
    name = f"agent_{name}"
    llm = LLMConfig(model=f"scripted:{name}", **fields.pop("llm", {}))
    return Case(
        name=name,
        given=given or {},
        define=(*beside, agent(name, *tools, llm=llm, **fields)),
        says={name: says, **(others or {})},
        how=how,
        before=before,
        then=then,
    )


def _choices() -> Iterator[Case]:
    yield chooser("plain", asks(LOOK), "Done.")
    yield chooser("no_call", "Nothing to do.")
    yield chooser("parallel", asks(LOOK, ("look", {"item": "coat"}), SEND), "Done.")
    yield chooser("several_turns", asks(LOOK), asks(SEND), asks(("look", {"item": "coat"})), "Done.")
    yield chooser("words_and_calls", asks(LOOK, text="I look."), "Done.")
    yield chooser("wrong_tool", asks(("nothing", {})), "Done.")
    yield chooser("wrong_arguments", asks(("look", {"item": 7})), asks(LOOK), "Done.")
    yield chooser("only_refusals", *[asks(("nothing", {}))] * 3)
    yield chooser("tool_fails", asks(("fail", {"word": "hat"})), "It failed.", tools=("fail",))
    yield chooser("empty_answer", "", "Done.")
    yield chooser("model_fails", {"fails": "bad_request"})
    yield chooser("result_schema", asks(LOOK), "Two.", {"n": 2}, result_schema=SCHEMA)
    yield chooser("result_never_fits", asks(LOOK), "Two.", "Two.", "Two.", "Two.", result_schema=SCHEMA)
    yield chooser("dry_run", asks(LOOK, SEND), "Done.", dry_run=True)


def _limited() -> Iterator[Case]:
    yield chooser(
        "iterations",
        *[asks(("look", {"item": f"hat {number}"})) for number in range(4)],
        "Enough.",
        limits=Limits(max_iterations=2),
    )
    yield chooser("calls", asks(LOOK), asks(("look", {"item": "coat"})), "Enough.", limits=Limits(max_tool_calls=1))
    yield chooser("tokens", asks(LOOK), "Enough.", limits=Limits(max_total_tokens=60))
    yield chooser("cost", asks(LOOK), asks(SEND), "Enough.", limits=Limits(max_cost_usd=Decimal("0.15")))
    yield chooser(
        "cost_of_tool",
        asks(("buy", {"item": "hat"})),
        asks(("buy", {"item": "coat"})),
        "Bought.",
        tools=("buy",),
        limits=Limits(max_cost_usd=Decimal("0.55")),
    )
    yield chooser(
        "time",
        asks(LOOK),
        asks(("hang", {"item": "hat"})),
        tools=("look", "hang"),
        limits=Limits(timeout_s=0.3),
        how="run out of time",
    )
    yield chooser("cancelled", asks(("hang", {"item": "hat"})), tools=("hang",), how="cancel in a call")
    yield chooser("no_tools", tools=())


def _decided() -> Iterator[Case]:
    yield chooser("paid", asks(PAY), "Paid.", tools=("pay",), before=[[["approve"]]])
    yield chooser("not_paid", asks(PAY), "Not paid.", tools=("pay",), before=[[["reject"]]])
    yield chooser(
        "expired", asks(("pay_today", {"amount": 5})), "Too late.", tools=("pay_today",), before=[[["later", DAY]]]
    )
    yield chooser(
        "nested",
        asks(("choice_inner", {"task": "Look"})),
        "Done.",
        tools=("choice_inner",),
        **_inner("inner", asks(LOOK), "Found."),
    )
    yield chooser(
        "nested_twice",
        asks(("choice_pair", {"task": "Look"}), ("choice_pair", {"task": "Look again"})),
        "Done.",
        tools=("choice_pair",),
        **_inner("pair", asks(LOOK), asks(LOOK), "Found.", "Found."),
    )
    for name, answer in (("approve", ["approve"]), ("reject", ["reject"]), ("edit", ["approve", {"amount": 7}])):
        yield chooser(f"waits_{name}", asks(LOOK), asks(PAY), "Over.", tools=("look", "pay"), then=[[answer]])
    yield chooser(
        "waits_client", asks(PICK), asks(SEND), "Over.", tools=("pick", "send"), then=[[["client", "the red hat"]]]
    )
    yield chooser(
        "waits_both", asks(PICK, PAY), "Over.", tools=("pick", "pay"), then=[[["client", "the red hat"]], [["approve"]]]
    )
    yield chooser(
        "waits_nested",
        asks(("choice_deep", {"task": "Pay"})),
        "Over.",
        tools=("choice_deep",),
        then=[[["approve"]]],
        **_inner("deep", asks(PAY), "Paid.", tools=("pay",)),
    )
    yield chooser("queued", asks(LOOK, SEND), "Over.", how="submit", then=[[]])
    yield chooser("died_at_the_start", asks(SEND), "Over.", how="die at the start", then=[[]])
    yield chooser(
        "died_in_a_call",
        asks(LOOK),
        asks(("hang_and_keep", {"item": "hat"})),
        "Over.",
        tools=("look", "hang_and_keep"),
        how="die in a call",
        then=[[]],
    )


def _inner(name: str, *says: Said, tools: Sequence[str] = ("look",)) -> dict[str, Any]:
    inside = chooser(name, *says, tools=tools)
    return {"beside": inside.define, "others": inside.says}


def _text() -> Iterator[Case]:
    text = {"tool_calling": "text"}
    calls = 'I look.\n```tool\nreturn look("hat");\n```'
    yield asked("text", calls, "Found.", llm=text)
    yield asked("text_malformed", "```tool\nlook(HAT)\n```", calls, "Found.", llm=text)
    yield asked(
        "text_schema",
        calls,
        "```tool\nreturn finalResponse();\n```",
        '```json\n{"n": 2}\n```',
        llm=text,
        response_format="structured",
        response_schema=SCHEMA,
    )
    yield chooser("text", calls, "Found.", llm=text)
    paying = "```tool\nreturn pay(5);\n```"
    yield asked("text_waits", paying, "Paid.", llm=text, tools=("pay",), then=[[["approve"]]])
    yield asked("text_rejected", paying, "Not paid.", llm=text, tools=("pay",), before=[[["reject"]]])


def _agents() -> Iterator[Case]:
    yield asked("plain", asks(LOOK), "It is here.")
    yield asked("streamed", asks(LOOK), "It is here, is it not?", how="stream")
    yield asked("streamed_waits", asks(PAY), "Paid.", tools=("pay",), how="stream", then=[[["approve"]]])
    yield asked("structured", asks(LOOK), '{"n": 1}', response_format="structured", response_schema=SCHEMA)
    yield asked("with_context", "Hello Ann.", given={"context": {"name": "Ann"}})
    yield asked(
        "filtered",
        asks(("look", {"item": "zebra"})),
        "I saw a zebra.",
        guardrails=(ContentFilter(words=("zebra",), action="redact"),),
    )
    yield asked("blocked", "I saw a zebra.", "Nothing.", guardrails=(ContentFilter(words=("zebra",)),))
    yield asked(
        "may_not_delete", asks(("delete", {"item": "hat"})), "I may not.", tools=("delete",), guardrails=(NoDelete(),)
    )
    yield asked("reads_only", asks(SEND), "I may not.", side_effects="reads")
    yield asked(
        "outsiders",
        asks(("read_mail", {})),
        asks(SEND),
        "I may not.",
        tools=("read_mail", "send"),
        guardrails=(UntrustedContent(action="deny"),),
    )
    yield asked(
        "outsiders_ask",
        asks(("read_mail", {})),
        asks(SEND),
        "Sent.",
        tools=("read_mail", "send"),
        guardrails=(UntrustedContent(),),
        then=[[["approve"]]],
    )
    yield asked("confirms", asks(SEND), "Sent.", guardrails=(RequireConfirmation(),), then=[[["approve"]]])
    yield asked("all_approved", asks(SEND), "Sent.", requires_approval=True, before=[[["approve"]]])
    yield asked("approval_waits", asks(SEND), "Over.", requires_approval=True, then=[[["reject"]]])


def _pinned() -> Iterator[Case]:
    found = PinnedHandle(name="found", selector=PinSelector(tool="look"))
    stale = PinnedHandle(name="found", selector=PinSelector(tool="look"), on_missing="stale_last_success")
    must = PinnedHandle(name="found", selector=PinSelector(tool="look"), on_missing="error")
    yield asked("pinned", asks(LOOK), "It is here.", pins=(found,))
    yield asked(
        "pinned_stale", asks(LOOK), "It is here.", "Nothing today.", pins=(stale,), before=[[["say", "Once more."]]]
    )
    yield asked("pinned_missing", "Nothing.", pins=(must,))


def _delegates() -> Iterator[Case]:
    yield asked(
        "delegates",
        asks(("agent_mate", {"message": "Look"})),
        "Found.",
        tools=(),
        delegates=("agent_mate",),
        **_mate("mate", asks(LOOK), "Here."),
    )
    yield asked(
        "delegate_waits",
        asks(("agent_payer", {"message": "Pay"})),
        "Paid.",
        tools=(),
        delegates=("agent_payer",),
        then=[[["approve"]]],
        **_mate("payer", asks(PAY), "Paid.", tools=("pay",)),
    )
    yield asked(
        "delegate_client",
        asks(("agent_picker", {"message": "Pick"})),
        "Picked.",
        tools=(),
        delegates=("agent_picker",),
        then=[[["client", "the red hat"]]],
        **_mate("picker", asks(PICK), "Picked.", tools=("pick",)),
    )


def _all_sorts() -> Iterator[Case]:
    yield asked(
        "all_kinds",
        asks(
            ("web_look", {"text": "agent hat"}),
            ("file_away", {"text": "agent hat"}),
            ("World_Act", {"text": "agent hat"}),
            ("get_part", {"sku": "bolt"}),
        ),
        "Done.",
        tools=("web_look", "file_away", "World_Act", "get_part"),
    )
    yield asked(
        "kinds_after_wait",
        asks(PAY),
        asks(
            ("web_send", {"text": "after"}),
            ("file_away", {"text": "after"}),
            ("World_Act", {"text": "after"}),
            ("create_part", {"sku": "after", "count": 2}),
        ),
        "Done.",
        tools=("pay", "web_send", "file_away", "World_Act", "create_part"),
        then=[[["approve"]]],
    )
    yield asked("client_waits", asks(PICK), "Picked.", tools=("pick",), then=[[["client", "the red hat"]]])
    yield asked(
        "iterations",
        *[asks(("look", {"item": f"hat {number}"})) for number in range(4)],
        "Enough.",
        limits=Limits(max_iterations=2),
    )
    yield asked("secret", asks(("open_safe", {"item": "safe"})), "It is open.", tools=("open_safe",))
    yield asked(
        "asks_first", "Never.", requires_confirmation=True, how="invoke", given={"message": "Go"}, before=[[["reject"]]]
    )
    yield asked(
        "asks_first_waits",
        asks(LOOK),
        "It is here.",
        requires_confirmation=True,
        how="invoke",
        given={"message": "Go"},
        then=[[["approve"]]],
    )


def _mate(name: str, *says: Said, tools: Sequence[str] = ("look",)) -> dict[str, Any]:
    inside = asked(name, *says, tools=tools)
    return {"beside": inside.define, "others": inside.says}


def _conversations() -> Iterator[Case]:
    say = ["say", "And then?"]
    yield asked("talk", "Hello.", "Well.", "Bye.", before=[[["say", "And then?"]], [["say", "Bye."]]])
    yield asked(
        "talk_goes_on",
        "Hello.",
        "Well.",
        asks(LOOK),
        "It is here.",
        before=[[say]],
        then=[[["say", "Where is the hat?"]]],
    )
    yield asked(
        "talk_waits",
        "Hello.",
        asks(PAY),
        "Paid.",
        "You are welcome.",
        tools=("pay",),
        before=[[["say", "Pay."]]],
        then=[[["approve"]], [["say", "Thanks."]]],
    )
    yield asked(
        "talk_after_approval",
        asks(PAY),
        "Paid.",
        "Five.",
        tools=("pay",),
        before=[[["approve"]]],
        then=[[["say", "How much?"]]],
    )
    yield asked(
        "talk_client",
        asks(PICK),
        "Picked.",
        "The red one.",
        tools=("pick",),
        then=[[["client", "the red hat"]], [["say", "Which?"]]],
    )


def _forked() -> Iterator[Case]:
    """Forks that were made when the stores were, of a run that the same case has made before."""
    yield chooser("forked", asks(LOOK), "Done.", before=[[["fork", {}]]])
    yield chooser(
        "forked_anew",
        asks(LOOK),
        "Done.",
        asks(SEND),
        "Sent.",
        before=[[["fork", {"anew": True, "allow_writes": True}]]],
    )
    yield asked(
        "forked_prompt", asks(LOOK), "Done.", "Short.", before=[[["fork", {"changes": {"prompt": "Be short."}}]]]
    )
    yield asked(
        "forked_waits",
        asks(LOOK),
        asks(PAY),
        "Paid.",
        asks(PAY),
        "Paid.",
        tools=("look", "pay"),
        before=[[["approve"]], [["fork", {"anew": True, "allow_writes": True, "at": "turn:2"}]]],
        then=[[["approve"]]],
    )


CASES: Final[Sequence[Case]] = (
    *_choices(),
    *_limited(),
    *_decided(),
    *_text(),
    *_agents(),
    *_pinned(),
    *_delegates(),
    *_all_sorts(),
    *_conversations(),
    *_forked(),
)
