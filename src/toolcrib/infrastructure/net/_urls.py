"""Parses the text of a URL without decoding any percent-encoding.

`%2C` and `,` differ in a query, so characters that RFC 3986 allows are kept, and only others are encoded. Only the
authority is normalized, by yarl. Nothing is checked against a policy here.
"""

import re
from functools import lru_cache
from typing import Final
from urllib.parse import quote, urljoin

from yarl import URL

_PARTS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#.*)?", re.DOTALL)
_ILLEGAL_IN_PATH: Final = re.compile(r"%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9._~!$&'()*+,;=:@/%-]+")
_ILLEGAL_IN_QUERY: Final = re.compile(r"%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9._~!$&'()*+,;=:@/?%\[\]-]+")
"""Brackets are not legal here, but kept by browsers too: `filter[name]=` is what many services document."""


def parse(text: str) -> URL:
    """The URL without its fragment.

    Raises:
        ValueError: It is malformed, or holds a lone surrogate.
    """
    parts = _PARTS.fullmatch(text)
    if parts is None:
        return URL(text)
    origin, path, query = parts.groups()
    tail = "" if query is None else f"?{_ILLEGAL_IN_QUERY.sub(_percent_encode, query)}"
    return URL(f"{_canonical(origin)}{_ILLEGAL_IN_PATH.sub(_percent_encode, path) or '/'}{tail}", encoded=True)


def join(base: URL, reference: str) -> URL:
    """The URL that a reference means, seen from a base (RFC 3986, section 5).

    Raises:
        ValueError: As `parse`.
    """
    return parse(urljoin(str(base), reference))


@lru_cache(256)
def _canonical(origin: str) -> str:
    """Scheme and host in lower case, an international host name as IDNA, user information kept.

    What does not mean the same when it is read again is malformed: nobody else may read another host there.
    """
    url = URL(origin)
    canonical = f"{url.scheme}://{url.raw_authority}"
    again = URL(canonical, encoded=True)
    if (again.raw_user, again.raw_host, again.port) != (url.raw_user, url.raw_host, url.port):
        raise ValueError("the authority can be read in two ways")
    return canonical


def _percent_encode(illegal: re.Match[str]) -> str:
    return quote(illegal[0], safe="")
