"""Where the next page of a search starts: after which object, not after how many.

A position names the last object that was shown (its id, and its sort value if the search is sorted), so objects that
leave or enter the result between two pages never shift the others. The text is opaque to clients but holds no secret.
"""

import base64
import json
from dataclasses import dataclass
from typing import cast

from examples.crm.values import Json, Stored


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last object of a page."""

    digest: str
    """The search to which it belongs; see `Query.digest`."""
    row_id: int
    value: Stored
    """The object's value of the sort property; None also if the search is not sorted."""

    def text(self) -> str:
        """The cursor as clients see it."""
        packed = json.dumps([self.digest, self.row_id, self.value], separators=(",", ":"))
        return base64.urlsafe_b64encode(packed.encode()).decode().rstrip("=")

    @classmethod
    def parse(cls, text: Json, digest: str) -> "Cursor":
        """The cursor that `text` made for the search with this digest.

        Raises:
            ValueError: the text is no cursor, or one of another search.
        """
        problem = "take it unchanged from paging.next.after of the page before"
        try:
            packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)) if isinstance(text, str) else b""
            parts = cast("Json", json.loads(packed))
        except (ValueError, RecursionError):
            raise ValueError(problem) from None
        match parts:
            case [str(made_for), int(row_id), (str() | int() | None) as value] if _storable(row_id) and _storable(
                value
            ):
                if made_for != digest:
                    raise ValueError("it belongs to a search with other filters or another sort; start without it")
                return cls(made_for, row_id, value)
            case _:
                raise ValueError(problem)


def _storable(value: Stored) -> bool:
    """Whether SQLite could hold the value: nothing it never held can come back from a true cursor."""
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return value is None or value.isascii() or value.encode(errors="replace").decode() == value
