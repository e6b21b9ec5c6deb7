"""Shares of something that is bounded, so that one user or one address cannot take all of it."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address


class Shares:
    """How much each of many holders has. Holders that have nothing take no memory.

    Args:
        most: What one holder may have.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.held: dict[str, int] = {}

    def take(self, holder: str) -> bool:
        """Give a holder one more, to be given back once; False if it has its share already."""
        held = self.held.get(holder, 0)
        if held >= self.most:
            return False
        self.held[holder] = held + 1
        return True

    def give_back(self, holder: str) -> None:
        """A holder has one less."""
        held = self.held.pop(holder) - 1
        if held:
            self.held[holder] = held


def parsed_ip(text: str) -> IPv4Address | IPv6Address | None:
    """An IP address; an IPv4 address that is written as IPv6 counts as IPv4. None if it is no address."""
    try:
        found = ip_address(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found


def holder_of(address: str) -> str:
    """The holder of a share: an address of IPv4, or a /64 of IPv6, which a single customer has."""
    found = parsed_ip(address)
    if isinstance(found, IPv6Address):
        return str(IPv6Network((int(found) >> 64 << 64, 64)))
    return address if found is None else str(found)
