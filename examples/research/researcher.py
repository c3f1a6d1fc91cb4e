"""A model made of rules: it looks up prices, so that the demonstration runs without an API key.

It knows a small grammar of tasks and how search results and pages look, and nothing of what they say: the competitors
come from the newest comparison that it read, the addresses from the search results, every price from the text of a
page or file of the company's own. Orders on a page are text to it like any other. Wherever a model's name is shown,
this one is called `scripted:researcher`.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from toolcrib import ScriptedModel
from toolcrib.llm import Message, Request, Text, ToolCall, ToolResult

NAME: Final = "researcher"

_SEARCH, _SCRAPE, _EXTRACT = "web_search", "web_scrape", "pdf_extract"
_HOME: Final = re.compile(r"\bYou work for ([A-Z]\w+)")
_NAMED: Final = re.compile(
    r"\b(?:pricing|prices?)\s+(?:of|for|at)\s+(?P<names>[A-Z]\w+(?:(?:,\s*|\s+and\s+|,\s*and\s+)[A-Z]\w+)*)"
)
_COMPETITORS: Final = re.compile(r"\bcompetitors?\b", re.IGNORECASE)
_PRICE: Final = re.compile(r"\b(?:pric\w*|costs?)\b", re.IGNORECASE)
_HEADING: Final = re.compile(r"^### (.+)$", re.MULTILINE)
_OFFER: Final = re.compile(r"^(?P<plan>[A-Z][\w ]*?)(?: \| |\s{2,})\$(?P<usd>\d[\d,]*) per month", re.MULTILINE)
_OVERVIEWS: Final = 3
"""Results of the first search that are read."""


@dataclass(frozen=True, slots=True)
class Found:
    """A search result."""

    title: str
    url: str
    kind: str
    updated: str

    @property
    def site(self) -> str:
        """The name of the site: in this web the host is the first part of the path."""
        return urlsplit(self.url).path.split("/")[1].partition(".")[0]


@dataclass(slots=True)
class Notes:
    """What the conversation has brought so far."""

    results: dict[str, list[Found]] = field(default_factory=dict[str, list[Found]])
    """By query."""
    texts: dict[str, str] = field(default_factory=dict[str, str])
    """What was read, by address; empty if it could not be read."""


@dataclass(frozen=True, slots=True)
class Step:
    """What the model does next."""

    reason: str
    calls: Sequence[tuple[str, Mapping[str, str]]]


def researcher() -> ScriptedModel:
    """The model."""
    return ScriptedModel(answer, name=NAME)


def answer(request: Request) -> Message | str:
    """What the model says: the next calls, or a report when there is nothing left to look up."""
    task, notes = request.messages[0].text, read_notes(request.messages)
    home = _HOME.search(request.system)
    overview = f"{home[1]} competitors pricing" if home else None
    named = _NAMED.search(task)
    if named is None and not (overview and _COMPETITORS.search(task) and _PRICE.search(task)):
        return _report(
            "I can look up prices: 'Find competitor pricing', or 'Find the pricing of NAME and NAME'.", [], []
        )
    step = None if named else _compare(overview or "", notes)
    if step is None:
        names = re.findall(r"[A-Z]\w+", named["names"]) if named else competitors(overview or "", notes)
        step = _look_up(names, notes)
        if step is None:
            return _conclude(names, None if named else newest_overview(overview or "", notes), notes)
    calls = (
        ToolCall(f"call_{len(request.messages)}_{index}", name, json.dumps(arguments))
        for index, (name, arguments) in enumerate(step.calls)
    )
    return Message("assistant", (Text(step.reason), *calls))


def read_notes(messages: Sequence[Message]) -> Notes:
    """Every search and every text in a conversation."""
    notes, asked = Notes(), dict[str, ToolCall]()
    for part in (part for message in messages for part in message.parts):
        if isinstance(part, ToolCall):
            asked[part.id] = part
        elif isinstance(part, ToolResult):
            call = asked[part.id]
            _note(notes, call.name, json.loads(call.args), {} if part.is_error else json.loads(part.text))
    return notes


def competitors(overview: str, notes: Notes) -> list[str]:
    """The names in the newest comparison that was read."""
    newest = newest_overview(overview, notes)
    return _HEADING.findall(notes.texts[newest.url]) if newest else []


def newest_overview(overview: str, notes: Notes) -> Found | None:
    """The newest of the comparisons that list names."""
    listing = [found for found in notes.results[overview] if _HEADING.search(notes.texts.get(found.url, ""))]
    return max(listing, key=lambda found: found.updated, default=None)


def prices(name: str, notes: Notes) -> tuple[dict[str, str], list[Found]]:
    """A company's prices by plan, and where they were read; what is newer counts more."""
    sources = sorted(
        (found for found in _price_sources(name, notes) if _OFFER.search(notes.texts[found.url])),
        key=lambda found: found.updated,
    )
    return {plan: usd for found in sources for plan, usd in _OFFER.findall(notes.texts[found.url])}, sources


def _note(notes: Notes, tool: str, arguments: Mapping[str, Any], output: Mapping[str, Any]) -> None:
    if tool == _SEARCH:
        keys = ("title", "url", "kind", "updated")
        notes.results[arguments["q"]] = [Found(*(entry[key] for key in keys)) for entry in output.get("results", ())]
    else:
        notes.texts[arguments["url"]] = output.get("text", "")


def _compare(overview: str, notes: Notes) -> Step | None:
    """Find out who the competitors are; null once that is known."""
    if overview not in notes.results:
        return Step("First I find out who the competitors are.", [(_SEARCH, {"q": overview})])
    unread = [found for found in notes.results[overview][:_OVERVIEWS] if found.url not in notes.texts]
    return Step("I read the comparisons that were found.", list(_reading(unread))) if unread else None


def _look_up(names: Sequence[str], notes: Notes) -> Step | None:
    """Find and read what each company says of its own prices; null once that is done."""
    unasked = [name for name in names if _query(name) not in notes.results]
    if unasked:
        return Step(
            f"Now I look for the prices of {_listed(unasked)}.", [(_SEARCH, {"q": _query(name)}) for name in unasked]
        )
    unread = [found for name in names for found in _price_sources(name, notes) if found.url not in notes.texts]
    return Step("I read the prices where each company names its own.", list(_reading(unread))) if unread else None


def _price_sources(name: str, notes: Notes) -> list[Found]:
    """A company's own pages about prices and its own price lists, the newest first, until one of each names prices."""
    own = [found for found in notes.results[_query(name)] if found.site == name.lower() and _PRICE.search(found.title)]
    own.sort(key=lambda found: found.updated, reverse=True)
    return [found for kind in ("html", "pdf") for found in _until_priced(own, kind, notes)]


def _until_priced(own: Sequence[Found], kind: str, notes: Notes) -> Iterator[Found]:
    for found in own:
        if found.kind != kind:
            continue
        yield found
        if found.url not in notes.texts or _OFFER.search(notes.texts[found.url]):
            return


def _reading(found: Sequence[Found]) -> Iterator[tuple[str, Mapping[str, str]]]:
    for entry in found:
        yield (_EXTRACT if entry.kind == "pdf" else _SCRAPE), {"url": entry.url}


def _conclude(names: Sequence[str], overview: Found | None, notes: Notes) -> str:
    findings: list[str] = []
    sources = [overview] if overview else []
    for name in names:
        offers, read = prices(name, notes)
        sources += read
        listed = ", ".join(f"{plan} ${usd}" for plan, usd in offers.items())
        findings.append(f"{name}: {listed} per month." if offers else f"{name}: no prices on the pages that I read.")
    if not names:
        return _report("No page that I read names competitors.", [], sources)
    return _report(f"I compared the current monthly prices of {_listed(names)}.", findings, sources)


def _report(text: str, findings: Sequence[str], sources: Sequence[Found]) -> str:
    named = [{"title": found.title, "url": found.url} for found in sources]
    return json.dumps({"answer": text, "findings": list(findings), "sources": named})


def _query(name: str) -> str:
    return f"{name} pricing"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
