"""Which network addresses an image may be fetched from: public ones only, in every notation.

Reference:
    IANA. IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890). The list is copied here because Python's
    `is_global` differs between releases.
"""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_NOT_PUBLIC_V4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # the host of an Azure virtual machine
        "169.254.0.0/16",  # link-local; cloud metadata services
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
_PUBLIC_V6 = IPv6Network("2000::/3")  # everything assigned for global use so far
_NOT_PUBLIC_V6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # Teredo, benchmarks, ORCHID and other protocols
        "2001:db8::/32",  # documentation
        "3fff::/20",  # documentation
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Whether an address is public. An IPv6 address that contains an IPv4 address is judged by the IPv4 address."""
    try:
        parsed = ip_address(address)
    except ValueError:  # also an IPv4 address with leading zeros
        return False
    if isinstance(parsed, IPv4Address):
        return _is_public_v4(parsed)
    if parsed.scope_id is not None:
        return False
    inner = _inner_v4(parsed)
    if inner is not None:
        return _is_public_v4(inner)
    return parsed in _PUBLIC_V6 and not any(parsed in network for network in _NOT_PUBLIC_V6)


def _is_public_v4(address: IPv4Address) -> bool:
    return not any(address in network for network in _NOT_PUBLIC_V4)


def _inner_v4(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address inside an IPv4-mapped, NAT64 or 6to4 address."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour


def literal_address(host: str) -> str | None:
    """The IP address if the host is written as one, None for a name.

    Systems read `0x7f000001`, `127.1`, `0177.0.0.1` and `2130706433` as IPv4 addresses too. A host that ends in a
    number must therefore be four decimal numbers; otherwise this raises ValueError.
    """
    if ":" in host:
        return str(IPv6Address(host))
    last = host.rstrip(".").rpartition(".")[2].lower()
    if last.isdecimal() or (last.startswith("0x") and all(digit in "0123456789abcdef" for digit in last[2:])):
        try:
            return str(IPv4Address(host))
        except AddressValueError:
            raise ValueError("an IPv4 address must be written as four decimal numbers") from None
    return None
