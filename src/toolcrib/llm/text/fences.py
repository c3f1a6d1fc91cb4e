"""Finds fenced blocks in a model's text, as CommonMark defines them.

It handles lines and fences only, and recognises calls in formats of other models by their first line. The content of a
`tool` block is left to the parser, because a fence inside a string does not end it. All patterns are possessive, so
that no line is read twice.
"""

import re
from typing import NamedTuple

TOOL = "tool"
"""The info string of a block of calls, in any case."""

_MARGIN = r"[ \t]*+(?:>[ \t]*+|(?:[-*+]|[0-9]{1,9}[.)])[ \t]++)*+"
_OPENING = re.compile(rf"^({_MARGIN})(`{{3,16}}+|~{{3,16}}+)[ \t]*+([\w+.#-]*+)([^\n]*+)", re.MULTILINE)
CLOSING = re.compile(r"^[ \t>]*+(`{3,16}+|~{3,16}+)[ \t\r]*+$", re.MULTILINE)
"""A fence on a line of its own."""
_QUOTED_CLOSING = re.compile(r"^(?:(?![ \t]*+>)|[ \t>]*+(`{3,16}+|~{3,16}+)[ \t\r]*+$)", re.MULTILINE)
_NOT_QUOTED = re.compile(r"^(?![ \t]*+>)", re.MULTILINE)
_FENCE = re.compile(rf"{_MARGIN}(?:```|~~~)")
_MAY_BE_FENCE = re.compile(rf"{_MARGIN}(?:`{{1,2}}|~{{1,2}}|[-*+]|[0-9]{{1,9}}[.)]?)?+")
_LINE = re.compile(r"[^\n]*+\n|[^\n]++")

_THINKS = re.compile(r"\s*+<think(?:ing)?>")
_THOUGHT = re.compile(r"</think(?:ing)?>")
_THOUGHT_ALONE = re.compile(r"^[ \t]*+</think(?:ing)?>", re.MULTILINE)


_FOREIGN = re.compile(
    r"""^[ \t>]*+(
        <(?:tool_?calls?|function_?calls?|tool_use)(?=[\s>])[^>\n]*+>?
        |<(?:function|invoke)(?:=|\s+name=)[^>\n]*+>?
        |<\|(?:tool_call|python_tag)[^>\n]*+>
        |<\uff5ctool\u2581calls\u2581begin\uff5c>
        |\[TOOL_CALLS?\]
    )""",
    re.MULTILINE | re.VERBOSE | re.IGNORECASE,
)
_FOREIGN_FENCES = frozenset({"tool_call", "tool_calls", "tool_code", "tool_use", "function_call", "function_calls"})


class Opening(NamedTuple):
    """The line that opens a block."""

    start: int
    """Offset of the line."""
    margin: str
    """What stands before the fence: indentation, and the marks of lists and quotations."""
    fence: str
    info: str
    body: int
    """Offset of what follows the info string."""

    @property
    def is_tool(self) -> bool:
        """Whether calls stand in the block."""
        return self.info.lower() == TOOL

    def quotation_end(self, text: str) -> int:
        """Where the quotation ends that the block is in; the end of the text if it is in none."""
        line = text.find("\n", self.body)
        if ">" not in self.margin or line < 0:
            return len(text)
        end = _NOT_QUOTED.search(text, line + 1)
        return end.start() if end else len(text)

    def closes(self, fence: str) -> bool:
        """Whether a fence on a line of its own closes the block."""
        return fence[0] == self.fence[0] and len(fence) >= len(self.fence)

    def closing(self, text: str) -> int | None:
        """Where the block ends by its lines alone: behind the first fence that closes it, or with its quotation."""
        line = text.find("\n", self.body)
        for found in (_QUOTED_CLOSING if ">" in self.margin else CLOSING).finditer(text, line + 1 or len(text)):
            if not found[1]:
                return found.start() if found.start() < len(text) else None
            if self.closes(found[1]):
                return found.end()
        return None


def opening_at(text: str, line: int) -> Opening | None:
    """The opening of a block in the line that begins at an offset, whatever stands before it."""
    found = _OPENING.match(text, line)
    if found is None:
        return None
    opening = Opening(found.start(), found[1], found[2], found[3], found.end(3))
    return None if _is_inline(opening, found[4]) else opening


def first_opening(text: str, position: int = 0) -> Opening | None:
    """The first of them from an offset on."""
    lines = (opening_at(text, found.start()) for found in _OPENING.finditer(text, position))
    return next(filter(None, lines), None)


def thought_until(text: str) -> int:
    """Where a model has thought aloud in its words, as its template has it, and what it means to say begins.

    Templates that begin the thought themselves leave only its end in the answer. A thought without an end is all of it.
    """
    if begun := _THINKS.match(text):
        end = _THOUGHT.search(text, begun.end())
        return end.end() if end else len(text)
    end = _THOUGHT_ALONE.search(text)
    return end.end() if end and "<think" not in text[: end.start()] else 0


def foreign_call(text: str) -> str | None:
    """The mark of a call that a model has written in words, in a format that nobody reads here; null if there is none.

    Code in fences is an example of something, unless the fence itself says that it is a call.

    Args:
        text: An answer that calls nothing.
    """
    position = thought_until(text)
    while position < len(text):
        opening = first_opening(text, position)
        mark = _FOREIGN.search(text, position, len(text) if opening is None else opening.start)
        if mark is not None:
            return mark[1]
        if opening is None:
            break
        if opening.info.lower() in _FOREIGN_FENCES:
            return f"{opening.fence}{opening.info}"
        position = opening.closing(text) or len(text)
    return None


class Prose:
    """What of an answer may be shown while it is still being written: everything before its first block of calls."""

    def __init__(self) -> None:
        self.length = 0
        """Characters that were shown so far."""
        self._held: list[str] = []
        """The unfinished line, as long as it may open or close a block."""
        self._is_plain = False
        """Whether the unfinished line does neither, and is shown as it comes."""
        self._is_fence = False
        self._block: Opening | None = None
        """The block of another kind that is open."""
        self._is_over = False

    def feed(self, written: str) -> str:
        """More of the answer; what of it may be shown now."""
        added = "".join(map(self._piece, _LINE.findall(written)))
        self.length += len(added)
        return added

    def _piece(self, piece: str) -> str:
        """A piece of one line, with its end if that has come."""
        if self._is_over:
            return ""
        is_whole = piece.endswith("\n")
        if self._is_plain:
            self._is_plain = not is_whole
            return piece
        self._held.append(piece)
        if is_whole:
            return self._finish_line(self._take())
        if self._is_fence:
            return ""
        line = "".join(self._held)
        self._is_fence = _FENCE.match(line) is not None
        if self._is_fence or _MAY_BE_FENCE.fullmatch(line):
            return ""
        self._is_plain = True
        self._leave_quotation(line)
        return self._take()

    def _take(self) -> str:
        line, self._held, self._is_fence = "".join(self._held), [], False
        return line

    def _finish_line(self, line: str) -> str:
        self._leave_quotation(line)
        if self._block is None:
            self._block = first_opening(line)
            self._is_over = self._block is not None and self._block.is_tool
            return "" if self._is_over else line
        closing = CLOSING.match(line)
        if closing and self._block.closes(closing[1]):
            self._block = None
        return line

    def _leave_quotation(self, line: str) -> None:
        if self._block is not None and ">" in self._block.margin and _NOT_QUOTED.match(line):
            self._block = None


def _is_inline(opening: Opening, rest: str) -> bool:
    """Whether a line begins with a piece of code rather than with a fence."""
    if opening.fence[0] != "`" or "`" not in rest:
        return False
    return not opening.is_tool or rest.lstrip().startswith("```")
