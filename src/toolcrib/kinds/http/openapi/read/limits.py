"""Bounds of a document: bytes, depth and number of values. No honest document meets them."""

from dataclasses import dataclass
from typing import Final

from toolcrib.contracts import InvalidDefinition

MAX_BYTES: Final = 40_000_000
MAX_DEPTH: Final = 100
"""Levels; less than canonical JSON takes, so that whatever is read can be stored."""
MAX_VALUES: Final = 4_000_000
MAX_OPERATIONS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Bounds:
    """How large a document may be, each document that it refers to included."""

    max_bytes: int = MAX_BYTES
    max_depth: int = MAX_DEPTH
    max_values: int = MAX_VALUES
    """Objects, arrays and scalars, YAML aliases expanded."""

    def check_bytes(self, size: int) -> None:
        """Refuse a text that is too long."""
        if size > self.max_bytes:
            raise InvalidDefinition(
                f"the OpenAPI document has {size} bytes, the limit is {self.max_bytes}; split it, or raise max_bytes"
            )

    def check_depth(self, depth: int) -> None:
        """Refuse nesting that is too deep."""
        if depth > self.max_depth:
            raise InvalidDefinition(
                f"the OpenAPI document nests deeper than {self.max_depth} levels; use $ref instead of nesting, "
                "and check it for YAML aliases that contain themselves"
            )

    def check_values(self, count: int) -> None:
        """Refuse a document of too many values."""
        if count > self.max_values:
            raise InvalidDefinition(
                f"the OpenAPI document expands to more than {self.max_values} values; write it without nested YAML "
                "aliases, or raise max_values"
            )
