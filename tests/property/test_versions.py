"""Properties of versions and ranges."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.contracts import InvalidDefinition
from toolcrib.core.registry import Version, newest, satisfies

numbers = st.integers(0, 3)
prereleases = st.lists(st.sampled_from(["a", "rc", "0", "2", "10", "x-1"]), max_size=3).map(".".join)
releases = st.builds(Version, numbers, numbers, numbers)
versions = st.builds(Version, numbers, numbers, numbers, prereleases)

places = st.lists(numbers.map(str) | st.sampled_from("xX*"), min_size=1, max_size=3).map(".".join)
comparators = st.tuples(
    st.sampled_from(["", "^", "~", ">=", "<=", ">", "<", "=", ">= "]), places | versions.map(str)
).map("".join)
ranges = st.lists(st.lists(comparators, max_size=3).map(" ".join), min_size=1, max_size=3).map(" || ".join)


@pytest.mark.requirement("registry.newest")
@settings(max_examples=300)
@given(st.lists(versions.map(str), max_size=12), ranges)
def test_the_newest_version_is_in_the_range_and_none_above_it_is(known: list[str], text: str):
    best = newest(known, text)

    fitting = [version for version in map(Version.parse, known) if satisfies(version, text)]
    assert (best is None) is (fitting == [])
    if best is not None:
        assert Version.parse(best) in fitting
        assert max(fitting) == Version.parse(best)


@pytest.mark.requirement("registry.versions")
@given(versions, versions, versions)
def test_versions_are_totally_ordered(one: Version, two: Version, three: Version):
    assert (one < two) + (one == two) + (one > two) == 1
    assert not (one <= two <= three) or one <= three
    assert Version.parse(str(one)) == one


@pytest.mark.requirement("registry.prereleases")
@given(versions, ranges)
def test_a_pre_release_is_only_in_a_range_that_spells_it(version: Version, text: str):
    if version.prerelease and satisfies(version, text):
        assert str(version) in text


@pytest.mark.requirement("registry.ranges")
@given(releases, ranges, ranges)
def test_alternatives_are_a_union_and_comparators_an_intersection(version: Version, one: str, other: str):
    assert satisfies(version, f"{one} || {other}") is (satisfies(version, one) or satisfies(version, other))
    if "||" not in one + other:
        assert satisfies(version, f"{one} {other}") is (satisfies(version, one) and satisfies(version, other))


@pytest.mark.requirement("registry.ranges")
@given(releases, releases)
def test_a_caret_holds_what_keeps_the_leftmost_number_that_is_not_zero(base: Version, version: Version):
    kept = 1 if base.major else 2 if base.minor else 3
    compatible = version >= base and str(version).split(".")[:kept] == str(base).split(".")[:kept]

    assert satisfies(version, f"^{base}") is compatible


@pytest.mark.requirement("registry.ranges", "registry.versions")
@given(st.text("0123456789.^~<>=|xvV-+ a,*", max_size=20), versions)
def test_no_text_raises_anything_but_invalid_definition(text: str, version: Version):
    for read in (lambda: satisfies(version, text), lambda: Version.parse(text)):
        try:
            read()
        except InvalidDefinition:
            continue
