"""Addresses of clients, as Java prints them."""

from __future__ import annotations

import ipaddress


def java_host_address(text: str) -> str:
    """An address as Java's ``getHostAddress`` prints it: match patterns and limits are compared with that.

    Raises:
        ValueError: It is a name, or nothing.
    """
    address, _, scope = text.partition("%")
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    groups = ":".join(f"{int(group, 16):x}" for group in parsed.exploded.split(":"))
    return f"{groups}%{scope}" if scope else groups
