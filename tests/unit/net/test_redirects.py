"""The request that follows a redirect."""

import pytest
from yarl import URL

from toolcrib.contracts.base.errors import EgressDenied
from toolcrib.infrastructure.net._transport import Hop, redirect_request

HEADERS = {
    "Accept": "application/json",
    "Accept-Language": "en",
    "User-Agent": "test",
    "Authorization": "Bearer x",
    "Cookie": "a=b",
    "X-Api-Key": "k",
    "Content-Type": "application/json",
}


def request(method: str = "GET", body: bytes | None = None) -> Hop:
    return Hop(method, URL("https://a.test/dir/page?q=1"), HEADERS, body)


@pytest.mark.requirement("net.redirects_judged")
@pytest.mark.parametrize(
    ("method", "status", "then"),
    [
        ("POST", 301, "GET"),
        ("POST", 302, "GET"),
        ("POST", 303, "GET"),
        ("PUT", 303, "GET"),
        ("PUT", 302, "PUT"),
        ("HEAD", 303, "HEAD"),
        ("GET", 301, "GET"),
        ("POST", 307, "POST"),
        ("POST", 308, "POST"),
    ],
)
def test_method_and_body_follow_the_status(method: str, status: int, then: str) -> None:
    body = b"{}" if method in {"POST", "PUT"} else None
    following = redirect_request(request(method, body), status, "../other")
    assert following.method == then
    assert following.body == (body if then == method else None)
    assert ("Content-Type" in following.headers) == (then == method)
    assert str(following.url) == "https://a.test/other"
    assert following.headers["X-Api-Key"] == "k"


@pytest.mark.requirement("net.redirect_headers")
@pytest.mark.parametrize(
    "location", ["https://b.test/", "//b.test/", "http://a.test/", "https://a.test:8443/", "https://sub.a.test/"]
)
def test_another_origin_gets_content_negotiation_headers_only(location: str) -> None:
    following = redirect_request(request(), 302, location)
    assert set(following.headers) == {"Accept", "Accept-Language", "User-Agent"}


@pytest.mark.requirement("net.redirect_headers")
def test_body_is_never_sent_to_another_origin() -> None:
    with pytest.raises(EgressDenied, match=r"https://b\.test; if that is the right one"):
        redirect_request(request("POST", b"{}"), 307, "https://b.test/?token=s3cret")


@pytest.mark.requirement("net.redirects_judged")
@pytest.mark.parametrize("location", ["http://[::1/", "mailto:someone", "http://a.test:99999/", "javascript:alert(1)"])
def test_malformed_location_is_refused(location: str) -> None:
    with pytest.raises(EgressDenied, match=r"'a\.test' redirects to a malformed URL"):
        redirect_request(request(), 302, location)
