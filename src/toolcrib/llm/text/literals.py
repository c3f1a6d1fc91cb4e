"""Parses literal values as TypeScript, and models that mix in Python, write them: JSON and looser forms.

Nothing is evaluated. Names, calls, operators, `${…}`, functions and spreads are refused; only strings can be joined
with `+`. Integers are exact. Strings have single, double or typographic quotes, or are templates without `${…}`, and
may contain line breaks. Escapes are those of JavaScript; octal escapes and unpaired surrogates are refused as
ambiguous.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from toolcrib.contracts import Json
from toolcrib.llm.text.block_source import BlockSource, Malformed

__all__ = ["DEEPEST", "UNDEFINED", "Malformed", "Undefined", "separator", "value"]


_CLOSING: Mapping[str, str] = {"'": "'", '"': '"', "`": "`", "\u201c": "\u201d", "\u2018": "\u2019"}
QUOTES = "".join(_CLOSING)
"""What a string may begin with."""
_PLAIN: Mapping[str, re.Pattern[str]] = {
    opening: re.compile(rf"[^{closing}\\\r\n]++") for opening, closing in _CLOSING.items()
}
_BREAK = re.compile(r"\r\n?|\n")
_HEX = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{0{0,8}([0-9a-fA-F]{1,6})\}")
_OCTAL = re.compile(r"[1-9]|0[0-9]")
_ESCAPES: Mapping[str, str] = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "0": "\0",
    "\u2028": "",
    "\u2029": "",
}


def string(source: BlockSource) -> str:
    """The value of the string that begins here.

    Raises:
        Malformed: It does not end, has an escape that is none, or `${…}`.
    """
    start, quote = source.position, source.next
    closing, plain = _CLOSING[quote], _PLAIN[quote]
    source.position += 1
    pieces: list[str] = []
    while not source.take(closing):
        if source.is_at_end:
            raise source.refusal("this string does not end", start)
        if found := source.match(plain):
            if quote == "`" and (place := found[0].find("${")) >= 0:
                raise source.refusal(
                    "'${' is not possible; write the finished string", found.start() + place, within=start
                )
            pieces.append(found[0])
        elif source.match(_BREAK):
            pieces.append("\n")
            source.skip_margin()
        else:
            pieces.append(_escape(source, start))
    return _join_surrogates("".join(pieces), source, start)


def _escape(source: BlockSource, start: int) -> str:
    place = source.position
    source.position += 1
    if source.is_at_end:
        raise source.refusal("this string does not end", start)
    if source.match(_BREAK):
        source.skip_margin()
        return ""
    if source.look(_OCTAL):
        raise source.refusal("octal escapes are not possible; use \\u0000 to \\uffff", place, within=start)
    following = source.next
    if following not in "xu":
        source.position += 1
        return _ESCAPES.get(following, following)
    found = source.match(_HEX)
    if found is None:
        raise source.refusal(f"{source.text[place : place + 6]!r} is no complete escape", place, within=start)
    code = int(found[1] or found[2] or found[3], 16)
    if code > 0x10FFFF:
        raise source.refusal(f"there is no character {code:#x}", place, within=start)
    return chr(code)


def _join_surrogates(text: str, source: BlockSource, start: int) -> str:
    """The text with its surrogate pairs as the characters that they mean."""
    if text.isascii():
        return text
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise source.refusal("this string has one half of a surrogate pair", start) from None


DEEPEST: Final = 64
"""Levels of arrays and objects in one argument."""
LONGEST_INTEGER: Final = 3_000
"""Digits, also hexadecimal ones; Python writes no integer of more than 4,300 decimal ones."""
_EXACT: Final = 2**53
"""JavaScript has no integers beside numbers; up to here a whole one is an integer of JSON."""


class Undefined:
    """The type of `UNDEFINED`."""

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED: Final = Undefined()
"""An argument that was left out by word."""

_WORDS: dict[str, Json | Undefined] = {
    "true": True,
    "false": False,
    "null": None,
    "undefined": UNDEFINED,
    "True": True,
    "False": False,
    "None": None,
}
_NAME = re.compile(r"(?:[^\W\d]|\$)[\w$]*+")
_KEY_NUMBER = re.compile(r"(?:0|[1-9][0-9]*+)(?![\w.])")
_DIGITS = r"[0-9]++(?:_[0-9]++)*+"
_NUMBER = re.compile(
    rf"""(?P<sign>[+-]?)(?:
        (?P<based>0[xX][0-9a-fA-F]++(?:_[0-9a-fA-F]++)*+|0[bB][01]++(?:_[01]++)*+|0[oO][0-7]++(?:_[0-7]++)*+)
        |(?P<fraction>(?:{_DIGITS}\.(?:{_DIGITS})?+|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?+|{_DIGITS}[eE][+-]?{_DIGITS})
        |(?P<whole>{_DIGITS})
    )(?P<big>n?)(?![\w$.])""",
    re.VERBOSE,
)
_STARTS_NUMBER = re.compile(r"[+-]?\.?[0-9]")


def value(source: BlockSource, depth: int = 0) -> Json | Undefined:
    """The literal that stands here.

    Raises:
        Malformed: Something else stands here.
    """
    found = _primary(source, depth)
    source.skip()
    if not isinstance(found, str) or not source.sees("+"):
        return found
    pieces = [found]
    while source.take("+"):
        source.skip()
        more = _primary(source, depth)
        if not isinstance(more, str):
            raise source.refusal("only strings can be joined with '+'; write the finished value")
        pieces.append(more)
        source.skip()
    return "".join(pieces)


def _primary(source: BlockSource, depth: int) -> Json | Undefined:
    following = source.next
    if following in "[{(" and following and depth >= DEEPEST:
        raise source.refusal(f"values are nested more than {DEEPEST} deep")
    if source.sees("```"):
        raise source.refusal("expected a literal value, found a fence")
    if following in QUOTES and following:
        return string(source)
    match following:
        case "[" | "{":
            strict = _strict_json(source) if depth == 0 and source.may_be_strict else UNDEFINED
            if strict is not UNDEFINED:
                return strict
            return _array(source, depth) if following == "[" else _object(source, depth)
        case "(":
            return _in_parentheses(source, depth)
        case _:
            return _number(source) if source.look(_STARTS_NUMBER) else _word(source)


def _strict_json(source: BlockSource) -> Json | Undefined:
    """What the standard library reads here, much faster; undefined if it cannot, or reads it in another way than we."""
    try:
        found, end = _JSON.raw_decode(source.text, source.position)
    except (ValueError, RecursionError):
        source.may_be_strict = False
        return UNDEFINED
    if end > source.end or source.text.find("\\u", source.position, end) >= 0 or _depth(found) > DEEPEST:
        return UNDEFINED
    source.position = end
    return found


def _array(source: BlockSource, depth: int) -> Json:
    start = source.position
    source.position += 1
    items: list[Json] = []
    while not _ends(source, "]", "array", start):
        item = value(source, depth + 1)
        items.append(None if isinstance(item, Undefined) else item)
        separator(source, "]")
    return items


def _object(source: BlockSource, depth: int) -> Json:
    start = source.position
    source.position += 1
    members: dict[str, Json] = {}
    while not _ends(source, "}", "object", start):
        name = _key(source)
        source.skip()
        if not source.take(":"):
            raise source.refusal(f"the key {name!r} needs ':' and a literal value, found {source.excerpt()}")
        source.skip()
        member = value(source, depth + 1)
        if not isinstance(member, Undefined):
            members[name] = member
        separator(source, "}")
    return members


def _ends(source: BlockSource, closing: str, what: str, start: int) -> bool:
    source.skip()
    if source.is_at_end:
        raise source.refusal(f"this {what} does not end", start)
    if source.sees("..."):
        raise source.refusal("'...' is not possible; write all values")
    return source.take(closing)


def separator(source: BlockSource, closing: str) -> None:
    """Step over the comma after a value, or stop before what closes the list.

    Raises:
        Malformed: Something else stands here.
    """
    source.skip()
    if source.take(",") or source.sees(closing):
        return
    raise source.refusal(
        f"expected ',' or '{closing}', found {source.excerpt()}; only literal values are possible, no expressions"
    )


def _key(source: BlockSource) -> str:
    if source.next in QUOTES and source.next not in ("", "`"):
        return string(source)
    found = source.match(_NAME) or source.match(_KEY_NUMBER)
    if found is None:
        raise source.refusal(f"expected a key, found {source.excerpt()}")
    return found[0]


def _in_parentheses(source: BlockSource, depth: int) -> Json | Undefined:
    source.position += 1
    source.skip()
    found = value(source, depth + 1)
    source.skip()
    if not source.take(")"):
        raise source.refusal(f"expected ')', found {source.excerpt()}; only literal values are possible")
    return found


def _word(source: BlockSource) -> Json | Undefined:
    found = source.look(_NAME)
    if found is None:
        raise source.refusal(f"expected a literal value, found {source.excerpt()}")
    word = found[0]
    after = source.text[found.end() : min(found.end() + 1, source.end)]
    if word in _WORDS and after not in (".", "(", "["):
        source.position = found.end()
        return _WORDS[word]
    if after == "(":
        raise source.refusal(f"{word[:40]!r} is called within a call; call it first, and use its result afterwards")
    raise source.refusal(f"{word[:40]!r} is not a literal value; write the value itself")


def _number(source: BlockSource) -> Json:
    found = source.match(_NUMBER)
    if found is None:
        raise source.refusal(f"{source.excerpt()} begins like a number and is none")
    digits = (found["based"] or found["whole"] or "").replace("_", "")
    if found["fraction"]:
        if found["big"]:
            raise source.refusal("a number with 'n' is a whole one", found.start())
        return _real(found["sign"] + found["fraction"].replace("_", ""), source, found.start())
    if len(digits) > LONGEST_INTEGER:
        raise source.refusal(f"this number has more than {LONGEST_INTEGER} digits", found.start())
    if found["whole"] and len(digits) > 1 and digits[0] == "0":
        raise source.refusal("a number must not begin with 0; write it as a string if the 0 counts", found.start())
    whole = int(digits, 0 if found["based"] else 10)
    return -whole if found["sign"] == "-" else whole


def _real(written: str, source: BlockSource, start: int) -> Json:
    try:
        return _finite(written)
    except ValueError:
        raise source.refusal("this number is too large", start) from None


def _finite(written: str) -> float | int:
    """A number with a fraction or an exponent; an integer if it is whole and exact.

    Raises:
        ValueError: It is infinite.
    """
    number = float(written)
    if math.isinf(number):
        msg = "infinite"
        raise ValueError(msg)
    return int(number) if number.is_integer() and abs(number) <= _EXACT else number


def _no_constant(written: str) -> Any:
    raise ValueError(written)


def _depth(found: Any) -> int:
    """Levels of arrays and objects, counted no further than one beyond the most."""
    depth = 0
    level: list[Json] = [found]
    while level and depth <= DEEPEST:
        depth += 1
        level = [child for node in level for child in _children(node) if isinstance(child, list | dict)]
    return depth


def _children(node: Json) -> Iterable[Json]:
    return cast("dict[str, Json]", node).values() if isinstance(node, dict) else cast("list[Json]", node)


_JSON = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant)
