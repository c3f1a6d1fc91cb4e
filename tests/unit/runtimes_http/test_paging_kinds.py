"""Offsets, page numbers, links and addresses: other ways to the next page than a cursor."""

from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from tests.unit.net.servers import no_answer, serving
from tests.unit.runtimes_http.service import BEARER, TOKEN, Answering, Seen, Service, parameter, service
from toolcrib.contracts import ApiKeyAuth, ToolRevision
from toolcrib.kinds.http.runtime.list_pages import find_link
from toolcrib.kinds.http.shape import (
    CursorPaging,
    HttpBody,
    LinkPaging,
    NextUrlPaging,
    OffsetPaging,
    PageNumberPaging,
    Paging,
)

OFFSET = OffsetPaging(argument="skip", limit_argument="limit", page_size=2, items="rows")
PAGE = PageNumberPaging(argument="page", limit_argument="limit", page_size=2, items="rows")


def rows(total: int, largest: int = 100, **more: Any) -> Answering:
    """Numbered rows by `skip` or `page` (from 1), `limit` at a time and never more than `largest`."""

    def answer(seen: Seen) -> web.StreamResponse:
        query = dict(seen.query)
        limit = min(int(query.get("limit", 3)), largest)
        start = int(query["skip"]) if "skip" in query else (int(query.get("page", 1)) - 1) * limit
        found = [{"id": number} for number in range(start, min(start + limit, total))]
        return web.json_response({"rows": found, **more})

    return answer


def chained(total: int, show: Callable[[int, Seen], tuple[Any, dict[str, str]]]) -> Answering:
    """One row per page; `show` makes body and headers of a page from its number and the request."""

    def answer(seen: Seen) -> web.StreamResponse:
        number = int(dict(seen.query).get("p", 0))
        body, headers = show(number, seen)
        return web.json_response(body, headers=headers if number + 1 < total else {})

    return answer


def tool(svc: Service, paging: Paging, *names: str, **changes: Any) -> ToolRevision:
    return svc.tool("/list", parameters=tuple(parameter(name) for name in names), paging=paging, **changes)


def ids(outcome: Any) -> list[int]:
    return [row["id"] for row in outcome.output["rows"]]


@pytest.mark.requirement("runtime_http.paging_kinds")
@pytest.mark.parametrize(
    ("paging", "total", "more", "queries"),
    [
        (OFFSET, 5, {}, ["skip=0&limit=2", "skip=2&limit=2", "skip=4&limit=2"]),
        (OFFSET, 4, {}, ["skip=0&limit=2", "skip=2&limit=2", "skip=4&limit=2"]),
        (OFFSET.model_copy(update={"total": "$.n"}), 4, {"n": 4}, ["skip=0&limit=2", "skip=2&limit=2"]),
        (OFFSET.model_copy(update={"total": "$.n"}), 4, {"n": "4"}, ["skip=0&limit=2", "skip=2&limit=2"]),
        (OFFSET, 0, {}, ["skip=0&limit=2"]),
        (OFFSET.model_copy(update={"page_size": None}), 5, {}, ["skip=0", "skip=3", "skip=5"]),
        (PAGE, 3, {}, ["page=1&limit=2", "page=2&limit=2"]),
        (PAGE.model_copy(update={"total_pages": "$.pages"}), 4, {"pages": 2}, ["page=1&limit=2", "page=2&limit=2"]),
        (PAGE.model_copy(update={"total": "$.n"}), 4, {"n": 4}, ["page=1&limit=2", "page=2&limit=2"]),
    ],
)
async def test_counted_pages_are_read_until_they_end(paging: Any, total: int, more: Any, queries: list[str]) -> None:
    async with service(rows(total, **more)) as svc:
        outcome = await svc.run(tool(svc, paging, paging.argument, "limit"))
        assert ids(outcome) == list(range(total))
        assert outcome.metadata["paging"] == {"pages": len(queries), "items": total, "complete": True}
        assert "warnings" not in outcome.metadata
        assert [seen.raw_query for seen in svc.seen] == queries


@pytest.mark.requirement("runtime_http.paging_kinds")
async def test_pages_may_be_counted_from_zero() -> None:
    def answer(seen: Seen) -> web.Response:
        page = int(dict(seen.query)["page"])
        return web.json_response([{"id": page}] if page < 2 else [])

    async with service(answer) as svc:
        outcome = await svc.run(tool(svc, PageNumberPaging(argument="page", first=0), "page"))
        assert outcome.output == [{"id": 0}, {"id": 1}]


@pytest.mark.requirement("runtime_http.paging_kinds")
@pytest.mark.parametrize(("total", "output"), [(0, None), (2, {"rows": [{"id": 0}, {"id": 1}]})])
async def test_an_answer_without_content_is_where_a_list_ends(total: int, output: Any) -> None:
    def answer(seen: Seen) -> web.Response:
        page = int(dict(seen.query).get("page", 1)) - 1
        return web.json_response({"rows": [{"id": page}]}) if page < total else web.Response(status=204)

    async with service(answer) as svc:
        outcome = await svc.run(tool(svc, PageNumberPaging(argument="page", items="rows"), "page"))
        assert outcome.output == output
        assert outcome.metadata["paging"] == {"pages": max(total, 1), "items": total, "complete": True}


@pytest.mark.requirement("runtime_http.paging_kinds", "runtime_http.paging_by_caller")
async def test_a_caller_gets_one_page_by_offset_and_no_more_items_than_the_limit() -> None:
    async with service(rows(9)) as svc:
        paged = tool(svc, OFFSET, "skip", "limit")
        assert ids(await svc.run(paged, {"skip": 4})) == [4, 5, 6]
        outcome = await svc.run(paged, {"limit": 2})
        assert ids(outcome) == [0, 1]
        assert outcome.metadata["paging"] == {"pages": 1, "items": 2, "complete": False}
        assert "warnings" not in outcome.metadata


@pytest.mark.requirement("runtime_http.paging_kinds")
async def test_a_service_that_gives_less_than_is_asked_for_is_not_taken_to_be_at_its_end() -> None:
    async with service(rows(5, largest=2)) as svc:
        outcome = await svc.run(tool(svc, OFFSET, "skip", "limit"), {"limit": 50})
        assert ids(outcome) == [0, 1, 2, 3, 4]


@pytest.mark.requirement("runtime_http.paging_kinds", "runtime_http.paging_errors")
async def test_a_service_that_does_not_look_at_the_number_is_noticed() -> None:
    async with service(lambda _: web.json_response({"rows": [{"id": 1}, {"id": 2}]})) as svc:
        outcome = await svc.run(tool(svc, PAGE, "page", "limit"))
        assert ids(outcome) == [1, 2]
        assert outcome.metadata["paging"]["trouble"] == "page 2 is page 1 again"
        assert len(svc.seen) == 2


@pytest.mark.requirement("runtime_http.paging_kinds")
@pytest.mark.parametrize("address", ["/list?p={}", "?p={}", "{url}/list?p={}", "{url}/other/%2Fpath?p={}&x=a%2Cb"])
async def test_links_are_followed_from_the_header(address: str) -> None:
    def show(number: int, seen: Seen) -> tuple[Any, dict[str, str]]:
        target = address.replace("{url}", f"http://{seen.headers['host']}").format(number + 1)
        return [number], {"Link": f'</first>; rel="first", <{target}>; rel="next"; title="a, b"'}

    async with service(chained(3, show), auth=BEARER) as svc:
        outcome = await svc.run(tool(svc, LinkPaging(), "q"), {"q": "x"})
        assert outcome.output == [0, 1, 2]
        assert outcome.metadata["paging"] == {"pages": 3, "items": 3, "complete": True}
        assert svc.seen[0].raw_query == "q=x"
        assert [seen.headers["authorization"] for seen in svc.seen] == [f"Bearer {TOKEN}"] * 3
        assert "q=x" not in svc.seen[1].raw_query


@pytest.mark.requirement("runtime_http.paging_kinds")
@pytest.mark.parametrize(
    ("header", "target"),
    [
        ("<a>; rel=next", "a"),
        ('<a>;rel="prev next"', "a"),
        ('<a>; REL="NEXT"', "a"),
        ('<a,b>; rel="prev", <c;d>; title="x\\", <evil>; rel=next"; rel="next"', "c;d"),
        ('<a>; rel="prev"; rel="next"', None),
        ('<a>; rel="nextish"', None),
        ("", None),
        ("next", None),
        ("<a>", None),
        ("<" * 50_000, None),
        ('<a>; x="' * 3_000, None),
    ],
)
def test_a_link_header_is_read_as_rfc_8288_says(header: str, target: str | None) -> None:
    assert find_link(header, "next") == target


@pytest.mark.requirement("runtime_http.paging_kinds")
@pytest.mark.parametrize("end", [None, "", "  "])
async def test_addresses_are_followed_from_the_body(end: Any) -> None:
    def answer(seen: Seen) -> web.Response:
        number = int(dict(seen.query).get("p", 0))
        target = f"/list?p={number + 1}" if number < 2 else end
        return web.json_response({"data": {"x-rows": [number]}, "@odata.nextLink": target})

    async with service(answer) as svc:
        paging = NextUrlPaging(url_out="$['@odata.nextLink']", items="$.data['x-rows']")
        outcome = await svc.run(tool(svc, paging))
        assert outcome.output == {"data": {"x-rows": [0, 1, 2]}, "@odata.nextLink": end}


@pytest.mark.requirement("runtime_http.paging_kinds")
async def test_a_cursor_may_be_in_a_header_and_go_deep_into_the_body() -> None:
    def answer(seen: Seen) -> web.Response:
        after = int(seen.json["query"].get("page", {}).get("after", 0))
        return web.json_response([after], headers={"X-Next": str(after + 1)} if after < 2 else {})

    async with service(answer) as svc:
        paging = CursorPaging(cursor_in="/body/query/page/after", cursor_out="header:X-Next", items="$")
        found = svc.tool(method="POST", body=HttpBody(argument="body"), paging=paging)
        arguments = {"body": {"query": {"text": "x"}}}
        outcome = await svc.run(found, arguments)
        assert outcome.output == [0, 1, 2]
        assert arguments == {"body": {"query": {"text": "x"}}}
        assert [seen.json["query"]["text"] for seen in svc.seen] == ["x"] * 3


@pytest.mark.requirement("runtime_http.paging_origin")
@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:{other}/list?p=1",
        "http://127.0.0.1:{other}",
        "//127.0.0.1:{other}/",
        "http://127.0.0.1:{own}@127.0.0.1:{other}/",
        "http://localhost:{own}/",
        "https://127.0.0.1:{own}/",
        "http://127.0.0.1:{own}\\@127.0.0.1:{other}/",
        "http://127.0.0.1 :{own}/",
        "ftp://127.0.0.1:{own}/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://169.254.169.254/latest/meta-data/",
    ],
)
@pytest.mark.parametrize("kind", ["link", "next_url"])
async def test_no_next_page_leads_to_another_origin(target: str, kind: str) -> None:
    async with serving(no_answer) as other:

        def answer(seen: Seen) -> web.Response:
            url = target.format(other=other, own=seen.headers["host"].partition(":")[2])
            return web.json_response({"rows": [1], "next": url}, headers={"Link": f"<{url}>; rel=next"})

        async with service(answer, auth=BEARER, ports=(other,)) as svc:
            paging = LinkPaging(items="rows") if kind == "link" else NextUrlPaging(url_out="$.next", items="rows")
            outcome = await svc.run(tool(svc, paging))
            assert outcome.output["rows"] == [1]
            assert "names a next page on another origin" in outcome.metadata["paging"]["trouble"]
            assert len(svc.seen) == 1


@pytest.mark.requirement("runtime_http.paging_origin")
async def test_a_next_page_may_be_on_the_providers_origin_where_the_operation_is_elsewhere() -> None:
    async def more(_: web.BaseRequest) -> web.StreamResponse:
        return web.json_response([2])

    async with serving(more) as other:
        url = f"http://127.0.0.1:{other}/more"
        async with service(lambda _: web.json_response([1], headers={"Link": f"<{url}>; rel=next"})) as svc:
            svc.provide(base_url=url)
            outcome = await svc.run(tool(svc, LinkPaging()))
            assert (outcome.output, outcome.metadata["paging"]["complete"]) == ([1], False)
        async with service(
            lambda _: web.json_response([1], headers={"Link": f"<{url}>; rel=next"}), ports=(other,)
        ) as svc:
            svc.provide(base_url=url)
            assert (await svc.run(tool(svc, LinkPaging()))).output == [1, 2]


@pytest.mark.requirement("runtime_http.paging_origin", "runtime_http.credentials")
async def test_a_key_in_the_query_is_sent_with_every_page_once() -> None:
    def show(number: int, seen: Seen) -> tuple[Any, dict[str, str]]:
        return [number], {"Link": f"</list?p={number + 1}&key=theirs#x>; rel=next"}

    key = ApiKeyAuth(key="${env:TOKEN}", place="query", name="key")
    async with service(chained(3, show), auth=key) as svc:
        assert (await svc.run(tool(svc, LinkPaging()))).output == [0, 1, 2]
        assert [dict(seen.query)["key"] for seen in svc.seen] == [TOKEN] * 3
        assert [seen.raw_query.count("key=") for seen in svc.seen] == [1] * 3


@pytest.mark.requirement("runtime_http.paging_errors")
async def test_addresses_that_run_in_a_circle_end_the_list() -> None:
    async with service(lambda _: web.json_response([1], headers={"Link": "</list>; rel=next"})) as svc:
        outcome = await svc.run(tool(svc, LinkPaging()))
        assert outcome.output == [1]
        assert outcome.metadata["paging"]["trouble"] == "page 1 names a next page that was read already"
        assert len(svc.seen) == 1
        failed = await svc.failure(tool(svc, NextUrlPaging(url_out="$.next", items="$.a.b")))
        assert "the answer has no list 'a.b'" in failed.error.message
        outcome = await svc.run(tool(svc, NextUrlPaging(url_out="next")))
        assert "the next page cannot be found" in outcome.metadata["paging"]["trouble"]


@pytest.mark.requirement("runtime_http.paging_incomplete")
@pytest.mark.parametrize("paging", [OFFSET, PAGE])
async def test_a_list_that_the_tools_bound_cuts_says_so(paging: Any) -> None:
    async with service(rows(9)) as svc:
        bounded = paging.model_copy(update={"max_pages": 2})
        outcome = await svc.run(tool(svc, bounded, paging.argument, "limit"))
        assert outcome.metadata["paging"] == {"pages": 2, "items": 4, "complete": False}
        (warning,) = outcome.metadata["warnings"]
        assert warning.startswith("the list is not complete: 4 items of 2 pages were read")


@pytest.mark.requirement("runtime_http.paging_trouble")
@pytest.mark.parametrize(
    "paging",
    [
        OFFSET,
        PAGE,
        LinkPaging(items="rows"),
        NextUrlPaging(url_out="$.next", items="rows"),
        CursorPaging(cursor_in="page", cursor_out="$.cursor", items="rows"),
    ],
)
async def test_trouble_with_page_two_keeps_page_one_in_every_kind_of_paging(paging: Any) -> None:
    def answer(seen: Seen) -> web.StreamResponse:
        if len(answered) >= 1:
            return web.Response(status=404)
        answered.append(seen)
        body = {"rows": [{"id": 1}, {"id": 2}], "next": "/list?page=2", "cursor": 2}
        return web.json_response(body, headers={"Link": '</list?page=2>; rel="next"'})

    answered: list[Seen] = []
    async with service(answer) as svc:
        outcome = await svc.run(tool(svc, paging, "skip", "page", "limit"))
        assert ids(outcome) == [1, 2]
        assert outcome.metadata["paging"]["complete"] is False
        assert outcome.metadata["paging"]["trouble"].startswith("page 2: ")
