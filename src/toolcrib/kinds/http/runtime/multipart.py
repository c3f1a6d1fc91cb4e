"""`multipart/form-data` and its relatives (RFC 7578, RFC 2046): parts to bytes.

Names are escaped as browsers do it (WHATWG HTML, multipart/form-data encoding algorithm), so no name and no filename
can end a header. The boundary is derived from the content: the same parts always make the same bytes.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

_ESCAPED: Final = re.compile(r'[\x00-\x1f\x7f"]')
_BOUNDARY: Final = re.compile(r"\s*;\s*boundary=(\"[^\"]*\"|[^;\s]*)", re.IGNORECASE)
_FORM_DATA: Final = "multipart/form-data"


class Part(NamedTuple):
    """One part; texts are encoded already."""

    name: str
    data: bytes
    content_type: str | None
    """Null for plain text in UTF-8, which needs no header."""
    filename: str | None
    headers: Mapping[str, str]


def write_multipart(content_type: str, parts: Sequence[Part]) -> tuple[str, bytes]:
    """Content type with its boundary, and the body. Only `form-data` names its parts."""
    named = content_type.lower().startswith(_FORM_DATA)
    heads = [_head(part, named=named) for part in parts]
    boundary = _boundary(heads, parts)
    pieces = [b"--%b\r\n%b\r\n%b\r\n" % (boundary, head, part.data) for head, part in zip(heads, parts, strict=True)]
    kind = _BOUNDARY.sub("", content_type)
    return f"{kind}; boundary={boundary.decode()}", b"".join([*pieces, b"--%b--\r\n" % boundary])


def _head(part: Part, *, named: bool) -> bytes:
    lines: list[str] = []
    if named:
        filename = "" if part.filename is None else f'; filename="{_escaped(part.filename)}"'
        lines.append(f'Content-Disposition: form-data; name="{_escaped(part.name)}"{filename}')
    if part.content_type is not None:
        lines.append(f"Content-Type: {_escaped(part.content_type, quotes=False)}")
    lines += [f"{_escaped(name)}: {_escaped(value, quotes=False)}" for name, value in part.headers.items()]
    return "".join(f"{line}\r\n" for line in lines).encode()


def _escaped(value: str, *, quotes: bool = True) -> str:
    """Control characters, and double quotes where they would end a name, as `%XX`."""
    return _ESCAPED.sub(lambda found: found[0] if found[0] == '"' and not quotes else f"%{ord(found[0]):02X}", value)


def _boundary(heads: Sequence[bytes], parts: Sequence[Part]) -> bytes:
    hashed = hashlib.sha256()
    for head, part in zip(heads, parts, strict=True):
        hashed.update(head)
        hashed.update(part.data)
    return b"toolcrib-" + hashed.hexdigest()[:40].encode()
