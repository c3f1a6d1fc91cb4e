"""Attacks on redaction: a tool that echoes its credential in any common spelling, at any place."""

import base64
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.infrastructure.secrets import PLACEHOLDER, Redactor

pytestmark = pytest.mark.requirement("secrets.redaction")

SECRETS = [
    "sk-live-0123456789",
    "p@ss word/with?every&thing=+",
    'quotes " and \\ back-slashes\n',
    "pässwörd-with-ümlauts",
    "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\n-----END KEY-----",
    "12345678",
    "\u00ff\u00fe?>~~~\u00ff\u00fe?>",
]

SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "url-safe base64": lambda secret: base64.urlsafe_b64encode(secret.encode()).decode(),
    "hex": lambda secret: secret.encode().hex(),
    "upper-case hex": lambda secret: secret.encode().hex().upper(),
    "URL component": lambda secret: quote(secret, safe=""),
    "URL path": quote,
    "URL form": quote_plus,
    "JSON": lambda secret: json.dumps(secret, ensure_ascii=False)[1:-1],
    "ASCII JSON": lambda secret: json.dumps(secret)[1:-1],
}


@pytest.mark.parametrize("secret", SECRETS, ids=range(len(SECRETS)))
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_secret_is_replaced_in_every_common_spelling(secret: str, spelling: str):
    spelled = SPELLINGS[spelling](secret)

    redacted = Redactor([secret]).text(f"before {spelled} after")

    assert PLACEHOLDER in redacted
    assert spelled not in redacted
    assert redacted.startswith("before ")
    assert redacted.endswith(" after")


@pytest.mark.parametrize("secret", SECRETS, ids=range(len(SECRETS)))
@pytest.mark.parametrize("before", ["", "u", "us", "use", "user:"])
@pytest.mark.parametrize("after", ["", "x", "xy", "xyz"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_secret_inside_of_a_base64_text_is_replaced_at_every_offset(
    secret: str, before: str, after: str, encode: Callable[[bytes], bytes]
):
    encoded = encode(f"{before}{secret}{after}".encode()).decode()

    redacted = Redactor([secret]).text(encoded)

    assert PLACEHOLDER in redacted
    kept = redacted.replace(PLACEHOLDER, "")
    assert len(kept) * 6 <= (len(before.encode()) + len(after.encode())) * 8 + 6 * 6


def test_a_secret_is_replaced_in_keys_values_and_nested_lists():
    secret = "sk-live-0123456789"

    redacted = Redactor([secret]).json({secret: [{"echo": f"Bearer {secret}"}, (secret, 1, None)], "n": 2})

    assert redacted == {PLACEHOLDER: [{"echo": f"Bearer {PLACEHOLDER}"}, [PLACEHOLDER, 1, None]], "n": 2}


def test_json_inside_of_a_string_is_redacted_too():
    secret = SECRETS[2]
    body = json.dumps({"error": f"bad token {secret}"})

    assert json.loads(Redactor([secret]).json({"body": body})["body"]) == {"error": f"bad token {PLACEHOLDER}"}


def test_every_one_of_several_secrets_is_replaced():
    assert Redactor(SECRETS).json(SECRETS) == [PLACEHOLDER] * len(SECRETS)


printable = st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"]))


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=8, max_size=40), printable, printable)
def test_whatever_the_secret_no_spelling_of_it_is_left(secret: str, before: str, after: str):
    redactor = Redactor([secret])
    spelled = [SPELLINGS[name](secret) for name in SPELLINGS]

    redacted = redactor.json([f"{before}{each}{after}" for each in spelled])

    for each, left in zip(spelled, redacted, strict=True):
        assert PLACEHOLDER in left
        assert each not in left or each in PLACEHOLDER * 2
