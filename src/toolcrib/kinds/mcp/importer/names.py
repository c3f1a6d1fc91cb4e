"""Names of the tools that a server's offers become: legal for every model provider, unique, and kept once given.

A name that is spelled with anything but ASCII letters, digits, `_` and `-` gets a hash of its true spelling, so that no
look-alike comes close to the name that it imitates.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from toolcrib.contracts import McpCapability
from toolcrib.core.providers.names import MAX_NAME, fitting, hashed
from toolcrib.kinds.mcp.importer.offers import Offer

_LEGAL: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_-]+")
_PLAIN: Final = re.compile(r"[ -~]*")
_PREFIXES: Final[Mapping[McpCapability, str]] = {"tool": "", "resource": "read_", "prompt": "prompt_"}


def tool_names(
    offers: Sequence[Offer],
    provider: str,
    *,
    known: Mapping[tuple[McpCapability, str], str],
    taken: Collection[str],
) -> dict[tuple[McpCapability, str], str]:
    """One name per offer, by its key, `[A-Za-z][A-Za-z0-9_-]{0,63}`.

    Args:
        offers: Of one server.
        provider: Its name, which goes in front of a name that a tool of somebody else has.
        known: Names of an earlier import, which stay.
        taken: Names of tools that are not this provider's.
    """
    names = {offer.key: known[offer.key] for offer in offers if offer.key in known}
    used = {*taken, *names.values()}
    exact_first = sorted((offer for offer in offers if offer.key not in names), key=lambda offer: not _is_legal(offer))
    for offer in exact_first:
        wanted = _wanted(offer)
        candidates = (wanted, fitting(f"{_legal(provider)}_{wanted}"), _hashed(f"{_legal(provider)}_{wanted}", offer))
        name = next(candidate for candidate in candidates if candidate not in used)
        names[offer.key] = name
        used.add(name)
    return names


def _is_legal(offer: Offer) -> bool:
    return offer.capability == "tool" and _LEGAL.fullmatch(offer.name) is not None and len(offer.name) <= MAX_NAME


def _wanted(offer: Offer) -> str:
    if _is_legal(offer):
        return offer.name
    spelled = offer.name if offer.capability != "resource" else offer.text("name") or offer.name
    name = _PREFIXES[offer.capability] + _legal(spelled)
    if not name[:1].isalpha():
        name = f"{offer.capability}_{name}".rstrip("_-")
    return fitting(name) if _PLAIN.fullmatch(spelled) else _hashed(name, offer)


def _legal(text: str) -> str:
    return _ILLEGAL.sub("_", text).strip("_-")


def _hashed(name: str, offer: Offer) -> str:
    return hashed(name, f"{offer.capability} {offer.name}")
