"""Detectors of personal data: what is found, what is not, and that a long text takes no longer than its length."""

import pytest

from toolcrib.contracts import PersonalData
from toolcrib.core.policy.content_filters import personal_data

pytestmark = pytest.mark.requirement("guardrails.personal_data")

ALL: tuple[PersonalData, ...] = ("email", "phone", "card", "iban", "ssn", "ip")


def found(text: str, *kinds: PersonalData) -> list[str]:
    spans = personal_data(text, kinds or ALL)
    return sorted({f"{span.kind}:{text[span.start : span.end]}" for span in spans})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("write to ann.lee+x@mail.example.org.", "email:ann.lee+x@mail.example.org"),
        ("a@b@c.de", "email:b@c.de"),
        ("call +49 (30) 1234-5678 now", "phone:+49 (30) 1234-5678"),
        ("call (555) 123-4567", "phone:(555) 123-4567"),
        ("call 555.123.4567", "phone:555.123.4567"),
        ("Tel. 030/1234567", "phone:030/1234567"),
        ("card 4111 1111 1111 1111 43", "card:4111 1111 1111 1111"),
        ("card 5500-0000-0000-0004", "card:5500-0000-0000-0004"),
        ("n4111111111111111.", "card:4111111111111111"),
        ("IBAN DE89 3704 0044 0532 0130 00 please", "iban:DE89 3704 0044 0532 0130 00"),
        ("gb29nwbk60161331926819", "iban:gb29nwbk60161331926819"),
        ("ssn 078-05-1120", "ssn:078-05-1120"),
        ("from 192.168.0.17:80", "ip:192.168.0.17"),
        ("at 2001:db8::1, port 1", "ip:2001:db8::1"),
    ],
)
def test_it_is_found_as_it_is_usually_written(text: str, expected: str):
    assert found(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "@home, a@b, @example.org",
        "on 2026-01-31 and 01/02/2026 at 12:30:45",
        "order 1234567, 5 of 10, version 3.11",
        "4111 1111 1111 1112",
        "9111 1111 1111 1111",
        "1234567890123456789012345",
        "DE89 3704 0044 0532 0130 02",
        "DE89 3704 0044 0532 0130 00X",
        "DE89 3704",
        "ZZ89 3704 0044 0532 0130 00",
        "000-12-3456 666-12-3456 078-00-1120 078-05 1120",
        "300.1.2.3, 1.2.3.4.5, std::add, 12:30",
        "",
    ],
)
def test_what_only_looks_like_it_is_not(text: str):
    assert found(text) == []


def test_only_the_kinds_that_are_asked_for_are_found():
    text = "ann@example.org, 078-05-1120"

    assert found(text, "ssn") == ["ssn:078-05-1120"]
    assert found(text, "email", "ssn") == ["email:ann@example.org", "ssn:078-05-1120"]


@pytest.mark.parametrize(
    "unit", ["a", "@", "1", "1 ", "1-", "+1 ", "a.", "DE89", "DE89 ", "a@b.", ":", "f:", "0-", "1."]
)
def test_a_long_text_of_what_almost_fits_is_read_in_steps_that_grow_with_it(unit: str):
    assert len(found(unit * 20_000)) < 20_000
