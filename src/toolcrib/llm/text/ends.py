"""Where a malformed block ends, if that is certain.

A fence may stand inside a string. If a malformed block were taken to end at such a fence, the rest of the string would
be read as calls that nobody wrote. So two readings must agree: the block's lines, and its strings from where it could
not be read any further; and these strings must look like strings, each on one line. What cannot be read right behind a
string is perhaps still in it, behind a quote that was not escaped.
"""

import re

from toolcrib.llm.text.fences import CLOSING, Opening

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
