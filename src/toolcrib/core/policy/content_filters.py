"""Content filters: find words and personal data in JSON, and refuse or replace them.

A refusal names the kind of content and never repeats it. A replacement is `[email]`, `[word]`…, also in keys of
objects; a number with personal data becomes such a text. Strings are checked separately, in linear time.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from ipaddress import ip_address
from typing import Final, NamedTuple, cast

from msgspec import Struct

from toolcrib.contracts import (
    ContentFilter,
    Filtered,
    GuardDecision,
    Guardrail,
    Json,
    JsonObject,
    Outcome,
    PersonalData,
    Reason,
)


class PiiSpan(NamedTuple):
    """A stretch of a text, and what it is."""

    start: int
    end: int
    kind: str


def personal_data(text: str, kinds: tuple[PersonalData, ...]) -> list[PiiSpan]:
    """Where data of these kinds stands in a text, in no order; stretches may overlap."""
    return [PiiSpan(start, end, kind) for kind in kinds for start, end in _DETECTORS[kind](text)]


_Stretches = Iterator[tuple[int, int]]

_LOCAL: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.!#$%&'*+/=?^_`{|}~-")
_LONGEST_LOCAL: Final = 64
_DOMAIN: Final = re.compile(r"(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,63}")


def _emails(text: str) -> _Stretches:
    at = text.find("@")
    while at >= 0:
        start = at
        while start > max(at - _LONGEST_LOCAL, 0) and text[start - 1] in _LOCAL:
            start -= 1
        domain = _DOMAIN.match(text, at + 1, at + 255)
        if start < at and domain is not None:
            yield start, domain.end()
        at = text.find("@", at + 1)


_PHONES: Final = (
    re.compile(r"(?<![\w+])\+\d(?:[ ()./-]{0,2}\d){6,14}(?!\d)"),
    re.compile(r"(?<![\w+-])(?:1[ .-])?(?:\(\d{3}\) ?|\d{3}[ .-])\d{3}[ .-]\d{4}(?![\w-])"),
    re.compile(r"(?<![\w+.-])(?<!\d )0\d{2,5}[ /-]{1,3}\d{3}(?:[ -]?\d){1,7}(?!\d)"),
)
"""International; of North America; national with an area code behind a zero."""


def _phones(text: str) -> _Stretches:
    for pattern in _PHONES:
        for found in pattern.finditer(text):
            yield found.span()


_DIGITS: Final = re.compile(r"\d+")
_CARD_LENGTHS: Final = range(13, 20)


def _cards(text: str) -> _Stretches:
    """Groups of digits, each one blank or hyphen from the next, whose digits are a card number."""
    groups = [found.span() for found in _DIGITS.finditer(text)]
    for index, (start, _) in enumerate(groups):
        digits, last = "", start
        for begin, end in groups[index : index + 19]:
            if begin != last and (begin - last != 1 or text[last] not in " -"):
                break
            digits, last = digits + text[begin:end][:20], end
            if len(digits) >= _CARD_LENGTHS.stop:
                break
            if len(digits) in _CARD_LENGTHS and digits[0] in "23456" and _luhn(digits):
                yield start, end


def _luhn(digits: str) -> bool:
    doubled = (sum(divmod(int(digit) * 2, 10)) for digit in digits[-2::-2])
    return (sum(map(int, digits[::-2])) + sum(doubled)) % 10 == 0


_IBAN_LENGTHS: Final[Mapping[str, int]] = {
    country: int(length)
    for length, countries in {
        "15": "NO", "16": "BE", "18": "DK FI FK FO GL NL SD", "19": "MK SI", "20": "AT BA EE KZ LT LU MN XK",
        "21": "CH HR LI LV", "22": "BG BH CR DE GB GE IE ME RS VA", "23": "AE GI IL IQ OM SO TL",
        "24": "AD CZ ES MD PK RO SA SE SK TN VG", "25": "LY PT ST", "26": "IS TR", "27": "BI DJ FR GR IT MC MR SM",
        "28": "AL AZ BY CY DO GT HN HU LB NI PL SV", "29": "BR EG PS QA UA", "30": "JO KW MU YE", "31": "MT SC",
        "32": "LC", "33": "RU",
    }.items()
    for country in countries.split()
}  # fmt: skip
_BETWEEN: Final = frozenset(" -")
_IBAN_START: Final = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2} ?[0-9]{2}")


def _ibans(text: str) -> _Stretches:
    for found in _IBAN_START.finditer(text):
        length = _IBAN_LENGTHS.get(found[0][:2].upper(), 0)
        end = _end_of(text, found.start(), length)
        if end and not text[end : end + 1].isalnum() and _mod97(text[found.start() : end]) == 1:
            yield found.start(), end


def _end_of(text: str, start: int, length: int) -> int:
    """Where so many letters and digits end, blanks and hyphens between them not counted; 0 if there are fewer."""
    end = start
    while length and (sign := text[end : end + 1]).isascii() and (sign.isalnum() or sign in _BETWEEN):
        end += 1
        length -= sign.isalnum()
    return 0 if length else end


def _mod97(written: str) -> int:
    iban = "".join(filter(str.isalnum, written))
    return int("".join(str(int(sign, 36)) for sign in iban[4:] + iban[:4])) % 97


_SSN: Final = re.compile(r"(?<![\w-])(?!000|666|9)\d{3}([ -])(?!00)\d{2}\1(?!0000)\d{4}(?![\w-])")


def _ssns(text: str) -> _Stretches:
    for found in _SSN.finditer(text):
        yield found.span()


_IPS: Final = (
    re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?!\.?\w)"),
    re.compile(r"(?<![\w:.])(?=[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:])[0-9A-Fa-f:]{3,39}(?![\w:])"),
)


def _ips(text: str) -> _Stretches:
    for pattern in _IPS:
        for found in pattern.finditer(text):
            if _is_ip(found[0]):
                yield found.span()


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return text != "::"


_DETECTORS: Final[Mapping[PersonalData, Callable[[str], _Stretches]]] = {
    "email": _emails,
    "phone": _phones,
    "card": _cards,
    "iban": _ibans,
    "ssn": _ssns,
    "ip": _ips,
}


_LEAST_NUMBER: Final = 10**12
"""The smallest number that can be a card's."""
_LONGEST_BLANK: Final = 8


class Screening(Struct, frozen=True):
    """What content filters make of a value."""

    value: Json
    """With what they replace replaced."""
    decision: GuardDecision | None = None
    """`deny` if something may not pass, `allow` if something was replaced, null if nothing was found."""

    @property
    def passes(self) -> bool:
        """Whether the value may go on."""
        return self.decision is None or self.decision.outcome != "deny"


def screen(guardrails: Sequence[Guardrail], place: Filtered, value: Json) -> Screening:
    """Hold a JSON value against the filters of a place.

    Args:
        guardrails: Of which the content filters of this place count; one that refuses wins over one that replaces.
        place: Where the value is about to pass.
        value: Not changed; a copy is made where something is replaced.
    """
    filters = filters_of(guardrails, place)
    if not filters:
        return Screening(value)
    blocked = _count_spans(value, [rule for rule in filters if rule.action == "block"])
    if blocked:
        kinds = ", ".join(sorted(blocked))
        message = f"{place} holds what a content_filter does not let pass ({kinds}); say it without that"
        return Screening(value, _decision("deny", place, blocked, Reason.CONTENT_BLOCKED, message))
    found: Counter[str] = Counter()
    replaced = _map_strings(value, partial(_redact, [rule for rule in filters if rule.action == "redact"], found))
    return Screening(replaced, _decision("allow", place, found)) if found else Screening(value)


def filters_of(guardrails: Sequence[Guardrail], place: Filtered) -> list[ContentFilter]:
    """The content filters that apply to a place."""
    return [rule for rule in guardrails if isinstance(rule, ContentFilter) and place in rule.applies_to]


def withholds_text(guardrails: Sequence[Guardrail]) -> bool:
    """Whether a model's words may be shown only when they are complete: a filter must have seen them whole."""
    return bool(filters_of(guardrails, "model_output"))


def _decision(
    outcome: Outcome, place: Filtered, found: Counter[str], reason: Reason | None = None, message: str | None = None
) -> GuardDecision:
    inputs: JsonObject = {"place": place, "found": dict(sorted(found.items()))}
    return GuardDecision(outcome=outcome, rule="content_filter", reason=reason, message=message, inputs=inputs)


def _count_spans(value: Json, filters: Sequence[ContentFilter]) -> Counter[str]:
    return Counter(span.kind for text in _texts(value) for rule in filters for span in _spans(rule, text))


def _redact(filters: Sequence[ContentFilter], found: Counter[str], text: str) -> str:
    spans = [span for rule in filters for span in _spans(rule, text)]
    spans.sort(key=lambda span: (span.start, -span.end))
    pieces: list[str] = []
    end = 0
    for span in spans:
        if span.start >= end:
            pieces += text[end : span.start], f"[{span.kind}]"
            found[span.kind] += 1
        end = max(end, span.end)
    return "".join((*pieces, text[end:])) if spans else text


def _spans(rule: ContentFilter, text: str) -> list[PiiSpan]:
    words = _pattern(rule.words)
    spans = [PiiSpan(*found.span(), "word") for found in words.finditer(text)] if words else []
    return spans + personal_data(text, rule.personal_data)


@lru_cache(maxsize=256)
def _pattern(words: tuple[str, ...]) -> re.Pattern[str] | None:
    """Matches any of the words: literal texts, of which the longest is tried first."""
    written = (rf"\s{{1,{_LONGEST_BLANK}}}".join(map(re.escape, word.split())) for word in words)
    either = "|".join(sorted(filter(None, written), key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{either})(?!\w)", re.IGNORECASE) if either else None


def _texts(value: Json) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in cast("JsonObject", value).items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list):
        for item in cast("list[Json]", value):
            yield from _texts(item)
    elif _is_large(value):
        yield str(value)


def _map_strings(value: Json, change: Callable[[str], str]) -> Json:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _map_strings(item, change) for key, item in cast("JsonObject", value).items()}
    if isinstance(value, list):
        return [_map_strings(item, change) for item in cast("list[Json]", value)]
    if _is_large(value):
        written = str(value)
        changed = change(written)
        return value if changed == written else changed
    return value


def _is_large(value: Json) -> bool:
    return isinstance(value, int) and abs(value) >= _LEAST_NUMBER
