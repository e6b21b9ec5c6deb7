"""Client addresses as Java prints them."""

from __future__ import annotations

import ipaddress


def java_host_address(text: str) -> str:
    """An address as Java's ``getHostAddress`` prints it, the form that match patterns and limits use.

    Raises:
        ValueError: The text is not an IP address.
    """
    address, _, scope = text.partition("%")
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    groups = ":".join(f"{int(group, 16):x}" for group in parsed.exploded.split(":"))
    return f"{groups}%{scope}" if scope else groups
