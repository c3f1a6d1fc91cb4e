"""Source text to tokens. One regular expression without nested repetition: linear time on any input."""

import math
import re
from typing import Literal, NamedTuple, TypeAlias, cast

from toolcrib.contracts import Json
from toolcrib.contracts.base.errors import InvalidExpression
from toolcrib.core.expressions.bounds import MAX_INTEGER

TokenKind: TypeAlias = Literal["number", "string", "name", "operator", "end"]

_TOKEN = re.compile(
    r"""(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    |(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<name>[^\W\d][\w$]*|\$[\w$]*)
    |(?P<operator>===|!==|==|!=|<=|>=|&&|\|\||\?\?|\?\.|[-+*/%<>!?:.,()\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
_SPACE = re.compile(r"\s*")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED = {'"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_INSTEAD = {"=": "==", "&": "&&", "|": "||", "`": "a quoted string", ";": "one expression", "~": "!", "^": "!="}


class Token(NamedTuple):
    """One token and its place."""

    kind: TokenKind
    text: str
    column: int
    value: Json = None
    """The value of a number or string."""


def tokenize(source: str) -> list[Token]:
    """All tokens of the source, the last of kind `end`.

    Raises:
        InvalidExpression: A character, number or string that the language does not have, with its column.
    """
    tokens: list[Token] = []
    position = _skip_space(source, 0)
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None:
            raise _unexpected(source, position)
        kind, text, column = cast("TokenKind", match.lastgroup), match.group(), position + 1
        tokens.append(Token(kind, text, column, _value(kind, text, column)))
        position = _skip_space(source, match.end())
    tokens.append(Token("end", "end of expression", len(source) + 1))
    return tokens


def _skip_space(source: str, position: int) -> int:
    match = _SPACE.match(source, position)
    return match.end() if match else position


def _unexpected(source: str, position: int) -> InvalidExpression:
    character, column = source[position], position + 1
    if character in "\"'":
        return InvalidExpression(f"string at column {column} is never closed")
    instead = f"; write {_INSTEAD[character]}" if character in _INSTEAD else ""
    return InvalidExpression(f"unexpected {character!r} at column {column}{instead}")


def _value(kind: TokenKind, text: str, column: int) -> Json:
    match kind:
        case "number":
            return _number(text, column)
        case "string":
            return _unescaped(text[1:-1], column)
        case _:
            return None


def _number(text: str, column: int) -> int | float:
    value = int(text) if text.isdecimal() else float(text)
    if math.isinf(value) or (isinstance(value, int) and value > MAX_INTEGER):
        raise InvalidExpression(f"number at column {column} is too large; integers reach 2**63")
    return value


def _unescaped(text: str, column: int) -> str:
    def character(match: re.Match[str]) -> str:
        code, letter = match.groups()
        if code is not None:
            return chr(int(code, 16))
        if letter not in _ESCAPED:
            raise InvalidExpression(
                f"unknown escape '\\{letter}' in the string at column {column}; escapes are those of JSON and \\'"
            )
        return _ESCAPED[letter]

    if "\\" not in text:
        return text
    # JSON writes characters beyond the basic plane as two escapes; UTF-16 is where such a pair is one character.
    units = _ESCAPE.sub(character, text).encode("utf-16", "surrogatepass")
    try:
        return units.decode("utf-16")
    except UnicodeDecodeError:
        raise InvalidExpression(f"half a surrogate pair in the string at column {column}") from None
