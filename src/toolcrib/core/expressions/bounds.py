"""What one expression may cost: the limits of its source, of the values it makes and of the work it does.

Limits of the source are checked once, when it is compiled; the others while it is evaluated. Nothing here knows syntax.
"""

from dataclasses import dataclass

from toolcrib.contracts.base.errors import InvalidExpression

MAX_SOURCE = 2_000
"""Characters of one expression."""

MAX_NODES = 300
"""Nodes of one syntax tree."""

MAX_DEPTH = 40
"""Levels of one syntax tree, and of the parser's recursion."""

MAX_STRING = 262_144
"""Characters of a string that an expression or a template makes."""

MAX_LIST = 100_000
"""Elements of a list that an expression makes; for projections, of all `[*]` of one path together."""

MAX_INTEGER = 2**63
"""The largest magnitude of an integer that an expression makes."""

MAX_WORK = 1_000_000
"""List elements and object members that one evaluation may touch."""


@dataclass(slots=True)
class Work:
    """Counts the elements that one evaluation touches, and stops it at the limit."""

    remaining: int = MAX_WORK

    def charge(self, elements: int) -> None:
        """Count elements that are about to be touched.

        Raises:
            InvalidExpression: The evaluation would touch more than `MAX_WORK`.
        """
        self.remaining -= elements
        if self.remaining < 0:
            raise InvalidExpression(
                f"evaluation touches more than {MAX_WORK:,} list elements and object members; select less data first"
            )
