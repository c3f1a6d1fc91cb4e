"""The documentation site in Chromium, at the widths of a desk and of a phone, without any other host."""

import re
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, sync_playwright

from tools.docs import site

pytestmark = [pytest.mark.slow, pytest.mark.requirement("docs.browser")]

ROOT: Final = Path(__file__).parents[2]
CHROMIUM: Final = shutil.which("chromium")
"""`make deps-system` installs it."""
PAGES: Final = ("index", "getting-started", "concepts", "agents", "server", "troubleshooting", "generated/python",
                "tutorials/agent", "comparisons/agent-frameworks", "specifications/agentic-tools")  # fmt: skip
WIDTHS: Final = {"desk": 1280, "phone": 390}
_TOO_WIDE: Final = """
    [...document.querySelectorAll('.md-content *')]
        .filter(one => one.getBoundingClientRect().right > innerWidth + 1)
        .filter(one => !one.closest('.md-typeset__scrollwrap, pre'))
        .map(one => one.outerHTML.slice(0, 80))
"""
"""What a reader sees only by moving the page sideways. Long lines of code and wide tables have bars of their own."""


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and logs nothing."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is that of the base class
        """Nothing."""


class Reading(NamedTuple):
    """A browser, the address of the site, and what went wrong so far."""

    context: BrowserContext
    address: str
    problems: list[str]

    def open(self, page: str, width: str = "desk") -> Page:
        """A page in a new tab."""
        tab = self.context.new_page()
        tab.set_viewport_size({"width": WIDTHS[width], "height": 844})
        tab.goto(f"{self.address}{page}.html")
        tab.wait_for_load_state("networkidle")
        return tab


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the site."""
    folder = site.build(ROOT, tmp_path_factory.mktemp("browser"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def reading(address: str) -> Iterator[Reading]:
    """A browser that notes every message of the console, failed answer and request to another host."""
    if CHROMIUM is None:
        pytest.fail("this machine has no chromium; install it: make deps-system")
    problems: list[str] = []

    def note_console(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            problems.append(message.text)

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = browser.new_context()
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        context.on("console", note_console)
        context.on("weberror", lambda error: problems.append(str(error.error)))
        context.on("response", lambda answer: problems.append(answer.url) if answer.status >= 400 else None)
        context.on(
            "request",
            lambda request: (
                None if request.url.startswith((address, "data:", "blob:")) else problems.append(request.url)
            ),
        )
        yield Reading(context, address, problems)
        browser.close()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_as_wide_as_the_screen_and_has_no_error(reading: Reading, page: str) -> None:
    for width in WIDTHS:
        tab = reading.open(page, width)
        assert tab.locator("h1").is_visible()
        assert tab.evaluate(_TOO_WIDE) == [], width
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
        assert tab.evaluate("[...document.images].filter(one => !one.naturalWidth).length") == 0
        tab.close()
    assert reading.problems == []


def test_the_search_finds_the_page_about_approvals(reading: Reading) -> None:
    tab = reading.open("index")
    tab.keyboard.press("Control+k")
    tab.keyboard.type("approval")
    tab.get_by_text(re.compile(r"^\d+ results$")).wait_for()
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/approvals.html*")
    assert tab.locator("h1").inner_text().startswith("Approvals")
    assert reading.problems == []


def test_the_dark_colours_are_kept_on_the_next_page(reading: Reading) -> None:
    tab = reading.open("index")
    light = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    tab.locator("label[title=Dark]").click()
    tab.wait_for_function("document.body.dataset.mdColorScheme === 'slate'")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") != light
    tab.goto(f"{reading.address}concepts.html")
    tab.wait_for_function("document.body.dataset.mdColorScheme === 'slate'")
    tab.locator("label[title=Light]").click()
    tab.wait_for_function("document.body.dataset.mdColorScheme === 'default'")


def test_a_block_of_code_is_copied(reading: Reading) -> None:
    tab = reading.open("index")
    tab.locator("button[title='Copy to clipboard']").first.click()
    tab.wait_for_function("navigator.clipboard.readText().then(text => text.trim() === 'pip install toolcrib')")


def test_the_navigation_of_a_phone_leads_to_another_page(reading: Reading) -> None:
    tab = reading.open("index", "phone")
    tab.locator("label.md-header__button[for=__drawer]").click()
    tab.locator(".md-nav--primary").get_by_text("Concepts", exact=True).first.click()
    tab.locator(".md-nav--primary").get_by_role("link", name="Durability").click()
    tab.wait_for_url("**/durability.html")
    assert reading.problems == []
