"""Pages of a list as one answer."""

from typing import Any

import pytest
from aiohttp import web

from tests.twins import make_definition
from tests.unit.net.servers import serving
from tests.unit.runtimes_http.service import BEARER, TOKEN, Answering, Seen, Service, parameter, service
from toolcrib import Crib, EgressPolicy
from toolcrib.contracts import ErrorCode, Limits, Reason, ToolRevision
from toolcrib.core.executor import Outcome
from toolcrib.kinds.http.runtime import list_pages as pages
from toolcrib.kinds.http.shape import CursorPaging, HttpBody, HttpImplementation

CURSOR_ONLY = CursorPaging(cursor_in="after", cursor_out="$.paging.next.after", items="results")
CURSOR = CursorPaging(
    cursor_in="after", cursor_out="$.paging.next.after", items="results", limit_argument="limit", page_size=2
)


def listing(total: int, refusals: dict[str | None, list[web.Response]] | None = None) -> Answering:
    """Numbers in pages of `limit`, of which some are refused first."""

    def answer(seen: Seen) -> web.StreamResponse:
        query = dict(seen.query)
        waiting = (refusals or {}).get(query.get("after"), [])
        if waiting:
            return waiting.pop(0)
        start, limit = int(query.get("after", 0)), int(query.get("limit", 3))
        body: dict[str, Any] = {"total": total, "results": list(range(start, min(start + limit, total)))}
        if start + limit < total:
            body["paging"] = {"next": {"after": str(start + limit)}}
        return web.json_response(body)

    return answer


def paged(svc: Service, **changes: Any) -> ToolRevision:
    paging = changes.pop("paging", CURSOR)
    return svc.tool("/list", parameters=(parameter("after"), parameter("limit")), paging=paging, **changes)


def refusal(status: int = 429, **headers: str) -> web.Response:
    return web.Response(status=status, headers={name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.requirement("runtime_http.paging", "runtime_http.metadata")
async def test_all_pages_become_one_list() -> None:
    async with service(listing(5), auth=BEARER) as svc:
        outcome = await svc.run(paged(svc))
        assert outcome.output == {"total": 5, "results": [0, 1, 2, 3, 4]}
        assert outcome.metadata["paging"] == {"pages": 3, "items": 5, "complete": True}
        assert outcome.metadata["headers"]["content-type"].startswith("application/json")
        assert outcome.secrets == (TOKEN,)
        assert [seen.raw_query for seen in svc.seen] == ["limit=2", "after=2&limit=2", "after=4&limit=2"]


@pytest.mark.requirement("runtime_http.paging")
async def test_a_cursor_in_the_body_is_followed_too() -> None:
    def answer(seen: Seen) -> web.Response:
        after = seen.json.get("from")
        return web.json_response({"found": [after], **({} if after == 2 else {"next": (after or 0) + 1})})

    async with service(answer) as svc:
        paging = CursorPaging(cursor_in="after", cursor_out="$.next", items="found")
        tool = svc.tool(method="POST", body=HttpBody(fields={"after": "from"}, required=True), paging=paging)
        outcome = await svc.run(tool)
        assert outcome.output == {"found": [None, 1, 2]}
        assert [seen.json for seen in svc.seen] == [{}, {"from": 1}, {"from": 2}]


@pytest.mark.requirement("runtime_http.paging")
async def test_the_tools_bound_ends_the_list_and_leaves_the_next_cursor() -> None:
    async with service(listing(9)) as svc:
        outcome = await svc.run(paged(svc, paging=CURSOR.model_copy(update={"max_pages": 2})))
        assert outcome.output == {"total": 9, "results": [0, 1, 2, 3], "paging": {"next": {"after": "4"}}}
        assert outcome.metadata["paging"] == {"pages": 2, "items": 4, "complete": False}


@pytest.mark.requirement("runtime_http.paging")
async def test_a_list_of_too_many_bytes_ends_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_LIST_BYTES", 100)
    async with service(listing(9)) as svc:
        outcome = await svc.run(paged(svc))
        assert outcome.metadata["paging"] == {"pages": 2, "items": 4, "complete": False}


@pytest.mark.requirement("runtime_http.paging")
async def test_an_empty_cursor_is_the_last_page() -> None:
    async with service(lambda _: web.json_response({"results": [1], "paging": {"next": {"after": ""}}})) as svc:
        assert (await svc.run(paged(svc))).metadata["paging"]["complete"] is True


@pytest.mark.requirement("runtime_http.paging_by_caller")
async def test_a_caller_who_gives_the_cursor_gets_one_page() -> None:
    async with service(listing(9)) as svc:
        outcome = await svc.run(paged(svc), {"after": "4"})
        assert outcome.output == {"total": 9, "results": [4, 5, 6], "paging": {"next": {"after": "7"}}}
        assert "paging" not in outcome.metadata
        assert [seen.raw_query for seen in svc.seen] == ["after=4"]


@pytest.mark.requirement("runtime_http.paging_by_caller")
@pytest.mark.parametrize(("limit", "results", "requests"), [(4, [0, 1, 2, 3], 1), (50, [0, 1, 2, 3, 4, 5, 6, 7, 8], 1)])
async def test_a_caller_who_gives_the_page_size_gets_no_more_items(limit: int, results: Any, requests: int) -> None:
    async with service(listing(9)) as svc:
        outcome = await svc.run(paged(svc), {"limit": limit})
        assert outcome.output["results"] == results
        assert len(svc.seen) == requests


@pytest.mark.requirement("runtime_http.paging_by_caller")
async def test_smaller_pages_than_asked_for_are_followed_until_there_are_enough() -> None:
    def answer(seen: Seen) -> web.Response:
        start = int(dict(seen.query).get("after", 0))
        return web.json_response({"results": [start], "paging": {"next": {"after": str(start + 1)}}})

    async with service(answer) as svc:
        outcome = await svc.run(paged(svc), {"limit": 3})
        assert outcome.output["results"] == [0, 1, 2]
        assert outcome.metadata["paging"] == {"pages": 3, "items": 3, "complete": False}


@pytest.mark.requirement("runtime_http.paging")
async def test_without_a_page_size_the_service_decides() -> None:
    async with service(listing(5)) as svc:
        await svc.run(paged(svc, paging=CURSOR.model_copy(update={"page_size": None})))
        assert [seen.raw_query for seen in svc.seen] == ["", "after=3"]


@pytest.mark.requirement("runtime_http.paging_errors")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"items": []}, "the answer has no list 'results'"),
        ({"results": None}, "the answer has no list 'results'"),
        ([], "the answer has no list 'results'"),
        ({"ok": False, "error": "not_authed"}, "which its pages are made of: not_authed"),
    ],
)
async def test_a_first_page_that_is_no_list_is_a_bad_response(body: Any, message: str) -> None:
    async with service(lambda _: web.json_response(body)) as svc:
        failed = await svc.failure(paged(svc))
        assert (failed.error.code, failed.error.reason) == (ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE)
        assert message in failed.error.message


def kept(outcome: Outcome) -> tuple[Any, str]:
    """The items that an incomplete list still has, and what it says is the trouble."""
    found = outcome.metadata["paging"]
    assert found["complete"] is False
    assert found["trouble"] in outcome.metadata["warnings"][0]
    assert "the list is not complete" in outcome.metadata["warnings"][0]
    return outcome.output["results"], found["trouble"]


@pytest.mark.requirement("runtime_http.paging_trouble")
@pytest.mark.parametrize(
    ("second", "trouble"),
    [
        (web.Response(status=403), "page 2: "),
        (web.Response(status=500), "page 2: "),
        ({"results": "three"}, "page 2: "),
        (web.Response(text="<html>", content_type="text/html"), "page 2: "),
        ({"results": [2], "paging": {"next": {"after": "2"}}}, "page 2 names a next page that was read already"),
    ],
)
async def test_trouble_with_page_two_keeps_page_one_and_says_so(second: Any, trouble: str) -> None:
    def answer(seen: Seen) -> web.StreamResponse:
        if "after" not in dict(seen.query):
            return web.json_response({"results": [0, 1], "paging": {"next": {"after": "2"}}})
        if isinstance(second, web.Response):
            return web.Response(status=second.status, text=second.text, content_type=second.content_type)
        return web.json_response(second)

    async with service(answer) as svc:
        items, said = kept(await svc.run(paged(svc)))
        assert items[:2] == [0, 1]
        assert said.startswith(trouble)


@pytest.mark.requirement("runtime_http.paging_errors")
async def test_a_path_that_cannot_be_applied_ends_the_list() -> None:
    async with service(listing(1)) as svc:
        items, trouble = kept(await svc.run(paged(svc, paging=CURSOR.model_copy(update={"cursor_out": "paging"}))))
        assert items == [0]
        assert "the next page cannot be found" in trouble


@pytest.mark.requirement("runtime_http.paging_errors", "runtime_http.requests_counted")
@pytest.mark.parametrize(("headers", "wait"), [({"retry_after": "3"}, 3.0), ({}, 1.0), ({"retry_after": "10"}, 10.0)])
async def test_a_short_rate_limit_in_the_middle_is_waited_out_once(headers: Any, wait: float) -> None:
    async with service(listing(5, {"2": [refusal(**headers)], "4": [refusal(**headers)]})) as svc:
        svc.limits = Limits(max_requests=5)
        outcome = await svc.run(paged(svc))
        assert outcome.output["results"] == [0, 1, 2, 3, 4]
        assert svc.clock.naps == [wait, wait]
        assert len(svc.seen) == 5


@pytest.mark.requirement("runtime_http.paging_errors", "runtime_http.paging_trouble")
@pytest.mark.parametrize(
    ("refusals", "requests"),
    [
        ({"2": [refusal(retry_after="11")]}, 2),
        ({"2": [refusal(retry_after="1"), refusal(retry_after="1")]}, 3),
        ({"2": [refusal(503, retry_after="11")]}, 2),
        ({"2": [refusal(503), refusal(503)]}, 3),
    ],
)
async def test_a_refusal_that_stays_ends_the_list(refusals: Any, requests: int) -> None:
    async with service(listing(5, refusals)) as svc:
        items, trouble = kept(await svc.run(paged(svc)))
        assert items == [0, 1]
        assert trouble.startswith("page 2: ")
        assert len(svc.seen) == requests


@pytest.mark.requirement("runtime_http.paging_errors")
async def test_a_server_error_in_the_middle_passes() -> None:
    async with service(listing(5, {"2": [refusal(503)]})) as svc:
        assert (await svc.run(paged(svc))).output["results"] == [0, 1, 2, 3, 4]


@pytest.mark.requirement("runtime_http.paging_errors")
async def test_a_refusal_of_the_first_page_fails_the_call() -> None:
    async with service(listing(5, {None: [refusal(retry_after="1")]})) as svc:
        failed = await svc.failure(paged(svc))
        assert failed.error.code == ErrorCode.RATE_LIMIT
        assert len(svc.seen) == 1


@pytest.mark.requirement("runtime_http.requests_counted", "runtime_http.paging_trouble")
async def test_no_request_is_sent_beyond_the_budget() -> None:
    async with service(listing(9), auth=BEARER) as svc:
        svc.limits = Limits(max_requests=2)
        outcome = await svc.run(paged(svc))
        items, trouble = kept(outcome)
        assert items == [0, 1, 2, 3]
        assert "max_requests is 2" in trouble
        assert outcome.secrets == (TOKEN,)
        assert len(svc.seen) == 2


@pytest.mark.requirement("runtime_http.paging_trouble")
async def test_a_list_that_trouble_cut_off_is_not_cached_and_its_warning_reaches_the_envelope() -> None:
    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        return answers.pop(0)

    answers = [
        web.json_response({"results": [0], "paging": {"next": {"after": "1"}}}),
        web.Response(status=403),
        web.json_response({"results": [0, 1]}),
    ]
    async with serving(answer) as port, Crib("memory://", egress=EgressPolicy(allow=(f"127.0.0.1:{port}",))) as crib:
        implementation = HttpImplementation(
            method="GET", url=f"http://127.0.0.1:{port}/list", parameters=(parameter("after"),), paging=CURSOR_ONLY
        )
        await crib.save(make_definition("deals", implementation=implementation, cache="forever"))
        first, second, third = [await crib.call("deals") for _ in range(3)]
    assert first.metadata["paging"]["complete"] is False
    assert first.metadata["warnings"]
    assert (second.output, third.output) == ({"results": [0, 1]}, {"results": [0, 1]})
    assert answers == []
