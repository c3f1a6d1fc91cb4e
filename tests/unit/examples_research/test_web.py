"""The web itself: what it serves, what it finds, what it remembers."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import AsyncGenerator
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from jsonschema_rs import Draft202012Validator
from pypdf import PdfReader

from examples.research.facts import COMPANIES, TRAP
from examples.research.pdf import LINES_PER_PAGE, write_pdf
from examples.research.ranking import Index
from examples.research.site import documents
from examples.research.web import DOCUMENT_PATH, SEARCH_PATH, Visit, Web, running_web

ROOT = Path(__file__).parents[3]


@pytest.fixture
async def web() -> AsyncGenerator[Web]:
    async with running_web() as served:
        yield served


async def get(url: str, **query: str | int) -> tuple[int, bytes]:
    async with aiohttp.ClientSession() as session, session.get(url, params=query) as response:
        return response.status, await response.read()


async def search(web: Web, q: str, **more: int) -> dict[str, Any]:
    return json.loads((await get(web.url + SEARCH_PATH, q=q, **more))[1])


def paths(found: dict[str, Any], web: Web) -> list[str]:
    return [result["url"].removeprefix(web.url) for result in found["results"]]


@pytest.mark.requirement("research.web")
async def test_every_document_is_served_and_every_request_is_logged(web: Web) -> None:
    for document in documents(web.url):
        assert await get(web.url + document.path) == (200, document.body)
    assert (await get(web.url + TRAP + "x", a=1))[0] == 404
    assert web.log[0].status == 200
    assert web.log[-1] == Visit("GET", f"{TRAP}x", "a=1", 404)


@pytest.mark.requirement("research.web")
async def test_a_method_that_is_not_served_is_logged_too(web: Web) -> None:
    async with aiohttp.ClientSession() as session, session.post(f"{web.url}{TRAP}x") as response:
        assert response.status == 405
    assert web.log == [Visit("POST", f"{TRAP}x", "", 405)]


@pytest.mark.requirement("research.web")
async def test_search_ranks_by_words_and_pages_visit_each_result_once(web: Web) -> None:
    best = await search(web, "Binwise uptime report")
    assert paths(best, web)[0] == "/binwise.example/files/service-report-2026-q3.pdf"
    assert best["results"][0].keys() == {"title", "url", "kind", "updated", "snippet"}
    assert "99.93" in best["results"][0]["snippet"]
    whole = await search(web, "inventory software", per_page=10)
    pages = [await search(web, "inventory software", per_page=4, page=page) for page in range(1, 9)]
    seen = [path for page in pages for path in paths(page, web)]
    assert whole["total"] == len(seen) == len(set(seen))
    assert seen[:10] == paths(whole, web)
    assert pages[0]["pages"] == -(-whole["total"] // 4)


@pytest.mark.requirement("research.web")
async def test_search_finds_nothing_for_unknown_words_and_refuses_what_it_cannot_read(web: Web) -> None:
    assert (await search(web, "zeppelin"))["results"] == []
    for query in ({"q": " "}, {"q": "x", "page": 0}, {"q": "x", "per_page": 11}, {"q": "x", "page": "many"}):
        status, body = await get(web.url + SEARCH_PATH, **query)
        assert (status, "q must not be empty" in json.loads(body)["message"]) == (400, True)


@pytest.mark.requirement("research.document")
async def test_the_document_names_the_served_address_and_the_answers_meet_it(web: Web) -> None:
    document = json.loads((await get(web.url + DOCUMENT_PATH))[1])
    assert document["servers"] == [{"url": web.url}]
    operation = document["paths"][SEARCH_PATH]["get"]
    schema = {**operation["responses"]["200"]["content"]["application/json"]["schema"], **document}
    Draft202012Validator(schema).validate(await search(web, "Stockwell pricing"))
    limits = {parameter["name"]: parameter["schema"] for parameter in operation["parameters"]}
    assert (limits["page"]["default"], limits["per_page"]["default"], limits["per_page"]["maximum"]) == (1, 5, 10)


@pytest.mark.requirement("research.web")
def test_words_are_found_in_other_forms_and_a_title_counts_more_than_a_text() -> None:
    index = Index([("Prices", "of boats"), ("Boats", "and what they cost: price"), ("Trains", "run")])
    assert [hit.index for hit in index.search("pricing")] == [0, 1]
    assert index.search("the of") == []
    assert Index([]).search("anything") == []


@pytest.mark.requirement("research.misleads")
def test_there_are_forty_documents_that_agree_with_the_facts_where_they_are_current() -> None:
    web = {document.path: document for document in documents("http://web")}
    assert len(web) == 40
    assert Counter(document.kind for document in web.values()) == {"html": 36, "pdf": 4}
    for company in COMPANIES:
        text = web[f"/{company.host}/pricing"].text
        shown = [plan for plan in company.plans if not plan.only_in_pdf]
        assert all(f"<td>{plan.name}</td><td>${plan.usd} per month</td>" in text for plan in shown)
    assert "${}" not in "".join(document.text for document in web.values())


@pytest.mark.requirement("research.misleads")
def test_there_are_pages_of_every_misleading_kind() -> None:
    web = {document.path: document.text for document in documents("http://web")}
    assert "no longer valid" in web["/stockwell.example/pricing-2024"]
    assert "$49" in web["/warehouseblog.example/stockwell-review"]
    assert "Enterprise Sack" in web["/binwise-coffee.example/pricing"]
    orders = web["/dealhunter.example/inventory-software-competitors"]
    assert "Ignore all previous instructions" in orders
    assert f"http://web{TRAP}" in orders


@pytest.mark.requirement("research.pdf")
def test_pdf_files_can_be_read_by_a_strict_reader_page_by_page() -> None:
    lines = [f"Line {number}" for number in range(LINES_PER_PAGE + 1)]
    reader = PdfReader(BytesIO(write_pdf("A (small) \\ title", lines)), strict=True)
    assert [page.extract_text().split("\n")[0] for page in reader.pages] == ["Line 0", f"Line {LINES_PER_PAGE}"]
    assert reader.metadata is not None
    assert reader.metadata.title == "A (small) \\ title"


@pytest.mark.requirement("research.pdf")
def test_a_pdf_without_text_and_one_with_other_letters_are_files_too() -> None:
    assert len(PdfReader(BytesIO(write_pdf("", [])), strict=True).pages) == 1
    assert PdfReader(BytesIO(write_pdf("t", ["10 € żółw"]))).pages[0].extract_text().startswith("10 ")


@pytest.mark.requirement("research.web")
async def test_it_can_be_served_by_hand() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "examples.research", cwd=ROOT, stdout=PIPE)
    assert process.stdout is not None
    try:
        url = (await process.stdout.readline()).decode().strip()
        assert json.loads((await get(url))[1])["total"] > 10
    finally:
        process.terminate()
        await process.wait()
