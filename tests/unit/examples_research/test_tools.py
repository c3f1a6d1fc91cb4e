"""Reading pages and files: as text, and through the guard."""

from collections.abc import AsyncGenerator
from urllib.parse import urlsplit

import pytest

from examples.research.facts import TRAP
from examples.research.readable import MAX_LINKS, MAX_TEXT, readable
from examples.research.site import PRICE_LIST, documents
from examples.research.tools import Unreadable, extract, read_pdf, scrape
from examples.research.web import Web, running_web
from toolcrib import Crib, EgressPolicy, ToolEnvelope
from toolcrib.contracts import ErrorCode, Reason

URL = "http://web/site/page"


@pytest.fixture
async def web() -> AsyncGenerator[Web]:
    async with running_web() as served:
        yield served


@pytest.fixture
async def crib(web: Web) -> AsyncGenerator[Crib]:
    async with Crib("memory://", egress=EgressPolicy(allow=(urlsplit(web.url).netloc,))) as opened:
        opened.add(scrape, extract)
        yield opened


def problem(envelope: ToolEnvelope) -> str:
    assert envelope.error is not None
    return envelope.error.message


@pytest.mark.requirement("research.readable")
def test_a_page_is_its_headings_paragraphs_lists_and_tables() -> None:
    html = b"""<title>A  title</title><main><h2>Plans</h2>loose <p>two
      lines</p>tail<ul><li>one</li><li><p>two</p></li></ul>
      <table><tr><th>Plan</th><th>Price</th></tr><tr><td>Team</td><td>$1</td></tr></table>
      <time datetime="2026-01-02">today</time></main>"""
    page = readable(html, URL)
    assert page.text.split("\n") == [
        "## Plans",
        "loose",
        "two lines",
        "tail",
        "- one",
        "-",
        "two",
        "Plan | Price",
        "Team | $1",
        "today",
    ]
    assert (page.title, page.updated, page.truncated) == ("A title", "2026-01-02", False)


@pytest.mark.requirement("research.readable")
def test_what_a_reader_would_not_see_is_gone() -> None:
    [page] = [item for item in documents("http://web") if "dealhunter" in item.path]
    text = readable(page.body, URL).text
    assert "Subscribe to our letter" in text
    for unseen in ("hidden", "cookies", "Forklifts", "analytics", "Log in", "Imprint"):
        assert unseen not in text
    secret = b'<p>seen</p><p hidden>a</p><p aria-hidden="true">b</p><p style="color:red;visibility: hidden">c</p>'
    assert readable(secret, URL).text == "seen"


@pytest.mark.requirement("research.readable")
def test_links_are_absolute_once_each_and_of_the_web() -> None:
    html = b'<body><a href="b">B</a><a href="/c">C</a><a href="b">again</a><a href="mailto:x@y">mail</a><a>none</a>'
    assert [(link.text, link.url) for link in readable(html, URL).links] == [
        ("B", "http://web/site/b"),
        ("C", "http://web/c"),
    ]
    many = "".join(f"<a href=/{number}>x</a>" for number in range(MAX_LINKS + 9))
    assert len(readable(many.encode(), URL).links) == MAX_LINKS


@pytest.mark.requirement("research.readable")
def test_long_pages_are_cut_and_empty_or_broken_ones_are_read_as_they_are() -> None:
    long = readable(b"<p>" + b"word " * MAX_TEXT, URL)
    assert (len(long.text), long.truncated) == (MAX_TEXT, True)
    assert readable(b"", URL).text == ""
    assert readable(b"<div><p>open<table><td>cell", URL).text == "open\ncell"


@pytest.mark.requirement("research.tools")
async def test_pages_and_files_are_read_with_a_receipt_each(crib: Crib, web: Web) -> None:
    page = await crib.call("web.scrape", url=f"{web.url}/stockwell.example/pricing")
    assert page.ok
    assert "Team | $54 per month | 2 warehouses, 10 users" in page.output["text"]
    assert page.output["updated"] == "2026-08-17"
    file = await crib.call("pdf.extract", url=f"{web.url}{PRICE_LIST}")
    assert (file.output["title"], file.output["page_count"]) == ("Binwise price list 2026", 1)
    assert "Enterprise   $465 per month" in file.output["text"]
    assert (page.side_effects, file.side_effects) == ("reads", "reads")


@pytest.mark.requirement("research.tools")
async def test_what_is_no_page_no_file_or_not_there_is_refused_with_what_to_do(crib: Crib, web: Web) -> None:
    assert "read it with pdf.extract" in problem(await crib.call("web.scrape", url=f"{web.url}{PRICE_LIST}"))
    assert "read it with web.scrape" in problem(await crib.call("pdf.extract", url=f"{web.url}/palletry.example/"))
    assert "answered with status 404; try another source" in problem(
        await crib.call("web.scrape", url=f"{web.url}{TRAP}x")
    )
    assert "application/json" in problem(await crib.call("web.scrape", url=f"{web.url}/openapi.json"))


@pytest.mark.requirement("research.tools")
async def test_an_address_that_was_not_opened_is_denied_before_anything_is_sent(crib: Crib) -> None:
    for url in ("http://127.0.0.1:1/", "http://169.254.169.254/latest", "file:///etc/passwd"):
        denied = await crib.call("web.scrape", url=url)
        assert denied.error is not None
        assert (denied.error.code, denied.error.reason) == (ErrorCode.POLICY_DENIED, Reason.SSRF_BLOCKED)


@pytest.mark.requirement("research.tools")
@pytest.mark.parametrize("body", [b"%PDF-1.4\n", b"%PDF-1.4\ntrailer << >>\n%%EOF", b"%PDF-" + b"\0" * 5000])
def test_a_broken_file_is_an_error_and_not_a_crash(body: bytes) -> None:
    with pytest.raises(Unreadable, match="cannot be read"):
        read_pdf(body, URL)
