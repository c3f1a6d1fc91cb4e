"""Patterns of grants."""

import pytest

from toolcrib.core.policy import names_covered, permits

pytestmark = pytest.mark.requirement("policy.grant_patterns")

URI = "ai://tools/crm/search/execute"


@pytest.mark.parametrize(
    "grant",
    [
        URI,
        "ai://*",
        "ai://tools/*",
        "ai://tools/crm/*",
        "ai://tools/crm/search/*",
        "ai://tools/*/*/execute",
        "ai://*/crm/*/*",
        "ai://tools/*/search/*",
    ],
)
def test_a_pattern_covers_the_uri(grant: str):
    assert permits((grant,), URI)


@pytest.mark.parametrize(
    "grant",
    [
        "",
        "*",
        "ai://",
        "tools/crm/search/execute",
        "AI://tools/crm/search/execute",
        "ai://tools",
        "ai://tools/crm/search",
        "ai://tools/crm/search/read",
        "ai://tools/*/execute",
        "ai://tools/crm/sea*/execute",
        "ai://tools/crm/search/execute/*",
        "ai://tools/crm/search/execute/now",
        "ai://agents/*",
    ],
)
def test_a_pattern_does_not_cover_the_uri(grant: str):
    assert not permits((grant,), URI)


def test_a_star_at_the_end_stands_for_one_segment_at_least():
    assert not permits(("ai://tools/*",), "ai://tools")
    assert not permits(("ai://tools/*/*",), "ai://tools/crm")
    assert permits(("ai://tools/*/*",), "ai://tools/crm/search")


def test_a_star_in_the_uri_is_no_pattern():
    assert not permits(("ai://tools/crm/search/execute",), "ai://tools/crm/*/execute")


def test_an_address_of_another_scheme_is_never_covered():
    assert not permits(("ai://*",), "https://tools/crm")


def test_one_of_many_grants_is_enough_and_none_is_not():
    assert permits(("ai://agents/*", URI), URI)
    assert not permits((), URI)


@pytest.mark.parametrize(
    ("grants", "names"),
    [
        (("ai://runs/desk/read", "ai://runs/crm/write", "ai://tools/a/b/read"), {"desk"}),
        (("ai://runs/desk/*", "ai://runs/crm/execute"), {"desk", "crm"}),
        (("ai://runs/desk/read", "ai://runs/*/read"), None),
        (("ai://*",), None),
        ((), set[str]()),
    ],
)
def test_the_names_that_grants_cover_are_told_and_null_means_all(grants: tuple[str, ...], names: set[str] | None):
    assert names_covered(grants, "runs", "read", "execute") == names
