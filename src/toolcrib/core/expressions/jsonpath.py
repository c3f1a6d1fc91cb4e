"""JSONPath (RFC 9535) for mappings: the location of data, of the next cursor, and of lists of choices.

The `jsonpath-rfc9535` library parses; `queries` evaluates and counts every step, because a short path such as
`$..*..*..*` can multiply with the document. `match()` and `search()` are refused, because their patterns would run in
a backtracking engine. The library loads when the first path is compiled.
"""

from functools import lru_cache
from typing import TYPE_CHECKING

from toolcrib.contracts import Json
from toolcrib.contracts.base.errors import InvalidExpression

if TYPE_CHECKING:
    from toolcrib.core.expressions.queries import Query

MAX_PATH = 1_000
"""Characters of a path."""

MAX_FILTER_PARTS = 50
"""Of the signs `( ! ? &&` and `||` together, wherever they stand: what the parser recurses on."""

_CACHED = 512
_SIGNS = ("(", "!", "?", "&&", "||")


def select(path: str, document: Json) -> list[Json]:
    """The values that the path selects, in the document's order; empty if there are none.

    They are parts of the document: do not modify them.

    Raises:
        InvalidExpression: The path is not well formed, too large, uses a regular expression, or touches more than
            1,000,000 parts of the document.
    """
    return _compile(path).select(document)


def select_one(path: str, document: Json) -> Json:
    """The first value that the path selects, null if there is none; `select` tells that from a null in the document.

    Raises:
        InvalidExpression: As `select`.
    """
    return next(iter(select(path, document)), None)


def check_path(path: str) -> None:
    """Check a path when it is defined.

    Raises:
        InvalidExpression: It is not well formed, too large, or uses a regular expression.
    """
    _compile(path)


@lru_cache(_CACHED)
def _compile(path: str) -> "Query":
    if len(path) > MAX_PATH:
        raise InvalidExpression(f"JSONPath has {len(path):,} characters; at most {MAX_PATH:,} are allowed")
    if sum(map(path.count, _SIGNS)) > MAX_FILTER_PARTS:
        raise InvalidExpression(
            f"JSONPath has more than {MAX_FILTER_PARTS} of the signs {' '.join(_SIGNS)}; simplify it"
        )
    from toolcrib.core.expressions.queries import Query  # noqa: PLC0415 - the parser and its regex engine take 0.1 s to load

    return Query.parse(path)
