"""Parses the calls in a model's answer: fenced `tool` blocks of `return name(literal, …);`, by recursive descent.

Nothing is evaluated, guessed or repaired, and time is linear in the answer. Anything but a call with literal arguments
makes its block malformed, with one problem by line and column. Text in other fences is not a call.

After a malformed block, parsing continues only if the block's end is certain, because a fence may be inside an
unclosed string. Two readings must agree: the block's lines, and its strings from the point where parsing failed, each
on one line.
"""

import re
from dataclasses import dataclass
from typing import Final

from toolcrib.contracts import Json
from toolcrib.llm.text.block_source import BlockSource
from toolcrib.llm.text.fences import CLOSING, Opening, first_opening, opening_at, thought_until
from toolcrib.llm.text.literals import UNDEFINED, Malformed, Undefined, separator, value

_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\\n]++|\\.)*+"|'(?:[^'\\\n]++|\\.)*+'|`(?:[^`\\\n]++|\\.)++`
        |\u201c(?:[^\u201d\\\n]++|\\.)*+\u201d|\u2018(?:[^\u2019\\\n]++|\\.)*+\u2019)
    |(?P<comment>//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/)
    |(?P<quote>["'`\u201c\u2018]|/\*)
    |(?P<line>\n)
    |[^"'`\u201c\u2018/\n]++|/""",
    re.VERBOSE,
)
_NOWHERE = -1
_BEFORE = frozenset("([{,:=+ \t\n>")
_QUOTES = tuple("\"'`\u201d\u2019")
_AFTER = frozenset(")]},:;+ \t\r\n")


def certain_end(text: str, opening: Opening, restart: int, until: int) -> int | None:
    """The offset behind a malformed block; null if it is not certain.

    Args:
        text: The whole answer.
        opening: The block's first line.
        restart: Offset of what could not be read, where no string is open.
        until: Where the block's quotation ends, or the text.
    """
    by_lines = opening.closing(text)
    if by_lines is None or by_lines < restart or text[opening.body : restart].rstrip()[-1:] in _QUOTES:
        return None
    return by_lines if _end_by_strings(text, opening, restart, until) == by_lines else None


def _end_by_strings(text: str, opening: Opening, restart: int, until: int) -> int:
    position = restart
    while (token := _TOKEN.match(text, position, until)) is not None:
        position = token.end()
        match token.lastgroup:
            case "quote":
                return _NOWHERE
            case "string" if not _stands_apart(text, token):
                return _NOWHERE
            case "line" if (closing := CLOSING.match(text, position, until)) and opening.closes(closing[1]):
                return closing.end()
            case _:
                pass
    return until


def _stands_apart(text: str, string: re.Match[str]) -> bool:
    """Whether a string has around it what values have around them."""
    before, after = text[string.start() - 1], text[string.end() : string.end() + 1]
    return before in _BEFORE and (not after or after in _AFTER)


MOST_CALLS: Final = 256
"""Calls in one answer; a block that has more is malformed, and so is what follows that many."""
_TOO_MANY = f"an answer may have at most {MOST_CALLS} calls; the rest was not read"

_NAME = r"(?:[^\W\d]|\$)[\w$]*+"
_WORD = re.compile(_NAME)
_DOTTED = re.compile(rf"{_NAME}(?:\s*+\.\s*+{_NAME})*+")
_DECLARATION = re.compile(rf"(?:const|let|var)\s++({_NAME})\s*+(?::[^=\n;]*+)?+=(?![=>])")
_RETURN = re.compile(r"return(?![\w$])")
_AWAIT = re.compile(r"await(?![\w$])")
_NAMED = re.compile(rf"({_NAME})\s*+(?::|=(?![=>]))")
_GENERIC = re.compile(r"<(?:[^<>()\n]++|<[^<>()\n]*+>)*+>")
_FENCE = re.compile(r"`{3,16}+|~{3,16}+")
_TO_LINE_END = re.compile(r"[^\S\n]*+(?:\n|\Z)")
_KEYWORDS = frozenset(
    {
        "async",
        "class",
        "delete",
        "do",
        "for",
        "function",
        "if",
        "new",
        "throw",
        "try",
        "typeof",
        "void",
        "while",
        "yield",
    }
)


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as it was written."""

    name: str
    arguments: tuple[Json | Undefined, ...]
    """By position; `UNDEFINED` stands for what was left out by word."""
    named: dict[str, Json | Undefined]
    start: int
    """Offset in the answer."""
    end: int
    raw: str
    """The same, as text."""


@dataclass(frozen=True, slots=True)
class BlockProblem:
    """Why a block is malformed."""

    message: str
    line: int
    """In the answer, from 1."""
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.message}"


@dataclass(frozen=True, slots=True)
class Block:
    """A `tool` block of an answer."""

    start: int
    """Offset of its first line."""
    end: int
    calls: tuple[WrittenCall, ...]
    problem: BlockProblem | None = None
    """Null if the block is well-formed."""
    is_closed: bool = True
    """Whether its end was written; an answer that was cut off may hold a whole call all the same."""


def parse(text: str) -> tuple[Block, ...]:
    """The `tool` blocks of an answer, in order. What it has only thought of calling is none.

    Args:
        text: The answer's words.
    """
    blocks: list[Block] = []
    calls = quoted_until = 0
    position = thought_until(text)
    while (opening := first_opening(text, position)) is not None:
        if opening.start >= quoted_until and ">" in opening.margin:
            quoted_until = opening.quotation_end(text)
        if not opening.is_tool:
            end = opening.closing(text)
        elif calls >= MOST_CALLS:
            blocks.append(Block(opening.start, len(text), (), problem_at(text, opening.start, _TOO_MANY)))
            end = None
        else:
            until = quoted_until if ">" in opening.margin else len(text)
            blocks.append(_Reader(text, opening, until, most=MOST_CALLS - calls).block())
            calls += max(1, len(blocks[-1].calls))
            end = blocks[-1].end
        if end is None:
            break
        position = end
    return tuple(blocks)


def problem_at(text: str, position: int, message: str) -> BlockProblem:
    """A problem with its line and column.

    Args:
        text: The whole answer.
        position: Offset in it.
        message: What is wrong, and what to write instead.
    """
    return BlockProblem(message, text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position))


class _Reader:
    """Reads one block."""

    def __init__(self, text: str, opening: Opening, until: int, *, most: int) -> None:
        self._text = text
        self._opening = opening
        self._most = most
        self._source = BlockSource(text, opening.body, until, opening.margin)
        self._calls: list[WrittenCall] = []
        self._declared: set[str] = set()
        self._is_closed = True

    def block(self) -> Block:
        """The block, well-formed or not."""
        start = self._opening.start
        try:
            while not self._ends():
                self._statement()
        except Malformed as malformed:
            return self._block_with_problem(malformed)
        if not self._calls:
            problem = problem_at(self._text, start, "this block has no call")
            return Block(start, self._source.position, (), problem, is_closed=self._is_closed)
        return Block(start, self._source.position, tuple(self._calls), is_closed=self._is_closed)

    def _block_with_problem(self, malformed: Malformed) -> Block:
        end = certain_end(self._text, self._opening, malformed.restart, self._source.end)
        message = str(malformed)
        if end is None:
            message += " (what follows was not read, since it is not certain where this block ends)"
        problem = problem_at(self._text, malformed.position, message)
        whole = len(self._text) if end is None else end
        return Block(self._opening.start, whole, (), problem, is_closed=end is not None)

    def _ends(self) -> bool:
        """Whether the block ends here: with a fence where a statement could begin, or with the text."""
        source = self._source
        source.skip()
        if source.is_at_end:
            self._is_closed = source.end < len(self._text)
            return True
        found = source.look(_FENCE)
        if found is None or found[0][0] != self._opening.fence[0]:
            return False
        following = BlockSource(self._text, found.end(), source.end, "")
        if following.look(_TO_LINE_END):
            source.position = found.end()
        elif not self._opens_next(found.start()):
            raise source.refusal("a fence that ends a block must stand alone on its line")
        return True

    def _opens_next(self, position: int) -> bool:
        """Whether a fence begins the next block of calls, so that the one before needs no end of its own."""
        following = opening_at(self._text, self._text.rfind("\n", 0, position) + 1)
        return following is not None and following.is_tool

    def _statement(self) -> None:
        source = self._source
        if source.take(";"):
            return
        start = source.position
        returns = source.match(_RETURN) is not None
        declaration = None if returns else source.match(_DECLARATION)
        source.skip()
        if returns and self._returns_declared():
            return
        if declaration is not None:
            self._declared.add(declaration[1])
        if source.match(_AWAIT):
            source.skip()
        if len(self._calls) >= self._most:
            raise source.refusal(_TOO_MANY, start)
        self._calls.append(self._call())
        self._end_statement()

    def _returns_declared(self) -> bool:
        """`return page;` after `const page = …;`."""
        source = self._source
        found = source.look(_WORD)
        if found is None or found[0] not in self._declared:
            return False
        source.position = found.end()
        self._end_statement()
        return True

    def _end_statement(self) -> None:
        source = self._source
        is_new_line = source.skip()
        if source.take(";") or is_new_line or source.is_at_end or source.look(_FENCE):
            return
        raise source.refusal(f"expected the end of the call, found {source.excerpt()}; results cannot be used here")

    def _call(self) -> WrittenCall:
        source = self._source
        start = source.position
        found = source.match(_DOTTED)
        if found is None or found[0] in _KEYWORDS:
            source.position = start
            raise source.refusal(f"expected a call like name(…), found {source.excerpt()}")
        name = "".join(found[0].split())
        source.skip()
        source.match(_GENERIC)
        source.skip()
        if not source.take("("):
            raise source.refusal(f"expected '(' after {name[:40]!r}, found {source.excerpt()}")
        arguments: list[Json | Undefined] = []
        named: dict[str, Json | Undefined] = {}
        while not self._closes(start):
            self._argument(arguments, named)
            separator(source, ")")
        while arguments and arguments[-1] is UNDEFINED:
            arguments.pop()
        end = source.position
        return WrittenCall(name, tuple(arguments), named, start, end, self._text[start:end])

    def _closes(self, start: int) -> bool:
        source = self._source
        source.skip()
        if source.is_at_end:
            raise source.refusal("this call does not end", start)
        if source.sees("..."):
            raise source.refusal("'...' is not possible; write all values")
        return source.take(")")

    def _argument(self, arguments: list[Json | Undefined], named: dict[str, Json | Undefined]) -> None:
        source = self._source
        start = source.position
        name = source.match(_NAMED)
        if name is None:
            if named:
                raise source.refusal("an argument without a name cannot follow one with a name")
            arguments.append(value(source))
            return
        if name[1] in named:
            raise source.refusal(f"the argument {name[1][:40]!r} is given twice", start)
        source.skip()
        named[name[1]] = value(source)
