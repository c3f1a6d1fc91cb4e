"""The origin of a URL (RFC 6454), parsed strictly, so that no two parsers can disagree about the host."""

import re
from typing import Final, TypeAlias

Origin: TypeAlias = tuple[str, str, int]
"""Scheme, host and port, in lower case."""

_URL: Final = re.compile(
    r"(https?|grpcs?)://([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?(?:[/?#].*)?", re.IGNORECASE | re.DOTALL
)
_PORTS: Final = {"http": 80, "https": 443, "grpc": 80, "grpcs": 443}


def origin_of(url: str) -> Origin | None:
    """The origin; null if the URL is not plainly one of HTTP or gRPC."""
    match = _URL.fullmatch(url)
    if match is None:
        return None
    scheme, host, port = match[1].lower(), match[2].lower(), match[3]
    return scheme, host, int(port) if port else _PORTS[scheme]
