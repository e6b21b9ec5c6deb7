"""The settings and counts of the server of the pages."""

from __future__ import annotations

from dataclasses import dataclass, field

from odradek.endpoints import Address, ListenerTls
from odradek_console.json_form import JsonRow
from odradek_console.web.proxies import Proxies


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The address to listen on, TLS, and the bounds of a connection."""

    address: Address
    tls: ListenerTls | None = None
    max_connections: int = 500
    max_connections_per_ip: int = 250
    proxies: Proxies = field(default_factory=Proxies)
    """Their connections are of many clients, and in no share."""
    max_header_bytes: int = 16 << 10
    """Of the request line and the headers."""
    header_timeout_s: float = 15.0
    """Time of a connection until a request has begun, and until its headers have come."""
    handshake_timeout_s: float = 10.0
    """Time of a TLS handshake."""
    stall_timeout_s: float = 30.0
    """Time in which a peer must read some of an answer."""
    idle_timeout_s: int = 30
    """Time of a connection between two requests."""


@dataclass(slots=True)
class ServerCounts(JsonRow):
    """Connections that were closed."""

    refused_connections: int = 0
    """There were too many, of all or of one address."""
    slow_connections: int = 0
    """The headers of a request did not come in time, or the answer was not read."""
