"""Pages of a list as one answer."""

from typing import Any

import pytest
from aiohttp import web

from tests.unit.runtimes_http.service import BEARER, TOKEN, Answering, Seen, Service, parameter, service
from toolcrib.contracts import ErrorCode, Limits, Reason, ToolRevision
from toolcrib.kinds.http.runtime import list_pages as pages
from toolcrib.kinds.http.shape import CursorPaging, HttpBody

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
        ({"results": [1], "paging": {"next": {"after": "7"}}}, "page 2 names a next page that was read already"),
        ({"items": []}, "the answer has no list 'results'"),
        ({"results": None}, "the answer has no list 'results'"),
        ([], "the answer has no list 'results'"),
        ({"ok": False, "error": "not_authed"}, "which its pages are made of: not_authed"),
    ],
)
async def test_pages_that_lead_nowhere_are_a_bad_response(body: Any, message: str) -> None:
    async with service(lambda _: web.json_response(body)) as svc:
        failed = await svc.failure(paged(svc))
        assert (failed.error.code, failed.error.reason) == (ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE)
        assert message in failed.error.message


@pytest.mark.requirement("runtime_http.paging_errors")
async def test_a_path_that_cannot_be_applied_is_a_bad_response() -> None:
    async with service(listing(1)) as svc:
        failed = await svc.failure(paged(svc, paging=CURSOR.model_copy(update={"cursor_out": "paging"})))
        assert "the next page cannot be found" in failed.error.message


@pytest.mark.requirement("runtime_http.paging_errors", "runtime_http.requests_counted")
@pytest.mark.parametrize(("headers", "wait"), [({"retry_after": "3"}, 3.0), ({}, 1.0), ({"retry_after": "10"}, 10.0)])
async def test_a_short_rate_limit_in_the_middle_is_waited_out_once(headers: Any, wait: float) -> None:
    async with service(listing(5, {"2": [refusal(**headers)], "4": [refusal(**headers)]})) as svc:
        svc.limits = Limits(max_requests=5)
        outcome = await svc.run(paged(svc))
        assert outcome.output["results"] == [0, 1, 2, 3, 4]
        assert svc.clock.naps == [wait, wait]
        assert len(svc.seen) == 5


@pytest.mark.requirement("runtime_http.paging_errors")
@pytest.mark.parametrize(
    ("refusals", "code", "requests"),
    [
        ({None: [refusal(retry_after="1")]}, ErrorCode.RATE_LIMIT, 1),
        ({"2": [refusal(retry_after="11")]}, ErrorCode.RATE_LIMIT, 2),
        ({"2": [refusal(retry_after="1"), refusal(retry_after="1")]}, ErrorCode.RATE_LIMIT, 3),
        ({"2": [refusal(503, retry_after="1")]}, ErrorCode.PROVIDER_ERROR, 2),
    ],
)
async def test_any_other_refusal_fails_the_call(refusals: Any, code: ErrorCode, requests: int) -> None:
    async with service(listing(5, refusals)) as svc:
        failed = await svc.failure(paged(svc))
        assert failed.error.code == code
        assert len(svc.seen) == requests


@pytest.mark.requirement("runtime_http.requests_counted")
async def test_no_request_is_sent_beyond_the_budget() -> None:
    async with service(listing(9), auth=BEARER) as svc:
        svc.limits = Limits(max_requests=2)
        failed = await svc.failure(paged(svc))
        assert (failed.error.code, failed.error.reason) == (ErrorCode.POLICY_DENIED, Reason.MAX_REQUESTS_EXCEEDED)
        assert "max_requests is 2" in failed.error.message
        assert failed.secrets == (TOKEN,)
        assert len(svc.seen) == 2
