"""The table of denied ranges, and what hides in an IPv6 address."""

from ipaddress import ip_address

import pytest

from toolcrib.infrastructure.net.addresses import denied_range, target_addresses

pytestmark = pytest.mark.requirement("net.denied_ranges")


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("::1", "loopback"),
        ("10.0.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.1.1", "private"),
        ("fd12::1", "private"),
        ("100.64.0.1", "shared"),
        ("169.254.0.1", "link-local"),
        ("fe80::1", "link-local"),
        ("169.254.169.254", "metadata"),
        ("168.63.129.16", "metadata"),
        ("100.100.100.200", "metadata"),
        ("192.0.0.192", "metadata"),
        ("fd00:ec2::254", "metadata"),
        ("fd20:ce::254", "metadata"),
        ("224.0.0.1", "multicast"),
        ("ff02::1", "multicast"),
        ("203.0.113.7", "documentation"),
        ("2001:db8::1", "documentation"),
        ("0.0.0.0", "reserved"),
        ("::", "reserved"),
        ("255.255.255.255", "reserved"),
        ("192.0.0.8", "reserved"),
        ("198.18.0.1", "reserved"),
        ("64:ff9b:1::1", "reserved"),
        ("100::1", "reserved"),
        ("5f00::1", "reserved"),
        ("fec0::1", "reserved"),
        ("2001::1", "reserved"),
        ("4000::1", "reserved"),
    ],
)
def test_special_address_is_denied_by_kind(address: str, kind: str) -> None:
    found = denied_range(ip_address(address))
    assert found is not None
    assert found.kind == kind


@pytest.mark.parametrize(
    "address",
    ["1.1.1.1", "8.8.8.8", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"],
)
def test_public_address_is_not_denied(address: str) -> None:
    assert denied_range(ip_address(address)) is None


@pytest.mark.parametrize(
    ("address", "inside"),
    [
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("::127.0.0.1", "127.0.0.1"),
        ("::ffff:0:7f00:1", "127.0.0.1"),
        ("64:ff9b::7f00:1", "127.0.0.1"),
        ("2002:7f00:1::", "127.0.0.1"),
        ("2001:0:7f00:1::", "127.0.0.1"),
        ("2001:0:101:101:0:0:80ff:fffe", "127.0.0.1"),
        ("2606:4700::5efe:127.0.0.1", "127.0.0.1"),
        ("2606:4700::200:5efe:127.0.0.1", "127.0.0.1"),
    ],
)
def test_embedded_ipv4_address_is_unwrapped(address: str, inside: str) -> None:
    assert ip_address(inside) in target_addresses(ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "::", "::1", "2606:4700::1111"])
def test_address_that_carries_nothing_stands_for_itself(address: str) -> None:
    assert target_addresses(ip_address(address)) == (ip_address(address),)


@pytest.mark.parametrize("address", ["::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_mapped_and_nat64_addresses_stand_for_their_ipv4_address_alone(address: str) -> None:
    assert target_addresses(ip_address(address)) == (ip_address("8.8.8.8"),)
