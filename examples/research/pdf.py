"""Writes a plain PDF file: lines of text on A4 pages, in one built-in font. It can draw nothing else.

The format is that of ISO 32000-1, sections 7.3 to 7.5: numbered objects, a table of their offsets, a trailer.
"""

from collections.abc import Sequence
from typing import Final

LINES_PER_PAGE: Final = 45

_CATALOG, _PAGES, _FONT, _INFO, _FIRST_PAGE = 1, 2, 3, 4, 5


def write_pdf(title: str, lines: Sequence[str]) -> bytes:
    """A PDF file with this text; characters outside of Latin-1 become question marks.

    Args:
        title: Shown by readers as the document's title.
        lines: One per line of a page.
    """
    pages = [lines[start : start + LINES_PER_PAGE] for start in range(0, max(len(lines), 1), LINES_PER_PAGE)]
    numbers = range(_FIRST_PAGE, _FIRST_PAGE + 2 * len(pages), 2)
    kids = b" ".join(b"%d 0 R" % number for number in numbers)
    objects = [
        b"<< /Type /Catalog /Pages %d 0 R >>" % _PAGES,
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(pages)),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        b"<< /Title %s >>" % _text(title),
    ]
    for number, page in zip(numbers, pages, strict=True):
        objects += [_page(content=number + 1), _stream(page)]
    return _file(objects)


def _page(*, content: int) -> bytes:
    resources = b"<< /Font << /F1 %d 0 R >> >>" % _FONT
    return b"<< /Type /Page /Parent %d 0 R /MediaBox [0 0 595 842] /Resources %s /Contents %d 0 R >>" % (
        _PAGES,
        resources,
        content,
    )


def _stream(lines: Sequence[str]) -> bytes:
    shown = b"\n".join(_text(line) + b" Tj T*" for line in lines)
    content = b"BT /F1 11 Tf 16 TL 56 786 Td\n%s\nET" % shown
    return b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content)


def _text(text: str) -> bytes:
    """A literal string."""
    escaped = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return b"(%s)" % escaped.encode("latin-1", "replace")


def _file(objects: Sequence[bytes]) -> bytes:
    written = bytearray(b"%PDF-1.4\n")
    offsets: list[int] = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(written))
        written += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(written)
    written += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    written += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    written += b"trailer\n<< /Size %d /Root %d 0 R /Info %d 0 R >>\n" % (len(objects) + 1, _CATALOG, _INFO)
    return bytes(written) + b"startxref\n%d\n%%%%EOF\n" % start
