"""What of a URL reaches the wire."""

from urllib.parse import unquote

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.net.servers import serving
from toolcrib.infrastructure.net import EgressDenied, EgressPolicy, HttpSession
from toolcrib.infrastructure.net._urls import join, parse

KEPT = "/a%2Cb,c%2f%2F;d=e:@!$&'()*+~-._/%7Ex?q=a%2Cb,c&filter[x]=1&d=a+b%20c/?:@"


async def raw_path(url: str) -> str:
    """What a server reads when a path on it is asked for."""
    seen: list[str] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        seen.append(request.raw_path)
        return web.Response()

    async with (
        serving(handle) as port,
        HttpSession(EgressPolicy(allow=(f"127.0.0.1:{port}",))) as session,
    ):
        await session.request("GET", f"http://127.0.0.1:{port}{url}")
    (found,) = seen
    return found


@pytest.mark.requirement("net.url_kept")
@pytest.mark.parametrize(
    ("written", "sent"),
    [
        (KEPT, KEPT),
        ("", "/"),
        ("?a=b", "/?a=b"),
        ("/x#part?y", "/x"),
        ('/a b/ä\\"<>?q=ö {}|^`#frag', "/a%20b/%C3%A4%5C%22%3C%3E?q=%C3%B6%20%7B%7D%7C%5E%60"),
        ("/100%/%zz/%4?a=%&b=%e", "/100%25/%25zz/%254?a=%25&b=%25e"),
        ("/a\r\nx-evil: 1?b=\n\t", "/a%0D%0Ax-evil:%201?b=%0A%09"),
        ("/x?", "/x?"),
    ],
)
async def test_what_is_legal_is_sent_as_written_and_the_rest_is_encoded(written: str, sent: str) -> None:
    found = await raw_path(written)
    assert found.removesuffix("?") == sent.removesuffix("?")


@pytest.mark.requirement("net.url_kept")
@given(st.text(st.characters(codec="utf-8"), max_size=30), st.text(st.characters(codec="utf-8"), max_size=30))
def test_no_text_changes_where_a_request_goes_and_encoding_again_changes_nothing(path: str, query: str) -> None:
    url = parse(f"https://api.test/{path}?{query}")
    assert (url.scheme, url.raw_host, url.port, url.raw_user) == ("https", "api.test", 443, None)
    assert str(url).isascii()
    assert parse(str(url)) == url
    if not {"?", "#", "%"} & set(path):
        assert unquote(url.raw_path) == f"/{path}"


@pytest.mark.requirement("net.url_kept")
@pytest.mark.parametrize(
    ("reference", "url"),
    [
        ("/y?a=%2C,", "https://api.test/y?a=%2C,"),
        ("z", "https://api.test/v1/z"),
        ("?page=2", "https://api.test/v1/x?page=2"),
        ("//other.test/a%2fb", "https://other.test/a%2fb"),
        ("HTTPS://Other.test/ü", "https://other.test/%C3%BC"),
    ],
)
def test_a_reference_is_joined_without_being_decoded(reference: str, url: str) -> None:
    assert str(join(parse("https://api.test/v1/x"), reference)) == url


@pytest.mark.requirement("net.url_judged")
@pytest.mark.parametrize("url", ["http://[::ⓕ]:80/", "http://a:b:c/", "http://[::1/", "http://a.test:99999999999/"])
async def test_an_authority_that_can_be_read_in_two_ways_is_denied(url: str) -> None:
    async with HttpSession() as session:
        with pytest.raises(EgressDenied):
            await session.request("GET", url)


@pytest.mark.requirement("net.url_judged")
async def test_a_lone_surrogate_in_a_url_is_denied() -> None:
    async with HttpSession() as session:
        with pytest.raises(EgressDenied, match="malformed"):
            await session.request("GET", "https://api.test/\ud83d")


@pytest.mark.requirement("net.url_kept")
def test_an_international_host_is_asked_by_its_ascii_name() -> None:
    assert str(parse("https://bücher.test/ä")) == "https://xn--bcher-kva.test/%C3%A4"
