"""English words that say nothing about which things a task means, and words for numbers and days. Data, no more."""

from typing import Final

COMMON: Final = frozenset((
    "a", "about", "above", "add", "advance", "after", "all", "also", "amount", "amounts", "an", "and", "any", "are",
    "as", "assign", "at", "be", "been", "before", "being", "belong", "belonging", "belongs", "below", "between",
    "bring", "but", "by", "called", "can", "change", "close", "closed", "closing", "could", "create", "current",
    "currently", "deal", "did", "do", "does", "down", "due", "each", "either", "every", "exactly", "exceeding", "far",
    "fewer", "find", "following", "for", "from", "get", "give", "got", "greater", "had", "hand", "handed", "has",
    "have", "he", "held", "her", "him", "his", "how", "i", "if", "in", "into", "is", "it", "items", "its", "just",
    "kindly", "larger", "least", "less", "list", "make", "many", "mark", "more", "most", "move", "my", "named",
    "need", "new", "no", "not", "now", "number", "of", "off", "on", "one", "only", "onto", "or", "other", "our",
    "out", "over", "own", "owned", "owner", "please", "put", "reassign", "record", "rename", "responsible", "set",
    "she", "shift", "should", "show", "single", "sit", "sits", "sitting", "so", "some", "stage", "stand", "standing",
    "stands", "status", "still", "switch", "take", "than", "that", "the", "their", "them", "themselves", "then",
    "there", "these", "they", "this", "those", "through", "to", "total", "transfer", "turn", "under", "until", "up",
    "update", "us", "value", "was", "we", "were", "what", "whatever", "when", "where", "whether", "which", "who",
    "whose", "why", "will", "with", "within", "without", "worth", "would", "you", "your",
))  # fmt: skip
"""Words that stand in tasks of every kind."""

RELATIVE: Final = frozenset((
    "ago", "day", "days", "expired", "friday", "last", "monday", "month", "months", "next", "now", "overdue", "past",
    "quarter", "quarters", "recent", "recently", "saturday", "sunday", "thursday", "today", "tomorrow", "tonight",
    "tuesday", "upcoming", "wednesday", "week", "weekend", "weeks", "year", "years", "yesterday",
))  # fmt: skip
"""Words for days that only a calendar can tell."""

MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip

NUMBERS: Final = {
    **{word: number for number, word in enumerate((
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    ))},
    "dozen": 12, "hundred": 100, "thousand": 1000, "million": 1_000_000,
}  # fmt: skip

NO_NAMES: Final = frozenset((
    "i", "usd", "eur", "gbp", "asap", "ok", "id", "ids", "please", "thanks", *RELATIVE, *MONTHS,
))  # fmt: skip
"""Words that are written with a capital letter and are no names."""

_NAMING: Final = ("call", "called", "name", "named", "rename", "renamed", "title", "titled")
_ASSIGNING: Final = (
    "assign", "belong", "give", "hand", "owner", "owned", "over", "reassign", "responsible", "takes", "transfer",
)  # fmt: skip
SPEAKING_OF: Final = {
    "assignee": _ASSIGNING, "name": _NAMING, "owner": _ASSIGNING, "responsible": _ASSIGNING, "title": _NAMING,
}  # fmt: skip
"""Words by which people speak of fields that are called otherwise."""
