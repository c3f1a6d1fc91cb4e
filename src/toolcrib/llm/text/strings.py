"""String literals: single, double and typographic quotes, and template literals without `${…}`.

Line breaks may stand in all of them, for models write them so. Escapes are those of JavaScript; octal ones and halves
of surrogate pairs are refused, since they could mean two things.
"""

import re
from collections.abc import Mapping

from toolcrib.llm.text.source import Source

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


def string(source: Source) -> str:
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
            raise source.malformed("this string does not end", start)
        if found := source.match(plain):
            if quote == "`" and (place := found[0].find("${")) >= 0:
                raise source.malformed(
                    "'${' is not possible; write the finished string", found.start() + place, within=start
                )
            pieces.append(found[0])
        elif source.match(_BREAK):
            pieces.append("\n")
            source.skip_margin()
        else:
            pieces.append(_escape(source, start))
    return _paired("".join(pieces), source, start)


def _escape(source: Source, start: int) -> str:
    place = source.position
    source.position += 1
    if source.is_at_end:
        raise source.malformed("this string does not end", start)
    if source.match(_BREAK):
        source.skip_margin()
        return ""
    if source.look(_OCTAL):
        raise source.malformed("octal escapes are not possible; use \\u0000 to \\uffff", place, within=start)
    following = source.next
    if following not in "xu":
        source.position += 1
        return _ESCAPES.get(following, following)
    found = source.match(_HEX)
    if found is None:
        raise source.malformed(f"{source.text[place : place + 6]!r} is no complete escape", place, within=start)
    code = int(found[1] or found[2] or found[3], 16)
    if code > 0x10FFFF:
        raise source.malformed(f"there is no character {code:#x}", place, within=start)
    return chr(code)


def _paired(text: str, source: Source, start: int) -> str:
    """The text with its surrogate pairs as the characters that they mean."""
    if text.isascii():
        return text
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise source.malformed("this string has one half of a surrogate pair", start) from None
