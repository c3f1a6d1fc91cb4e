"""Semantic versions and the ranges that npm made common: `1.2.3`, `^1.2`, `~1.2.3`, `>=1.0 <2.0`, `1.x`, `*`.

Source: semver.org 2.0.0 for order, node-semver for ranges. A pre-release is chosen only by a range that names it
exactly.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, total_ordering
from typing import NamedTuple

from toolcrib.contracts import InvalidDefinition

_NUMBER = r"(?:0|[1-9][0-9]*)"
_LABEL = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_PRERELEASE = rf"{_LABEL}(?:\.{_LABEL})*"
_BUILD = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_VERSION = re.compile(rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_PRERELEASE}))?(?:\+{_BUILD})?")
_OPERATOR = r"(\^|~|>=|<=|>|<|=)"
_PLACE = rf"({_NUMBER}|[xX*])"
_COMPARATOR = re.compile(rf"{_OPERATOR}?v?{_PLACE}(?:\.{_PLACE}(?:\.{_PLACE}(?:-({_PRERELEASE}))?(?:\+{_BUILD})?)?)?")
_GAP_AFTER_OPERATOR = re.compile(rf"{_OPERATOR}\s+")
_LONGEST = 256
"""Characters, as in node-semver."""


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """A semantic version; build metadata does not take part in the order and is dropped."""

    major: int
    minor: int
    patch: int
    prerelease: str = ""

    @classmethod
    def parse(cls, text: str) -> "Version":
        """Read `major.minor.patch[-prerelease][+build]`.

        Raises:
            InvalidDefinition: The text is not a semantic version.
        """
        return _parse_version(text)

    @property
    def precedence(self) -> tuple[object, ...]:
        """The sort key of semver.org, section 11: a release is higher than its pre-releases."""
        parts = self.prerelease.split(".") if self.prerelease else []
        ranked = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)
        return (self.major, self.minor, self.patch, not self.prerelease, ranked)

    def __lt__(self, other: "Version") -> bool:
        return self.precedence < other.precedence

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}" + (f"-{self.prerelease}" if self.prerelease else "")


@lru_cache(maxsize=1024)
def _parse_version(text: str) -> Version:
    match = _VERSION.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        msg = f"version {text[:_LONGEST]!r} is not a semantic version; write it as major.minor.patch, e.g. 1.0.0"
        raise InvalidDefinition(msg)
    major, minor, patch, prerelease = match.groups()
    return Version(int(major), int(minor), int(patch), prerelease or "")


class VersionSpan(NamedTuple):
    """Versions from `low` on and below `high`; null for no bound."""

    low: Version
    high: Version | None

    def holds(self, version: Version) -> bool:
        """Whether the version lies inside."""
        return self.low <= version and (self.high is None or version < self.high)


_FIRST = Version(0, 0, 0)
_NOTHING = VersionSpan(_FIRST, _FIRST)


@lru_cache(maxsize=1024)
def parse_range(text: str) -> tuple[tuple[VersionSpan, ...], ...]:
    """Read a range: alternatives separated by `||`, each a list of comparators that must all hold.

    Raises:
        InvalidDefinition: The text is not a range.
    """
    if len(text) > _LONGEST:
        msg = f"a version range has at most {_LONGEST} characters, and this one {len(text)}; shorten it"
        raise InvalidDefinition(msg)
    return tuple(_conjunction(part, text) for part in text.split("||"))


def satisfies(version: Version, text: str) -> bool:
    """Whether a version lies in a range. A pre-release does only if the range names its very version."""
    named = VersionSpan(version, _after(version, 3))
    return any(
        all(span.holds(version) for span in spans) and (not version.prerelease or named in spans)
        for spans in parse_range(text)
    )


def newest(versions: Iterable[str], text: str | None) -> str | None:
    """The highest of the versions that lie in the range.

    A null range means any release, or a pre-release if there is no other.
    """
    parsed = {Version.parse(version): version for version in versions}
    if text is None and len(parsed) == 1:
        return next(iter(parsed.values()))
    if text is None:
        fitting = [version for version in parsed if not version.prerelease] or list(parsed)
    else:
        fitting = [version for version in parsed if satisfies(version, text)]
    return parsed[max(fitting)] if fitting else None


def _conjunction(part: str, whole: str) -> tuple[VersionSpan, ...]:
    words = _GAP_AFTER_OPERATOR.sub(r"\1", part).replace(",", " ").split()
    return tuple(_span(word, whole) for word in words or ["*"])


def _span(word: str, whole: str) -> VersionSpan:
    match = _COMPARATOR.fullmatch(word)
    if match is None:
        msg = f"version range {whole!r} is not understood at {word!r}; write e.g. 1.2.3, ^1.2, ~1.2.3, >=1.0.0 <2.0.0"
        raise InvalidDefinition(msg)
    operator, *places, prerelease = match.groups()
    known = next((index for index, place in enumerate(places) if not (place or "").isdigit()), 3)
    major, minor, patch = [*map(int, places[:known]), 0, 0, 0][:3]
    base = Version(major, minor, patch, (prerelease or "") if known == 3 else "")
    after = _after(base, known)
    match operator:
        case "^":
            return VersionSpan(base, _caret(base, known))
        case "~":
            return VersionSpan(base, _next(base, min(known, 2)))
        case ">=":
            return VersionSpan(base, None)
        case ">":
            return VersionSpan(after, None) if after else _NOTHING
        case "<":
            return VersionSpan(_FIRST, base)
        case "<=":
            return VersionSpan(_FIRST, after)
        case _:
            return VersionSpan(base, after)


def _after(base: Version, known: int) -> Version | None:
    """The next version at all that does not share the known numbers, or the pre-release; null if nothing is known."""
    if base.prerelease:
        return Version(base.major, base.minor, base.patch, f"{base.prerelease}.0")
    return _next(base, known)


def _next(base: Version, known: int) -> Version | None:
    """The first release after all that share the known numbers; null if none is known."""
    match known:
        case 0:
            return None
        case 1:
            return Version(base.major + 1, 0, 0)
        case 2:
            return Version(base.major, base.minor + 1, 0)
        case _:
            return Version(base.major, base.minor, base.patch + 1)


def _caret(base: Version, known: int) -> Version | None:
    """The first version that may break what `base` promised: the leftmost number that is not zero changes."""
    if base.major or known <= 1:
        return _next(base, min(known, 1))
    return _next(base, 2 if base.minor or known == 2 else 3)
