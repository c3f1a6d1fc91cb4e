"""All documents of this web, made from `facts` and `prose.yaml` for the address where they are served."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, Final, Literal

import yaml

from examples.research.facts import (
    BINWISE,
    COMPANIES,
    CRATELOGIC_CLOSED,
    LARKFIELD,
    PALLETRY,
    SCANNER,
    SERVICE,
    STOCKWELL,
    TRAP,
    Company,
)
from examples.research.layout import page, table
from examples.research.pdf import write_pdf

PROSE: Final = Path(__file__).with_name("prose.yaml")
PRICE_LIST: Final = f"/{BINWISE.host}/files/price-list-2026.pdf"
OLD_PRICE_LIST: Final = f"/{BINWISE.host}/files/price-list-2024.pdf"
SERVICE_REPORT: Final = f"/{BINWISE.host}/files/service-report-2026-q3.pdf"
DATA_SHEET: Final = f"/{PALLETRY.host}/files/scan-2-data-sheet.pdf"

_OLD_BINWISE_PRICES: Final = ("Essential   $30 per month", "Growth   $75 per month", "Enterprise   $380 per month")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One page or file of the web."""

    path: str
    """With the invented host as first part: `/stockwell.example/pricing`."""
    title: str
    updated: str
    """ISO 8601 date that the document itself names."""
    kind: Literal["html", "pdf"]
    body: bytes
    """As it is sent."""
    text: str
    """What the search engine knows of it; HTML without its layout, tags included."""

    @property
    def content_type(self) -> str:
        """Media type."""
        return "text/html; charset=utf-8" if self.kind == "html" else "application/pdf"


def documents(origin: str) -> list[Document]:
    """Every document, with links to the address `http://host:port` where the web is served."""
    return [*_company_pages(origin), *_files(), *_prose(origin)]


def _company_pages(origin: str) -> Iterator[Document]:
    for company in COMPANIES:
        site = f"/{company.host}/"
        yield _html(origin, site, f"{company.product} - {company.slogan}", company.priced_on, _home(company))
        yield _html(origin, f"{site}pricing", f"{company.name} pricing", company.priced_on, _pricing(company, origin))
        yield _html(origin, f"{site}about", f"About {company.name}", "2026-02-01", _about(company))
        yield _html(origin, f"{site}integrations", f"{company.name} integrations", "2026-07-14", _integrations(company))


def _home(company: Company) -> str:
    return (
        f"<p>{escape(company.product)} is inventory software. {escape(company.slogan)}</p>"
        '<p><a href="pricing">See the pricing</a> or <a href="about">read about us</a>.</p>'
    )


def _pricing(company: Company, origin: str) -> str:
    shown = [plan for plan in company.plans if not plan.only_in_pdf]
    rows = [(plan.name, f"${plan.usd} per month", plan.scope) for plan in shown]
    parts = [f"<p>What {escape(company.product)} costs, billed every month.</p>", table(("Plan", "Price", "For"), rows)]
    hidden = [plan.name for plan in company.plans if plan.only_in_pdf]
    if hidden:
        link = f'<a href="{origin}{PRICE_LIST}">price list (PDF)</a>'
        parts.append(f"<p>The price of {' and '.join(hidden)} is in our {link}.</p>")
    return "\n".join(parts)


def _about(company: Company) -> str:
    return (
        f"<p>{escape(company.name)} was founded in {company.founded} in {escape(company.city)}, where it still is. "
        f"Its chief executive is {escape(company.chief)}.</p>"
    )


def _integrations(company: Company) -> str:
    items = "".join(f"<li>{escape(name)}</li>" for name in company.integrations)
    return f"<p>{escape(company.product)} works together with:</p><ul>{items}</ul>"


def _files() -> Iterator[Document]:
    plans = [f"{plan.name}   ${plan.usd} per month   {plan.scope}" for plan in BINWISE.plans]
    valid = f"Valid from {BINWISE.priced_on}. Prices in US dollars, without tax."
    yield _pdf(PRICE_LIST, "Binwise price list 2026", BINWISE.priced_on, [valid, *plans])
    note = "Valid from 2024-01-01 until 2025-12-31."
    yield _pdf(OLD_PRICE_LIST, "Binwise price list 2024", "2024-01-01", [note, *_OLD_BINWISE_PRICES])
    report = [
        f"Quarter: {SERVICE.quarter}",
        f"Uptime: {SERVICE.uptime} per cent",
        f"Incidents: {SERVICE.incidents}",
        f"The longest lasted {SERVICE.longest_min} minutes. Its cause was {SERVICE.cause}.",
    ]
    yield _pdf(SERVICE_REPORT, f"Binwise service report {SERVICE.quarter}", "2026-10-02", report)
    sheet = [
        f"Battery life: {SCANNER.battery_h} hours",
        f"Weight: {SCANNER.weight_g} g",
        f"Reading distance: up to {SCANNER.range_m} m",
    ]
    yield _pdf(DATA_SHEET, f"Palletry {SCANNER.name} data sheet", "2026-03-30", sheet)


def _prose(origin: str) -> Iterator[Document]:
    facts: dict[str, Any] = {
        "origin": origin,
        "trap": TRAP,
        "larkfield": LARKFIELD,
        "stockwell": STOCKWELL,
        "binwise": BINWISE,
        "scanner": SCANNER,
        "palletry": PALLETRY,
        "service": SERVICE,
        "cratelogic_closed": CRATELOGIC_CLOSED,
    }
    for entry in _written():
        title = entry["title"].format(**facts)
        yield _html(origin, entry["path"], title, str(entry["updated"]), entry["html"].format(**facts))


@cache
def _written() -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = yaml.safe_load(PROSE.read_text(encoding="utf-8"))
    return entries


def _html(origin: str, path: str, title: str, updated: str, body: str) -> Document:
    host = path.split("/")[1]
    whole = page(title=title, updated=updated, home=f"{origin}/{host}/", site=host, body=body)
    return Document(path=path, title=title, updated=updated, kind="html", body=whole.encode(), text=body)


def _pdf(path: str, title: str, updated: str, lines: list[str]) -> Document:
    shown = [title, "", *lines]
    return Document(
        path=path, title=title, updated=updated, kind="pdf", body=write_pdf(title, shown), text="\n".join(lines)
    )
