"""The verdicts of an egress policy on URLs and addresses; nothing is resolved or opened."""

import pytest
from yarl import URL

from toolcrib.contracts.base.errors import EgressDenied, InvalidSettings
from toolcrib.infrastructure.net import EgressPolicy, Origin

DEFAULT = EgressPolicy()


@pytest.mark.requirement("net.url_judged")
@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("https://api.example.com/v1?x=1", "api.example.com", 443),
        ("HTTP://API.Example.COM/", "api.example.com", 80),
        ("http://example.com./", "example.com", 80),
        ("http://8.8.8.8/", "8.8.8.8", 80),
        ("https://[2606:4700:0:0::1111]/", "2606:4700::1111", 443),
        ("https://bücher.example/", "xn--bcher-kva.example", 443),
        ("http://snake_case.example/", "snake_case.example", 80),
    ],
)
def test_public_url_is_admitted_with_its_canonical_origin(url: str, host: str, port: int) -> None:
    assert DEFAULT.admit(URL(url))[1:] == (host, port)


@pytest.mark.requirement("net.url_judged")
@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://example.com/", "scheme 'ftp'"),
        ("file:///etc/passwd", "not a host name"),
        ("/relative", "not a host name"),
        ("http://user@example.com/", "user information"),
        ("http://:secret@example.com/", "user information"),
        ("http://example.com:8080/", "port 8080"),
        ("http://example.com:0/", "port 0"),
        ("http://exa mple.com/", "not a host name"),
        ("http://ex%41mple.com/", "not a host name"),
        ("http://-bad.example/", "not a host name"),
        ("http://a..b/", "not a host name"),
        (f"http://{'a.' * 130}com/", "not a host name"),
        ("http://2130706433/", "unusual spelling"),
        ("http://127.0.0.1./", "unusual spelling"),
        ("http://example.0x1/", "unusual spelling"),
        ("http://[::1%25lo]/", "zones"),
        ("http://[v1.x:y]/", "not a plain IPv6 address"),
        ("http://127.0.0.1/", "loopback"),
        ("http://[::ffff:10.0.0.1]/", "carries 10.0.0.1 (private"),
    ],
)
def test_url_is_refused_with_the_reason(url: str, reason: str) -> None:
    with pytest.raises(EgressDenied) as caught:
        DEFAULT.admit(URL(url))
    assert reason in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.requirement("net.url_judged")
def test_host_patterns_limit_the_names_that_may_be_asked_for() -> None:
    policy = EgressPolicy(hosts=("api.github.com", "*.example.com"))
    policy.admit(URL("https://api.github.com/"))
    policy.admit(URL("https://a.b.example.com/"))
    for url in ("https://github.com/", "https://example.com/", "https://evilexample.com/", "https://8.8.8.8/"):
        with pytest.raises(EgressDenied, match=r"not in the policy's `hosts`: api\.github\.com"):
            policy.admit(URL(url))


@pytest.mark.requirement("net.url_judged")
def test_schemes_and_ports_can_be_narrowed() -> None:
    policy = EgressPolicy(schemes=("https",), ports=(443, 8443))
    policy.admit(URL("https://example.com:8443/"))
    with pytest.raises(EgressDenied, match="use https"):
        policy.admit(URL("http://example.com/"))


@pytest.mark.requirement("net.exception_binding")
def test_named_exception_opens_its_own_name_and_port_only() -> None:
    policy = EgressPolicy(allow=("localhost:11434",))
    assert policy.admit(URL("http://localhost:11434/api")) == Origin("http", "localhost", 11434)
    policy.vet(Origin("http", "localhost", 11434), "127.0.0.1")
    policy.vet(Origin("http", "localhost", 11434), "::1")
    for origin in (Origin("http", "evil.test", 11434), Origin("http", "localhost", 80)):
        with pytest.raises(EgressDenied, match="loopback"):
            policy.vet(origin, "127.0.0.1")
    for url in ("http://127.0.0.1:11434/", "http://localhost:11435/", "http://evil.test:11434/"):
        with pytest.raises(EgressDenied):
            policy.admit(URL(url))


@pytest.mark.requirement("net.exception_binding")
@pytest.mark.parametrize("address", ["169.254.169.254", "fd00:ec2::254", "224.0.0.1", "0.0.0.0", "169.254.1.1"])
def test_named_exception_never_leads_to_metadata_link_local_or_multicast(address: str) -> None:
    policy = EgressPolicy(allow=("internal.corp:80",))
    policy.vet(Origin("http", "internal.corp", 80), "10.1.2.3")
    with pytest.raises(EgressDenied, match="no host name opens this range"):
        policy.vet(Origin("http", "internal.corp", 80), address)


@pytest.mark.requirement("net.exception_binding")
@pytest.mark.parametrize(
    ("entry", "url"),
    [
        ("127.0.0.1:8123", "http://127.0.0.1:8123/"),
        ("[::1]:8123", "http://[0:0::1]:8123/"),
        ("169.254.169.254:80", "http://169.254.169.254/"),
    ],
)
def test_address_exception_opens_the_literal_and_no_name_that_leads_there(entry: str, url: str) -> None:
    policy = EgressPolicy(allow=(entry,))
    origin = policy.admit(URL(url))
    policy.vet(origin, origin.host)
    with pytest.raises(EgressDenied):
        policy.vet(Origin("http", "evil.test", origin.port), origin.host)


@pytest.mark.requirement("net.exception_binding")
def test_network_exception_opens_its_addresses_on_its_port_also_through_names() -> None:
    policy = EgressPolicy(hosts=("*.corp",), allow=("10.2.0.0/16:8443", "[fd00:1::/32]:8443", "100.64.0.0/10:8443"))
    policy.admit(URL("https://10.2.3.4:8443/"))
    policy.admit(URL("https://[fd00:1::7]:8443/"))
    origin = policy.admit(URL("https://crm.corp:8443/"))
    policy.vet(origin, "10.2.3.4")
    policy.vet(origin, "::ffff:10.2.3.4")
    with pytest.raises(EgressDenied, match="private"):
        policy.vet(origin, "10.3.0.1")
    with pytest.raises(EgressDenied, match="port 8443"):
        policy.vet(origin, "8.8.8.8")
    with pytest.raises(EgressDenied, match="metadata"):
        policy.vet(origin, "100.100.100.200")
    with pytest.raises(EgressDenied, match="private"):
        policy.vet(Origin("https", "crm.corp", 443), "10.2.3.4")
    with pytest.raises(EgressDenied, match="hosts"):
        policy.admit(URL("https://evil.test:8443/"))


@pytest.mark.requirement("net.connected_address_judged")
def test_answer_that_is_no_address_is_refused() -> None:
    with pytest.raises(EgressDenied, match="not an address"):
        DEFAULT.vet(Origin("http", "example.com", 80), "not-an-address")


@pytest.mark.requirement("net.policy_settings")
def test_policy_is_read_from_a_comma_list() -> None:
    policy = EgressPolicy.from_settings(" 127.0.0.1:8123, LocalHost:11434 ,,10.2.0.0/16:443")
    assert policy.allow == ("127.0.0.1:8123", "LocalHost:11434", "10.2.0.0/16:443")
    assert policy.admit(URL("http://localhost:11434/")).host == "localhost"
    assert EgressPolicy.from_settings("") == EgressPolicy()


@pytest.mark.requirement("net.policy_settings")
@pytest.mark.parametrize(
    "entry",
    [
        "localhost",
        "localhost:",
        "localhost:http",
        "localhost:0",
        "localhost:65536",
        "localhost:²",
        ":80",
        "*:80",
        "*.corp:80",
        "10.2.0.1/16:443",
        "10.2.0.0/33:443",
        "::1:80",
        "[localhost]:80",
        "127.1:80",
        "http://localhost:80",
    ],
)
def test_malformed_exception_is_refused_with_the_forms(entry: str) -> None:
    with pytest.raises(InvalidSettings, match="localhost:11434") as caught:
        EgressPolicy.from_settings(entry)
    assert repr(entry) in str(caught.value)


@pytest.mark.requirement("net.policy_settings")
def test_malformed_limits_patterns_schemes_and_ports_are_refused() -> None:
    with pytest.raises(InvalidSettings, match="host pattern 'exa\\*mple'"):
        EgressPolicy(hosts=("exa*mple",))
    with pytest.raises(InvalidSettings, match="scheme 'ftp'"):
        EgressPolicy(schemes=("ftp",))
    with pytest.raises(InvalidSettings, match="'70000'"):
        EgressPolicy(ports=(70000,))
    with pytest.raises(InvalidSettings, match="max_redirects >= 0"):
        EgressPolicy(max_redirects=-1)
    with pytest.raises(InvalidSettings, match="max_bytes >= 1"):
        EgressPolicy(max_bytes=0)
