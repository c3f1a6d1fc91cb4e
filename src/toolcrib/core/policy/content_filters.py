"""Content filters: find words and personal data in JSON, and refuse or replace them.

A refusal names the kind of content and never repeats it. A replacement is `[email]`, `[word]`…, also in keys of
objects; a number with personal data becomes such a text. Strings are checked separately, in linear time.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Final, cast

from msgspec import Struct

from toolcrib.contracts import ContentFilter, Filtered, GuardDecision, Guardrail, Json, JsonObject, Outcome, Reason
from toolcrib.core.policy.pii import PiiSpan, personal_data

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
