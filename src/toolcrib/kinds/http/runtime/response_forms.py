"""Converts a 2xx response to the form that the tool declares in `HttpImplementation.response`.

CSV and TSV (RFC 4180) become columns and rows of strings. HTML is parsed by the program `page` in a separate process
with a time limit. JSON is read by `answers`. Nothing is sent or stored here.
"""

import asyncio
import contextlib
import csv
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple, assert_never, cast

import orjson

from toolcrib.contracts import AttachmentKind, InvalidSettings, Json, JsonObject
from toolcrib.contracts.base.errors import missing_extra
from toolcrib.infrastructure.net import HttpResponse
from toolcrib.kinds.http.runtime.media import decode_text, is_json, media_type
from toolcrib.kinds.http.runtime.response_bodies import BadBody, content_type, read_body
from toolcrib.kinds.http.shape import HttpImplementation, ResponseForm

__all__ = [
    "FormattedContent",
    "OversizedPayload",
    "check_form",
    "read_as",
]


MAX_COLUMNS: Final = 1_000

_DELIMITERS: Final = ",;\t|"
_SAMPLE: Final = 8_192


def read_delimited(text: str, *, tabs: bool = False) -> JsonObject:
    """A table: `{columns, rows}`. The first line names the columns; the delimiter is the one that fits the first lines.

    Args:
        text: All of it.
        tabs: Whether the delimiter is known to be a tab.

    Raises:
        ValueError: It is not valid CSV: a field is not closed, or there are too many columns.
    """
    lines = text.splitlines(keepends=True)
    delimiter = "\t" if tabs else _delimiter(text[:_SAMPLE])
    try:
        rows = [row for row in csv.reader(lines, delimiter=delimiter, strict=True) if row]
    except csv.Error as problem:
        raise ValueError(f"it is no table of delimited text: {problem}") from None
    width = max(map(len, rows), default=0)
    if width > MAX_COLUMNS:
        raise ValueError(f"it has {width} columns, and {MAX_COLUMNS} is the most")
    if not rows:
        return {"columns": [], "rows": []}
    columns = [name or f"column {number}" for number, name in enumerate(_pad_row(rows[0], width), 1)]
    return {"columns": columns, "rows": [_pad_row(row, width) for row in rows[1:]]}


def _pad_row(row: list[str], width: int) -> list[str]:
    return [*row, *[""] * (width - len(row))]


def _delimiter(sample: str) -> str:
    """The delimiter with the same number of occurrences in most of the first lines; the comma if there is none."""
    lines = [line for line in sample.splitlines()[:20] if line.strip()]
    counts = {mark: [line.count(mark) for line in lines] for mark in _DELIMITERS}
    return max(_DELIMITERS, key=lambda mark: _evenness(counts[mark]))


def _evenness(counts: list[int]) -> tuple[int, int]:
    first = counts[0] if counts else 0
    return (sum(count == first for count in counts) if first else 0, first)


MAX_HTML: Final = 2 * 2**20
"""Characters of a page that are read; what follows is left out."""

_LIMIT_S: Final = 10.0
PROGRAM: Final = str(Path(__file__).with_name("html_page.py"))


class Unreadable(ValueError):
    """The page could not be read within the limits."""


def check_reader() -> None:
    """Check that the HTML parser is installed.

    Raises:
        InvalidSettings: Names the extra to install.
    """
    if find_spec("selectolax") is None:
        raise InvalidSettings(missing_extra("a readable HTML page", "selectolax", "web"))


async def read_html(html: str, url: str) -> JsonObject:
    """What a reader sees of a page; see `page.read_page`.

    Raises:
        Unreadable: It took too long or too much memory.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        PROGRAM,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
    )
    text = f"{url}\n{html[:MAX_HTML]}".encode(errors="replace")
    try:
        async with asyncio.timeout(_LIMIT_S):
            answer, _ = await process.communicate(text)
    except TimeoutError:
        raise Unreadable(f"the page ({len(html)} characters) could not be read within {_LIMIT_S:g} s") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    if process.returncode:
        raise Unreadable(f"the page ({len(html)} characters) could not be read within the limits of time and memory")
    return orjson.loads(answer)


SHOWN_ROWS: Final = 50
"""Maximum number of a table's rows in the output; a larger table is also a complete attachment."""

_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_CSV: Final = frozenset({"text/csv", "application/csv", "text/comma-separated-values"})
_TSV: Final = frozenset({"text/tab-separated-values", "text/tsv"})
_MARKUP: Final = re.compile(
    rb"(\xef\xbb\xbf)?\s*(<!--.{0,500}?-->\s*)?<(!doctype\s+html|html|head|body)[\s>]", re.I | re.S
)
_MAGIC: Final = re.compile(
    rb"%PDF-|\x89PNG|GIF8[79]a|\xff\xd8\xff|PK\x03\x04|\x1f\x8b|Rar!|7z\xbc\xaf|RIFF....WEBP", re.S
)
_WIDE: Final = (b"\xff\xfe", b"\xfe\xff")
_SNIFFED: Final = 1_024
_BYTES: Final = "application/octet-stream"


class OversizedPayload(NamedTuple):
    """A payload that is too much for the output."""

    kind: AttachmentKind
    data: bytes
    content_type: str


class FormattedContent(NamedTuple):
    """What an answer says."""

    output: Json | bytes
    """JSON, or the bytes themselves."""
    kept: tuple[OversizedPayload, ...] = ()
    warnings: tuple[str, ...] = ()


def check_form(implementation: HttpImplementation) -> None:
    """Refuse a form that this process cannot read, before anything is sent.

    Raises:
        InvalidSettings: Names the extra to install.
    """
    if implementation.response in {"html", "readable"}:
        check_reader()


async def read_as(form: ResponseForm, response: HttpResponse, *, as_text: bool = False) -> FormattedContent:
    """The body in a form.

    Args:
        form: What is wanted.
        response: The response.
        as_text: For `auto`, whether text is text, also if it looks like JSON.

    Raises:
        BadBody: It has not that form.
    """
    if not response.body:
        return FormattedContent(None)
    match form:
        case "auto":
            return FormattedContent(read_body(response, as_text=as_text))
        case "readable":
            return await _readable(response)
        case "json":
            return FormattedContent(_json(response))
        case "text":
            return FormattedContent(_text(response))
        case "html":
            return await _page(response)
        case "table":
            return _table(response)
        case "bytes":
            return FormattedContent(response.body)
        case _:
            assert_never(form)


async def _readable(response: HttpResponse) -> FormattedContent:
    """Read a response by its declared content type, unless that is clearly wrong."""
    declared, found = content_type(response), _kind_of(response)
    warnings = (
        () if found == declared else (f"the answer says it is {declared}, but it is {found}, and was read as that",)
    )
    if found in _HTML:
        reading = await _page(response)
    elif found in _CSV | _TSV:
        reading = _table(response)
    elif found != declared or _MAGIC.match(response.body):
        reading = FormattedContent(response.body)
    else:
        reading = FormattedContent(read_body(response))
    return reading._replace(warnings=(*warnings, *reading.warnings))


def _kind_of(response: HttpResponse) -> str:
    """The media type, corrected where the bytes plainly contradict it."""
    declared, body = content_type(response), response.body
    if declared not in _HTML and _MARKUP.match(body):
        return "text/html"
    textual = declared.startswith("text/") or is_json(declared)
    binary = _MAGIC.match(body) or (b"\0" in body[:_SNIFFED] and not body.startswith(_WIDE))
    return _BYTES if textual and binary else declared


async def _page(response: HttpResponse) -> FormattedContent:
    try:
        page = await read_html(_decode_body(response, declares=True), response.url)
    except Unreadable as problem:
        raise BadBody(str(problem)) from None
    tables = cast("list[JsonObject]", page["tables"])
    kept = [_table_payload(table) for table in tables if len(table["rows"]) > SHOWN_ROWS]
    return FormattedContent({**page, "tables": [_preview_table(table) for table in tables]}, tuple(kept))


def _table(response: HttpResponse) -> FormattedContent:
    try:
        table = read_delimited(_decode_body(response), tabs=content_type(response) in _TSV)
    except ValueError as problem:
        raise BadBody(str(problem)) from None
    return FormattedContent(_preview_table(table), (_table_payload(table),) if len(table["rows"]) > SHOWN_ROWS else ())


def _preview_table(table: JsonObject) -> JsonObject:
    rows = table["rows"]
    return {**table, "rows": rows[:SHOWN_ROWS], "row_count": len(rows)}


def _table_payload(table: JsonObject) -> OversizedPayload:
    return OversizedPayload(
        "table", orjson.dumps({"columns": table["columns"], "rows": table["rows"]}), "application/json"
    )


def _json(response: HttpResponse) -> Json:
    try:
        return orjson.loads(_decode_body(response).removeprefix("\ufeff"))
    except orjson.JSONDecodeError as problem:
        raise BadBody(f"the answer is no JSON: {problem}") from None


def _text(response: HttpResponse) -> str:
    if _kind_of(response) == _BYTES or _MAGIC.match(response.body):
        raise BadBody(f"the answer is {content_type(response)} of {len(response.body)} bytes, and no text")
    return _decode_body(response, declares=True)


def _decode_body(response: HttpResponse, *, declares: bool = False) -> str:
    charset = media_type(response.headers.get("content-type") or _BYTES).charset
    return decode_text(response.body, charset, declares=declares)
