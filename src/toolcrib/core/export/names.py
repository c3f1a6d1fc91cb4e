"""Names of exported tools: snake case, 64 characters, numbers where two would be the same."""

import re
from collections.abc import Iterable, Mapping
from itertools import count

_NOT_WORD = re.compile(r"[^A-Za-z0-9]+")
_BEFORE_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
LONGEST = 64
"""Characters that OpenAI and Anthropic take; MCP takes 128."""


def snake_case(name: str) -> str:
    """`hubspot.dealManager-v2` as `hubspot_deal_manager_v2`: letters, digits and `_`, not more than `LONGEST`."""
    words = _NOT_WORD.sub("_", _BEFORE_CAPITAL.sub("_", name)).strip("_")
    return words.lower()[:LONGEST].rstrip("_")


def export_names(names: Iterable[str]) -> Mapping[str, str]:
    """Name of each tool in every export; where two come out the same, the later one gets a number.

    The order decides, so give all the names that stand side by side, sorted.
    """
    found: dict[str, str] = {}
    names_in_use: set[str] = set()
    for name in dict.fromkeys(names):
        plain = snake_case(name)
        endings = (f"_{number}" if number > 1 else "" for number in count(1))
        candidates = (plain[: LONGEST - len(ending)] + ending for ending in endings)
        found[name] = next(free for free in candidates if free not in names_in_use)
        names_in_use.add(found[name])
    return found
