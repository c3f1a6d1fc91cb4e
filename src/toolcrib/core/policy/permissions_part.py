"""Grants: which security URIs a principal may use.

A grant is a pattern such as `ai://tools/crm/*/execute`: `*` stands for exactly one segment, a `*` at the end for all
that follow, at least one. One realm with its owner for now; the step and its vocabulary are what stays.
"""

from functools import lru_cache

_SCHEME = "ai://"


@lru_cache(maxsize=4096)
def permits(grants: tuple[str, ...], uri: str) -> bool:
    """Whether one of the patterns covers the URI.

    Args:
        grants: Patterns.
        uri: `ai://{kind}/{category}/{name}/{verb}` or a shorter one of that sort.
    """
    return any(_covers(grant, uri) for grant in grants)


def _covers(grant: str, uri: str) -> bool:
    if not (grant.startswith(_SCHEME) and uri.startswith(_SCHEME)):
        return False
    pattern, target = grant[len(_SCHEME) :].split("/"), uri[len(_SCHEME) :].split("/")
    if pattern[-1] == "*":
        target = target[: len(pattern)]
    return len(pattern) == len(target) and all(
        wanted in ("*", found) for wanted, found in zip(pattern, target, strict=True)
    )
