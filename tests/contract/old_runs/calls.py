"""Single calls of tools of every kind, as runs: done, failed, denied, kept, edited, waited for."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from tests.contract.old_runs.case import Case, Rounds
from tests.contract.old_runs.hands import DAY
from tests.contract.old_runs.outside import TEXT
from toolcrib import CompositeRoute
from toolcrib.contracts import OWNER, JsonObject, Principal, ToolDefinition
from toolcrib.kinds.code.shape import CodeImplementation
from toolcrib.kinds.composite.checks import composite_definition

READER: Final = Principal(id="reader", grants=("ai://tools/*/look/execute",))
ITEM: Final[JsonObject] = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
AMOUNT: Final[JsonObject] = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}


def case(
    name: str,
    tool: str,
    /,
    *,
    then: Rounds | None = None,
    before: Rounds = (),
    how: str = "invoke",
    define: Sequence[ToolDefinition] = (),
    options: JsonObject | None = None,
    principal: Principal = OWNER,
    **given: Any,
) -> Case:
    """A run of one call."""
    return Case(
        name=f"call_{name}",
        tool=tool,
        given=given,
        then=then,
        before=before,
        how=how,
        define=define,
        options=options or {},
        principal=principal,
    )


def code(name: str, source: str, *tools: str, **fields: Any) -> ToolDefinition:
    """A tool of Python code."""
    how = CodeImplementation(source=source, tools=tools)
    values: dict[str, Any] = {"input_schema": ITEM, "side_effects": "reads", **fields}
    return ToolDefinition(name=name, implementation=how, **values)


def composite(name: str, *routes: CompositeRoute, schema: JsonObject = ITEM) -> ToolDefinition:
    """A tool in front of others."""
    return composite_definition(name, schema, routes)


def _functions() -> Iterator[Case]:
    yield case("look", "look", item="hat")
    yield case("look_again", "look", item="coat")
    yield case("send", "send", item="hat")
    yield case("keep", "keep", item="hat")
    yield case("delete", "delete", item="hat")
    yield case("buy", "buy", item="hat")
    yield case("fail", "fail", word="hat")
    yield case("refuse", "refuse", item="hat")
    yield case("wrong_type", "look", item=7)
    yield case("missing", "look")
    yield case("unknown_field", "look", item="hat", colour="red")
    yield case("first_cached", "look_once", item="hat")
    yield case("cached", "look_once", item="hat")
    yield case("not_cached", "look_once", item="coat")
    yield case("secret", "open_safe", item="safe")
    yield case("untrusted", "read_mail")
    yield case("truncated", "long_list", count=50)
    yield case("within_budget", "long_list", count=1)
    yield case("beyond_budget", "long_list", count=2)
    yield case("rate_first", "seldom", item="hat")
    yield case("rate_refused", "seldom", item="hat")
    yield case("dry_reads", "look", options={"dry_run": True}, item="hat")
    yield case("dry_writes", "send", options={"dry_run": True}, item="hat")
    yield case("denied", "send", principal=READER, item="hat")
    yield case("allowed", "look", principal=READER, item="hat")
    yield case("as_call", "look", options={"as_call": True}, item="hat")
    yield case("in_session", "look", options={"session_id": "s-1"}, item="hat")
    yield case("deals", "search_deals", company="Acme")
    yield case("deals_to_two", "search_deals", company="Acme", limit=2)
    yield case("deals_moved", "update_deals", ids=["d0"], stage="3001")
    yield case("deals_too_many", "update_deals", ids=["d0", "d1", "d2", "d3"], stage="3001")
    yield case("stages", "list_stages")
    yield case("cancelled", "hang", how="cancel in a call", item="hat")
    yield case("cancelled_before", "look", how="submit", before=[[["cancel", "Nobody wants it."]]], item="hat")
    yield case("queued", "look", how="submit", then=[[]], item="hat")
    yield case("queued_write", "send", how="submit", then=[[]], item="queued hat")
    yield case("died_at_the_start", "send", how="die at the start", then=[[]], item="late hat")
    yield case("died_in_a_call", "hang_and_keep", how="die in a call", then=[[]], item="hat")
    yield case("died_in_a_read", "hang", how="die in a call", then=[[]], item="hat")
    yield case("happened", "hang_and_send", how="die in a call", then=[[], [["settle", True]]], item="hat")
    yield case("did_not_happen", "hang_and_send", how="die in a call", then=[[], [["settle", False]]], item="coat")


def _waits() -> Iterator[Case]:
    answers = {"approve": ["approve"], "reject": ["reject"], "edit": ["approve", {"amount": 7}]}
    for number, (name, answer) in enumerate(answers.items()):
        yield case(f"paid_{name}", "pay", before=[[answer]], amount=10 + number)
        yield case(f"waits_{name}", "pay", then=[[answer]], amount=20 + number)
    yield case("edited_wrongly", "pay", before=[[["approve", {"amount": 8}]]], amount=9)
    yield case("expired", "pay_today", before=[[["later", DAY]]], amount=31)
    yield case("in_time", "pay_today", before=[[["later", 100.0], ["approve"]]], amount=32)
    yield case("waits_too_long", "pay_today", then=[[]], amount=33)
    yield case("picked", "pick", before=[[["client", "the red hat"]]], item="hat")
    yield case("waits_client", "pick", then=[[["client", "the red hat"]]], item="hat")
    yield case("waits_printer", "print_page", then=[[["client", {"printed": True}]]], page="p1")
    yield case("waits_cancel", "pay", then=[[["cancel", "Too late."]]], amount=34)
    yield case("cancelled_waiting", "pay", before=[[["cancel", "Too late."]]], amount=35)


def _outside() -> Iterator[Case]:
    for tool, kind in (("web_look", "http"), ("web_send", "http_write"), ("file_away", "mcp"), ("World_Act", "grpc")):
        name = tool
        yield case(kind, name, text=f"{kind} hat")
        yield case(f"{kind}_dry", name, options={"dry_run": True}, text="hat")
        yield case(f"{kind}_wrong", name, text=7)
        yield case(f"{kind}_queued", name, how="submit", then=[[]], text=f"{kind} queued")
    yield case("http_broken", "web_look", text="broken")
    yield case("http_unreachable", "web_gone", text="hat")
    yield case("entity_get", "get_part", sku="bolt")
    yield case("entity_get_none", "get_part", sku="none")
    yield case("entity_search", "search_parts", filter="count gt 4")
    yield case("entity_count", "count_parts")
    yield case("entity_create", "create_part", sku="gear", count=1)
    yield case("entity_update", "update_part", sku="nut", count=6, row_version="f14c36fb5ec9e8cd")
    yield case("entity_queued", "create_part", how="submit", then=[[]], sku="late", count=1)


def _others() -> Iterator[Case]:
    yield case(
        "code",
        "code_plain",
        define=[code("code_plain", "def main(item):\n    return {'item': item.upper()}\n")],
        item="hat",
    )
    yield case(
        "code_calls",
        "code_calls",
        define=[code("code_calls", "def main(item):\n    return [look(item=item), look(item='coat')]\n", "look")],
        item="hat",
    )
    yield case(
        "code_fails", "code_fails", define=[code("code_fails", "def main(item):\n    return 1 // 0\n")], item="hat"
    )
    paying = code(
        "code_pays",
        "def main(item):\n    return [look(item=item), pay(amount=41)]\n",
        "look",
        "pay",
        side_effects="writes",
    )
    yield case("code_waits", "code_pays", define=[paying], then=[[["approve"]]], item="hat")
    yield case("code_paid", "code_pays", before=[[["approve"]]], item="coat")
    yield case("code_rejected", "code_pays", before=[[["reject"]]], item="coat")
    yield case("code_queued", "code_calls", how="submit", then=[[]], item="late hat")
    two = composite(
        "either",
        CompositeRoute(id="hat", when="${input.item == 'hat'}", tool="look"),
        CompositeRoute(id="rest", tool="send"),
    )
    yield case("composite", "either", define=[two], item="hat")
    yield case("composite_rest", "either", item="coat")
    pays = composite("payment", CompositeRoute(id="only", tool="pay"), schema=AMOUNT)
    yield case("composite_waits", "payment", define=[pays], then=[[["approve"]]], amount=51)
    yield case("composite_paid", "payment", before=[[["approve"]]], amount=52)
    yield case(
        "composite_over_http",
        "composite_web",
        define=[composite("composite_web", CompositeRoute(id="only", tool="web_look"), schema=TEXT)],
        text="composite",
    )
    yield case("composite_queued", "either", how="submit", then=[[]], item="late coat")


CASES: Final[Sequence[Case]] = (*_functions(), *_waits(), *_outside(), *_others())
