"""What redaction leaves alone."""

from typing import Any

import pytest

from toolcrib.infrastructure.secrets import PLACEHOLDER, Redactor

pytestmark = pytest.mark.requirement("secrets.no_false_harm")


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        1,
        2.5,
        "an ordinary text with pass in it",
        ["a", ["b"]],
        {"key": {"nested": [None, "x"]}, "token": "abc", "password": "not one of ours"},
    ],
)
def test_json_that_holds_no_secret_stays_as_it_is(value: Any):
    assert Redactor(["sk-live-0123456789"]).json(value) == value


@pytest.mark.parametrize("short", ["", "a", "true", "1234567"])
def test_short_values_are_left_alone_because_replacing_them_would_destroy_ordinary_text(short: str):
    redactor = Redactor([short])

    assert not redactor
    assert redactor.text(f"a true sentence {short} 1234567") == f"a true sentence {short} 1234567"
    assert redactor.json({short: [short]}) == {short: [short]}


def test_without_secrets_json_is_not_even_copied():
    value = {"a": [1]}

    assert Redactor([]).json(value) is value


def test_the_text_around_a_secret_stays():
    redactor = Redactor(["sk-live-0123456789"])

    assert redactor
    assert redactor.text("Bearer sk-live-0123456789, twice sk-live-0123456789.") == (
        f"Bearer {PLACEHOLDER}, twice {PLACEHOLDER}."
    )


def test_a_secret_that_contains_another_is_replaced_whole():
    assert Redactor(["password", "password-of-ann"]).text("password-of-ann password") == f"{PLACEHOLDER} {PLACEHOLDER}"
