"""The text of one block for its parser: a position in the whole answer, and what can be skipped.

A block in a quotation or list has marks before each line. They are skipped in place, so that offsets refer to the
answer.
"""

import re

from toolcrib.contracts.base.errors import InvalidInput

_SPACE = re.compile(r"(?:[\s\ufeff]++|//[^\n\r\u2028\u2029]*+|/\*(?:[^*]++|\*(?!/))*+\*/)*+")
_QUOTED_SPACE = re.compile(
    r"(?:\n(?:[ \t]*+>)*+|[^\S\n]++|\ufeff|//[^\n\r\u2028\u2029]*+|/\*(?:[^*]++|\*(?!/))*+\*/)*+"
)
_SHOWN = 40
"""Characters of the answer in a message."""


class Malformed(InvalidInput):
    """A block of calls says something else than calls with literal arguments."""

    code = "malformed_call"

    def __init__(self, message: str, position: int, restart: int | None = None) -> None:
        super().__init__(message)
        self.position = position
        """Offset in the answer."""
        self.restart = position if restart is None else restart
        """Offset where what stands there begins: a string, if it is inside one."""


class BlockSource:
    """A position in an answer.

    Args:
        text: The whole answer.
        position: Offset where the block begins.
        end: Offset where it ends at the latest.
        margin: What stands before the block's fence: indentation, and the marks of lists and quotations.
    """

    def __init__(self, text: str, position: int, end: int, margin: str) -> None:
        self.text = text
        self.position = position
        self.end = end
        self.may_be_strict = True
        """Whether arrays and objects have been strict JSON so far, which is read faster; failing to costs more."""
        quotes = margin.count(">")
        inner = margin.rpartition(">")[2]
        indent = len(inner) - (quotes > 0 and inner.startswith(" "))
        self._space = _QUOTED_SPACE if quotes else _SPACE
        self._margin = re.compile(rf"(?:[ \t]*+>[ ]?){{0,{quotes}}}[ \t]{{0,{indent}}}") if margin else None

    @property
    def is_at_end(self) -> bool:
        """Whether nothing is left."""
        return self.position >= self.end

    @property
    def next(self) -> str:
        """The next character; empty at the end."""
        return "" if self.is_at_end else self.text[self.position]

    def sees(self, expected: str) -> bool:
        """Whether the next characters are these."""
        return self.text.startswith(expected, self.position, self.end)

    def take(self, expected: str) -> bool:
        """Step over these characters, if they are the next."""
        if not self.sees(expected):
            return False
        self.position += len(expected)
        return True

    def look(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """What a pattern finds here, without stepping over it."""
        return pattern.match(self.text, self.position, self.end)

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Step over what a pattern finds here, if it does."""
        found = self.look(pattern)
        if found is not None:
            self.position = found.end()
        return found

    def skip(self) -> bool:
        """Step over white space and comments; whether a line ended there.

        Raises:
            Malformed: A comment does not end.
        """
        start = self.position
        self.match(self._space)
        if self.sees("/*"):
            raise self.refusal("this comment does not end")
        return self.text.find("\n", start, self.position) >= 0

    def skip_margin(self) -> None:
        """Step over what stands before a line because of the block's place; for the start of a line in a string."""
        if self._margin is not None:
            self.match(self._margin)

    def refusal(self, message: str, position: int | None = None, *, within: int | None = None) -> Malformed:
        """The refusal of what stands here, or at another position, and within what begins at a third."""
        return Malformed(message, self.position if position is None else position, within)

    def excerpt(self) -> str:
        """What stands here, for a message."""
        line = self.text[self.position : min(self.position + _SHOWN, self.end)].partition("\n")[0]
        return repr(line) if line else "the end of the line" if not self.is_at_end else "the end of the block"
