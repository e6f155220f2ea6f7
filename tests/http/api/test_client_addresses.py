import tracemalloc
from ipaddress import ip_network

from builders.http_apps import LogCapture
from cases import each
from tapgate.http.http_messages import add_header
from tapgate.runtime.client_addresses import ClientAddresses, get_address_key, is_within

BEHIND_PROXY = ClientAddresses([ip_network("10.0.0.0/8"), ip_network("::1/128")])


@each(
    "peer, forwarded, address",
    [
        ("10.0.0.1", b"203.0.113.7", "203.0.113.7"),
        ("::1", b"203.0.113.7", "203.0.113.7"),
        ("10.0.0.1", b"198.51.100.1, 203.0.113.7", "203.0.113.7"),  # the first may be forged
        ("10.0.0.1", b"203.0.113.7, 10.0.0.2", "203.0.113.7"),  # two proxies
        ("10.0.0.1", b"", "10.0.0.1"),
        ("10.0.0.1", b"unknown", "10.0.0.1"),
        ("203.0.113.9", b"10.0.0.3", "203.0.113.9"),  # not a trusted proxy
        ("local", b"203.0.113.7", "local"),
        ("10.0.0.1", b"203.0.113.7:5678", "203.0.113.7"),
        ("10.0.0.1", b"198.51.100.1:1, 203.0.113.7:5678, 10.0.0.2:80", "203.0.113.7"),
        ("10.0.0.1", b"[2001:db8::7]:443", "2001:db8::7"),
        ("10.0.0.1", b"[2001:db8::7]", "2001:db8::7"),
        ("10.0.0.1", b"2001:db8::7", "2001:db8::7"),
        ("10.0.0.1", b"203.0.113.7, [::1]:443", "203.0.113.7"),
        ("10.0.0.1", b"203.0.113.7:http", "10.0.0.1"),
        ("10.0.0.1", b"203.0.113.7:123456", "10.0.0.1"),
        ("10.0.0.1", b"[203.0.113.7:1", "10.0.0.1"),
        ("10.0.0.1", b"fe80::1%any text", "10.0.0.1"),
        ("::ffff:10.0.0.1", b"203.0.113.7", "203.0.113.7"),  # a dual-stack socket
        ("10.0.0.1", b"192.0.2.1," * 6_000 + b"203.0.113.7", "203.0.113.7"),
        # Truncated within an address, whose remainder could be another address.
        ("10.0.0.1", b"192.0.2.1, " + b"10.0.0.2," * 56 + b"10.0.0.3", "10.0.0.2"),
    ],
)
def test_client_address_is_the_last_untrusted_hop(
    peer: str, forwarded: bytes, address: str
) -> None:
    assert BEHIND_PROXY.resolve(peer, {b"x-forwarded-for": forwarded}) == address


def test_long_headers_are_not_cached() -> None:
    addresses = ClientAddresses([ip_network("10.0.0.0/8")])
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for number in range(200):
        addresses.resolve("10.0.0.1", {b"x-forwarded-for": b"%d," % number * 10_000})
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 1_000_000


def test_forwarded_address_is_ignored_without_trusted_proxies() -> None:
    found = ClientAddresses([]).resolve("127.0.0.1", {b"x-forwarded-for": b"203.0.113.7"})
    assert found == "127.0.0.1"


def test_forwarded_address_without_a_trusted_proxy_is_logged_once(log_capture: LogCapture) -> None:
    addresses = ClientAddresses([])
    for _ in range(3):
        addresses.resolve("203.0.113.9", {b"x-forwarded-for": b"198.51.100.1"})
        addresses.resolve("203.0.113.9", {})
    BEHIND_PROXY.resolve("10.0.0.1", {b"x-forwarded-for": b"203.0.113.7"})
    (line,) = log_capture.records
    assert (line["event"], line["level"]) == ("addresses.untrusted_proxy", "warning")
    assert "TAPGATE_TRUSTED_PROXIES" in line["hint"]


def test_forwarded_addresses_in_several_header_lines_are_combined() -> None:
    """The last header line alone contains only a trusted proxy's address."""
    headers: dict[bytes, bytes] = {}
    for hop in (b"198.51.100.1", b"203.0.113.7", b"10.0.0.2"):
        add_header(headers, b"x-forwarded-for", hop)
    assert BEHIND_PROXY.resolve("10.0.0.1", headers) == "203.0.113.7"


@each(
    "first, second",
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff"),
        ("2001:DB8:1:2::1", "2001:db8:1:2:0::1"),
    ],
)
def test_addresses_of_one_ipv6_network_share_a_key(first: str, second: str) -> None:
    assert get_address_key(first) == get_address_key(second)


def test_different_networks_have_different_keys() -> None:
    addresses = [
        "2001:db8:1:2::1",
        "2001:db8:1:3::1",
        "203.0.113.7",
        "203.0.113.8",
        "::ffff:203.0.113.7",  # an IPv4 peer on a dual-stack socket
        "::ffff:203.0.113.8",
        "64:ff9b::203.0.113.7",  # translated by NAT64
        "64:ff9b::203.0.113.8",
        "local",
    ]
    assert len({get_address_key(address) for address in addresses}) == len(addresses)


@each(
    "address, within",
    [
        ("203.0.113.7", True),
        ("::ffff:203.0.113.7", True),
        ("203.0.114.7", False),
        ("::ffff:203.0.114.7", False),
        ("2001:db8::7", True),
        ("2001:db9::7", False),
        ("", False),
        ("local", False),
    ],
)
def test_address_is_matched_against_networks(address: str, within: bool) -> None:
    networks = (ip_network("203.0.113.0/24"), ip_network("2001:db8::/32"))
    assert is_within(address, networks) is within
