"""Versions and ranges, against what semver.org and node-semver say."""

from itertools import pairwise

import pytest

from toolcrib.contracts import InvalidDefinition
from toolcrib.core.registry import Version, newest, satisfies

ASCENDING = [
    "0.0.0",
    "0.9.10",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.9.0",
    "1.10.0",
    "2.0.0",
]
"""Semver.org 2.0.0, section 11."""


@pytest.mark.requirement("registry.versions")
def test_versions_have_the_precedence_of_semver_org():
    versions = [Version.parse(text) for text in ASCENDING]

    assert sorted(set(versions)) == versions
    assert max(versions) == versions[-1]
    for low, high in pairwise(versions):
        assert low < high
        assert high > low
        assert low <= high
        assert not low >= high


@pytest.mark.requirement("registry.versions")
@pytest.mark.parametrize("text", ["1.2.3", "1.2.3-rc.1", "0.0.0-0a.-.x-y", "10.20.30"])
def test_a_version_is_written_as_it_was_read(text: str):
    assert str(Version.parse(text)) == text


@pytest.mark.requirement("registry.versions")
def test_build_metadata_does_not_take_part():
    assert Version.parse("1.0.0+20260131.x") == Version.parse("1.0.0")
    assert newest(["1.0.0+b1", "0.9.0"], "^1.0.0+b2") == "1.0.0+b1"


NO_VERSIONS = [
    *("", "1", "1.2", "1.2.x", "01.2.3", "1.2.3.4", "v1.2.3", "-1.0.0", "1.2.3\n", "9" * 300 + ".0.0"),
    *("1.2.3-", "1.2.3-01", "1.2.3-a..b", "1.2.3-ä", "1.2.\N{ARABIC-INDIC DIGIT THREE}", "1.2.3+", "1.2.3+a+b"),
]


@pytest.mark.requirement("registry.versions")
@pytest.mark.parametrize("text", NO_VERSIONS)
def test_what_is_no_semantic_version_is_refused_with_the_form_to_use(text: str):
    with pytest.raises(InvalidDefinition, match=r"is not a semantic version; write it as major\.minor\.patch"):
        Version.parse(text)


RANGES: list[tuple[str, str, str]] = [
    ("1.2.3", "1.2.3", "1.2.2 1.2.4 2.0.0"),
    ("=1.2.3", "1.2.3", "1.2.4"),
    ("v1.2.3", "1.2.3", "1.2.4"),
    ("*", "0.0.0 1.2.3 99.0.0", ""),
    ("", "0.0.0 1.2.3", ""),
    ("x", "0.0.0 1.2.3", ""),
    ("1", "1.0.0 1.9.9", "0.9.9 2.0.0"),
    ("1.x", "1.0.0 1.9.9", "0.9.9 2.0.0"),
    ("1.X.x", "1.0.0 1.9.9", "2.0.0"),
    ("1.*", "1.0.0 1.9.9", "2.0.0"),
    ("1.x.3", "1.0.0 1.9.9", "2.0.0"),
    ("1.2", "1.2.0 1.2.9", "1.1.9 1.3.0"),
    ("1.2.x", "1.2.0 1.2.9", "1.1.9 1.3.0"),
    ("^1.2.3", "1.2.3 1.9.0", "1.2.2 2.0.0"),
    ("^0.2.3", "0.2.3 0.2.9", "0.2.2 0.3.0"),
    ("^0.0.3", "0.0.3", "0.0.2 0.0.4 0.1.0"),
    ("^0.0", "0.0.0 0.0.9", "0.1.0"),
    ("^0.0.x", "0.0.0 0.0.9", "0.1.0"),
    ("^0.1", "0.1.0 0.1.9", "0.0.9 0.2.0"),
    ("^0", "0.0.0 0.9.9", "1.0.0"),
    ("^1", "1.0.0 1.9.9", "2.0.0"),
    ("^1.2", "1.2.0 1.9.9", "1.1.9 2.0.0"),
    ("^*", "0.0.0 9.0.0", ""),
    ("~1.2.3", "1.2.3 1.2.9", "1.2.2 1.3.0"),
    ("~1.2", "1.2.0 1.2.9", "1.3.0"),
    ("~1", "1.0.0 1.9.9", "0.9.0 2.0.0"),
    ("~0.2.3", "0.2.3 0.2.9", "0.3.0"),
    ("~0", "0.0.0 0.9.0", "1.0.0"),
    ("~x", "0.0.0 9.0.0", ""),
    (">=1 <2", "1.0.0 1.9.9", "0.9.9 2.0.0"),
    (">= 1.2 < 1.4.1", "1.2.0 1.4.0", "1.1.9 1.4.1"),
    (">=1.0,<2.0", "1.0.0 1.9.9", "2.0.0"),
    (">1", "2.0.0", "1.0.0 1.9.9"),
    (">1.2", "1.3.0", "1.2.9"),
    (">1.2.3", "1.2.4", "1.2.3"),
    ("<1.2", "1.1.9", "1.2.0"),
    ("<=1.2", "1.2.9", "1.3.0"),
    ("<=1.2.3", "1.2.3", "1.2.4"),
    ("<=1", "1.9.9", "2.0.0"),
    (">*", "", "0.0.0 1.0.0"),
    ("<*", "", "0.0.0 1.0.0"),
    (">=*", "0.0.0 1.0.0", ""),
    ("<=*", "0.0.0 1.0.0", ""),
    ("1.2.3 || ^2.1", "1.2.3 2.1.0 2.9.0", "1.2.4 2.0.0 3.0.0"),
    ("<1||>=3", "0.9.0 3.0.0", "1.0.0 2.9.0"),
    ("1 ||", "0.1.0 5.0.0", ""),
    ("^1.2.3 1.4.x", "1.4.2", "1.2.3 1.5.0"),
    (">=1.0.0-rc.1", "1.0.0 2.0.0", "0.9.0"),
    ("^1.0.0-rc.1", "1.0.0 1.4.0", "2.0.0"),
    ("~1.0.0-rc.1", "1.0.0 1.0.7", "1.1.0"),
    (">1.0.0-rc.1", "1.0.0", "0.9.9"),
    ("<1.0.0-rc.1", "0.9.9", "1.0.0"),
    ("<=1.0.0-rc.1", "0.9.9", "1.0.0"),
    ("1.0.0-rc.1", "", "1.0.0 1.0.1"),
]
"""Range, releases in it, releases outside."""


@pytest.mark.requirement("registry.ranges")
@pytest.mark.parametrize(("text", "inside", "outside"), RANGES, ids=[text for text, _, _ in RANGES])
def test_a_range_holds_the_releases_that_it_holds_in_npm(text: str, inside: str, outside: str):
    given = f"{inside} {outside}".split()

    assert [version for version in given if satisfies(Version.parse(version), text)] == inside.split()


@pytest.mark.requirement("registry.ranges")
@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("latest", "latest"),
        ("1.02.3", "1.02.3"),
        ("01", "01"),
        ("1.2.3.4", "1.2.3.4"),
        ("1.2.3 - 2.0.0", "-"),
        (">=1 2.y", "2.y"),
        (">=1<2", ">=1<2"),
        ("1 | 2", "|"),
        ("^^1", "^^1"),
        (">", ">"),
        ("1.2-rc", "1.2-rc"),
    ],
)
def test_what_is_no_range_is_refused_with_the_place_and_an_example(text: str, place: str):
    with pytest.raises(InvalidDefinition) as caught:
        satisfies(Version(1, 0, 0), text)

    assert f"is not understood at {place!r}; write e.g. 1.2.3, ^1.2" in str(caught.value)


@pytest.mark.requirement("registry.ranges")
def test_a_range_has_a_limited_length():
    with pytest.raises(InvalidDefinition, match="at most 256 characters, and this one 1200"):
        newest(["1.0.0"], "1.x ||" * 200)


@pytest.mark.requirement("registry.prereleases")
@pytest.mark.parametrize("text", ["1.0.0-rc.1", "=1.0.0-rc.1", "= v1.0.0-rc.1", "0.9 || 1.0.0-rc.1"])
def test_a_pre_release_is_in_a_range_that_names_it(text: str):
    assert satisfies(Version.parse("1.0.0-rc.1"), text)


@pytest.mark.requirement("registry.prereleases")
@pytest.mark.parametrize(
    "text", ["*", "1", "^1.0.0", ">=0.1", ">=1.0.0-rc.1", "1.0.0-rc.2", "1.0.0-rc.1.0", "1.0.0-rc.1 <0.5", "<2"]
)
def test_a_pre_release_is_in_no_other_range(text: str):
    assert not satisfies(Version.parse("1.0.0-rc.1"), text)


@pytest.mark.requirement("registry.newest", "registry.prereleases")
@pytest.mark.parametrize(
    ("text", "best"),
    [
        (None, "1.10.0"),
        ("^1", "1.10.0"),
        ("~1.9", "1.9.3"),
        ("1.0.0-rc.10", "1.0.0-rc.10"),
        ("^0.4", None),
    ],
)
def test_the_newest_version_of_a_range_is_found(text: str | None, best: str | None):
    assert newest(["1.9.3", "1.10.0", "2.0.0-rc.1", "1.0.0-rc.10", "1.9.0"], text) == best


@pytest.mark.requirement("registry.newest", "registry.prereleases")
def test_without_a_release_the_newest_pre_release_is_found():
    assert newest(["1.0.0-alpha.2", "1.0.0-alpha.10", "0.9.0-rc"], None) == "1.0.0-alpha.10"
    assert newest([], None) is None
