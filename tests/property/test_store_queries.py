"""Random filters, sorts and pages over runs, approvals and conversations mean the same on every store."""

import asyncio
from collections.abc import Generator
from contextlib import AsyncExitStack
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.servers.postgres import running_postgres
from tests.unit.store.samples import FIRST, NOON, claimed, later, new_run, store_at
from toolcrib.contracts import (
    OWNER,
    ApprovalRequested,
    Conversation,
    ErrorCode,
    RunEvent,
    RunFinished,
    RunRequest,
    RunResult,
    RunStatus,
    StopReason,
    ToolError,
    Usage,
)
from toolcrib.crib.tools.resources import RESOURCES, QueryPage, ResourceQuery, stored_page
from toolcrib.infrastructure.store import RunChange, Store
from toolcrib.infrastructure.store.ports.queried_fields import EVERYTHING

pytestmark = pytest.mark.requirement("queries.agreement", "queries.pages")

TEXTS: Final = ("Acme", "acme, 50%", "it's_", "Zoë", "", "\x00\ud7ff", "\U0001f600")
TOOLS: Final = ("desk", "search", "Search")
ENDS: Final[tuple[tuple[RunStatus, StopReason, ErrorCode | None, str | None, bool], ...]] = (
    ("completed", "final_answer", None, "0.25", False),
    ("failed", "error", ErrorCode.PROVIDER_ERROR, None, True),
    ("incomplete", "max_cost", None, "1.5", True),
    ("cancelled", "cancelled", None, "0", False),
)
Key = tuple[str, ...]


class Stores:
    """One store of each kind with the same rows, and a loop for them.

    Args:
        urls: Of the stores.
    """

    def __init__(self, urls: list[str]) -> None:
        self._loop = asyncio.Runner()
        self._stack = AsyncExitStack()
        self.stores = [store_at(url) for url in urls]
        self._loop.run(self._fill())

    async def _fill(self) -> None:
        for store in self.stores:
            await store.open()
            self._stack.push_async_callback(store.close)
            for index in range(24):
                await add_run(store, index)
                await add_conversation(store, index)

    def close(self) -> None:
        """Close the stores and the loop."""
        self._loop.run(self._stack.aclose())
        self._loop.close()

    def walk(self, resource: Any, filter_text: str, sort: str | None, limit: int) -> list[tuple[list[Key], int]]:
        """From each store, what it finds page by page, and what it counts."""
        return [self._loop.run(walked(store, resource, filter_text, sort, limit)) for store in self.stores]


async def add_run(store: Store, index: int) -> None:
    text = TEXTS[index % 7]
    request = RunRequest(
        kind="agent" if index % 3 else "tool",
        tool=f"{TOOLS[index % 3]}@1.0.0",
        content_hash="sha256:1",
        principal=OWNER,
        input=text if index % 2 else {"company": text},
        conversation_id=f"c{index % 4}" if index % 5 else None,
    )
    at = later(index * 3600 // 2)
    run = new_run(f"r{index:02}", request=request, created_at=at, updated_at=at, made_by=f"user{index % 3}")
    await store.journal.create(run, FIRST)
    if index % 6 == 5:
        return
    await claimed(store.journal, run.run_id)
    asked = ApprovalRequested(
        position="t1.c1",
        call_id="c",
        name=TOOLS[index % 3],
        version="1.0.0",
        input={},
        arguments_hash="a",
        content_hash="h",
        message=text.replace("\x00", ""),
        expires_at=later(index) if index % 2 else None,
    )
    entries = [RunEvent(run.run_id, 2, later(index + 90), "default", run.made_by, asked)]
    status, stop, code, cost, unknown = ENDS[index % 4]
    result = RunResult(
        run_id=run.run_id,
        status=status,
        stop_reason=stop,
        error=None if code is None else ToolError(code=code, message="\x00 it failed"),
        output="\x00",
        usage=Usage(input_tokens=index * 10, output_tokens=index),
        tokens=None if index % 2 else index * 11,
        cost_usd=None if cost is None else Decimal(cost),
        cost_unknown=unknown,
    )
    change = None
    if index % 6 != 4:
        ended = RunFinished(status=status, stop_reason=stop)
        entries.append(RunEvent(run.run_id, 3, later(index + 7200), "default", run.made_by, ended))
        change = RunChange(status, result)
    await store.journal.append(run.run_id, 1, entries, change)


async def add_conversation(store: Store, index: int) -> None:
    await store.conversations.add(
        Conversation(
            conversation_id=f"c{index:02}",
            realm="default",
            agent=TOOLS[index % 3],
            principal=f"user{index % 2}",
            title=TEXTS[index % 7].replace("\x00", ""),
            turn_count=index % 4,
            tokens=index * 7,
            created_at=NOON + timedelta(days=index // 2),
            updated_at=NOON + timedelta(days=index),
        )
    )


async def walked(store: Store, resource: Any, filter_text: str, sort: str | None, limit: int) -> tuple[list[Key], int]:
    ports = {"runs": store.journal, "approvals": store.approvals, "conversations": store.conversations}
    known = RESOURCES[resource]
    query = ResourceQuery[Any](known, filter_text, sort, now=NOON)
    found: list[Key] = []
    after: str | None = None
    while True:
        page: QueryPage[Any] = await stored_page(
            ports[resource], "default", query, EVERYTHING, after=after, limit=limit
        )
        found += [tuple(str(field.of(row)) for field in known.fields.values()) for row in page.items]
        after = page.next
        if after is None:
            return found, await ports[resource].count("default", query.condition)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stores]:
    file: Path = tmp_path_factory.mktemp("queries") / "crib.db"
    with running_postgres() as server:
        made = Stores(["memory://", f"sqlite:///{file}", server.database()])
        yield made
        made.close()


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def values_of(kind: str, choices: tuple[str, ...]) -> st.SearchStrategy[str]:
    if choices:
        return st.sampled_from([quoted(each) for each in choices])
    match kind:
        case "datetime":
            moments = [(NOON + timedelta(minutes=30 * number)).isoformat()[:19] + "Z" for number in range(0, 30, 3)]
            return st.one_of(st.sampled_from(moments), st.just("now()"), st.just("now() add duration'PT5H'"))
        case "integer" | "number":
            return st.sampled_from(["0", "1", "0.25", "1.5", "44", "-3"])
        case _:
            words = [*TEXTS, *TOOLS, "user1", "r07", "c03"]
            return st.sampled_from([quoted(word.replace("\x00", "")) for word in words])


@st.composite
def conditions(draw: st.DrawFn, resource: Any) -> str:
    name, field = draw(st.sampled_from(sorted(RESOURCES[resource].fields.items())))
    if field.type == "boolean":
        return name
    values = values_of(field.type, field.choices)
    if field.type == "string" and draw(st.booleans()):
        method = draw(st.sampled_from(["contains", "startswith", "endswith"]))
        wrapped = draw(st.sampled_from([name, f"tolower({name})", f"toupper({name})", f"trim({name})"]))
        sought = quoted(draw(st.sampled_from(["a", "A", "ë", "%", "_", "e", "ac", "r0"])))
        return f"{method}({wrapped},{sought})"
    if field.type == "datetime" and draw(st.booleans()):
        part = draw(st.sampled_from(["year", "month", "day", "hour", "minute", "second"]))
        return f"{part}({name}) {draw(st.sampled_from(['eq', 'gt', 'le']))} {draw(st.sampled_from([0, 1, 13, 2026]))}"
    if draw(st.booleans()):
        listed = ",".join(draw(st.lists(st.one_of(values, st.just("null")), min_size=1, max_size=3)))
        return f"{name} in ({listed})"
    operator = draw(st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"]))
    return f"{name} {operator} {draw(st.one_of(values, st.just('null')))}"


def filters(resource: Any) -> st.SearchStrategy[str]:
    return st.recursive(
        conditions(resource),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda each: f"({' '.join(each)})"),
            inner.map(lambda each: f"not ({each})"),
        ),
        max_leaves=5,
    )


def sorts(resource: Any) -> st.SearchStrategy[str | None]:
    key = st.tuples(st.sampled_from(sorted(RESOURCES[resource].fields)), st.sampled_from(["", " desc"])).map("".join)
    return st.one_of(
        st.none(), st.lists(key, min_size=1, max_size=3, unique_by=lambda each: each.split()[0]).map(",".join)
    )


@pytest.mark.parametrize("resource", ["runs", "approvals", "conversations"])
@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_every_store_finds_counts_and_pages_the_same(stores: Stores, resource: str, data: st.DataObject):
    filter_text, sort = data.draw(filters(resource)), data.draw(sorts(resource))
    limit = data.draw(st.sampled_from([3, 7, 50]))

    (found, count), *others = stores.walk(resource, filter_text, sort, limit)

    assert count == len(found) == len(set(found))
    assert others == [(found, count)] * len(others)


def test_the_rows_differ_enough_that_filters_mean_something(stores: Stores):
    for resource, fields in ((name, RESOURCES[name].fields) for name in ("runs", "approvals", "conversations")):
        [(found, _), *_] = stores.walk(resource, "", None, 50)
        various = {name for name, values in zip(fields, zip(*found, strict=True), strict=True) if len(set(values)) > 1}
        same = {"session_id", "parent_run_id", "question", "side_effects", "decided_by", "decided_at", "status"}
        assert set(fields) - various <= same
