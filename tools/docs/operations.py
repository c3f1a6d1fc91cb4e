"""The listing of the REST API: a line for each operation of the OpenAPI document, so that a change is seen in review.

    python -m tools.docs.operations            # writes docs/operations.txt

Each line has the operation's id, method, path and statuses. A test holds the file against the document, and the tests
of the server hold every response against the file.
"""

from functools import cache
from pathlib import Path
from typing import Final

from toolcrib import Crib
from toolcrib.contracts import OWNER, JsonObject, Principal
from toolcrib.interfaces.server import create_app
from toolcrib.interfaces.server.http.document import operations

LISTING: Final = Path("docs/operations.txt")


@cache
def document() -> JsonObject:
    """The OpenAPI document of a server."""
    return create_app(Crib("memory://"), _nobody).openapi()


async def _nobody(_token: str) -> Principal:
    return OWNER


def listing() -> str:
    """The whole file."""
    return "".join(sorted(map(_line, operations(document()))))


def _line(described: tuple[str, str, JsonObject]) -> str:
    method, path, operation = described
    return f"{operation['operationId']} {method.upper()} {path} {' '.join(sorted(operation['responses']))}\n"


if __name__ == "__main__":
    LISTING.write_text(listing(), encoding="utf-8")
