"""Signatures of webhooks: examples of the senders' own documents, and what every form refuses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.store.samples import NOON, later
from toolcrib.contracts import Unauthenticated, WebhookForm
from toolcrib.core.triggers import sign, verify

pytestmark = pytest.mark.requirement("triggers.signature")

FORMS: tuple[WebhookForm, ...] = ("standard", "github", "stripe", "slack")
BODY = b'{"id": "evt_1", "deal": "d7"}'


def test_the_example_of_github_is_accepted():
    headers = {"x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}

    assert verify("github", "It's a Secret to Everybody", headers, b"Hello, World!", now=NOON)


def test_the_example_of_slack_is_accepted():
    body = (
        b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&"
        b"channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&"
        b"response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&"
        b"trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
    )
    headers = {
        "x-slack-request-timestamp": "1531420618",
        "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
    }
    sent = NOON.fromtimestamp(1531420618, tz=NOON.tzinfo)

    assert verify("slack", "8f742231b10e8888abcd99yyyzzz85a5", headers, body, now=sent)


def test_the_example_of_standard_webhooks_is_accepted():
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    sent = NOON.fromtimestamp(1614265330, tz=NOON.tzinfo)
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

    assert verify("standard", secret, headers, b'{"test": 2432232314}', now=sent) == "msg_p5jXN8AQM9LWM0D4loKWxJek"
    rotated = {**headers, "webhook-signature": f"v1,AAAA v1a,x {headers['webhook-signature']}"}
    assert verify("standard", secret, rotated, b'{"test": 2432232314}', now=sent)


@pytest.mark.parametrize("form", FORMS)
@given(body=st.binary(max_size=200), secret=st.text(st.characters(codec="ascii"), min_size=1, max_size=40))
def test_what_was_signed_is_accepted_and_named_alike_when_it_comes_again(form: WebhookForm, body: bytes, secret: str):
    headers = sign(form, secret, body, event_id="msg_1", at=NOON)

    event_id = verify(form, secret, headers, body, now=NOON)
    assert event_id == verify(form, secret, headers, body, now=later(200))
    assert event_id


@pytest.mark.parametrize("form", FORMS)
@given(flipped=st.integers(0, 8 * len(BODY) - 1))
def test_a_body_that_differs_by_a_bit_is_refused(form: WebhookForm, flipped: int):
    headers = sign(form, "secret", BODY, event_id="msg_1", at=NOON)
    changed = bytearray(BODY)
    changed[flipped // 8] ^= 1 << flipped % 8

    with pytest.raises(Unauthenticated):
        verify(form, "secret", headers, bytes(changed), now=NOON)


@pytest.mark.parametrize("form", FORMS)
@given(st.data())
def test_headers_that_an_attacker_writes_are_refused_and_break_nothing(form: WebhookForm, data: st.DataObject):
    names = sorted(sign(form, "secret", BODY, event_id="msg_1", at=NOON))
    written = st.text(max_size=60) | st.sampled_from(["v1,", "sha256=", "t=,v1=", "v0=zz", "v1,é", "=" * 5000])
    headers = data.draw(st.dictionaries(st.sampled_from(names), written))

    with pytest.raises(Unauthenticated, match="missing, wrong or too old"):
        verify(form, "secret", headers, BODY, now=NOON)


@pytest.mark.parametrize("form", ["standard", "stripe", "slack"])
@pytest.mark.parametrize("seconds", [301, -301])
def test_an_old_time_and_one_to_come_are_refused(form: WebhookForm, seconds: int):
    headers = sign(form, "secret", BODY, event_id="msg_1", at=NOON)

    with pytest.raises(Unauthenticated):
        verify(form, "secret", headers, BODY, now=later(seconds))
    assert verify(form, "secret", headers, BODY, now=later(seconds), tolerance_s=302)


@pytest.mark.parametrize("form", FORMS)
def test_another_secret_is_refused(form: WebhookForm):
    headers = sign(form, "secret", BODY, event_id="msg_1", at=NOON)

    with pytest.raises(Unauthenticated):
        verify(form, "secret2", headers, BODY, now=NOON)


def test_an_event_that_stripe_sends_again_keeps_its_name():
    first = sign("stripe", "secret", BODY, event_id="", at=NOON)
    again = sign("stripe", "secret", BODY, event_id="", at=later(100))

    names = {verify("stripe", "secret", headers, BODY, now=later(100)) for headers in (first, again)}
    assert names == {"evt_1"}


def test_a_header_that_is_not_signed_names_no_event():
    headers = sign("github", "secret", BODY, event_id="", at=NOON)

    one = verify("github", "secret", {**headers, "x-github-delivery": "1"}, BODY, now=NOON)
    other = verify("github", "secret", {**headers, "x-github-delivery": "2"}, BODY, now=NOON)
    assert one == other
