"""The settings and counts of the server of the pages."""

from __future__ import annotations

from dataclasses import dataclass, field

from odradek.endpoints import Address, ListenerTls
from odradek.settings import declare
from odradek_console.json_form import JsonRow
from odradek_console.setting_kinds import COUNT, LISTENER
from odradek_console.web.proxies import Proxies


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The address to listen on, TLS, and the bounds of a connection."""

    # fmt: off
    address: Address = declare(
        "listener", LISTENER, Address("127.0.0.1", 0),
        "Where the pages are. Port 0 is a free one; a host needs another.",
        unset="none: the console does not run", option="--listen",
    )
    max_connections: int = declare(
        "max.connections", COUNT, 500, "Connections; further ones are closed.", unit="connections",
    )
    max_connections_per_ip: int = declare(
        "max.connections.per.ip", COUNT, 250,
        "Connections of one address, or one /64 of IPv6; further ones are closed. Those of a trusted proxy "
        "do not count; raise it if another one brings all requests.", unit="connections",
    )
    max_header_bytes: int = declare(
        "max.header.bytes", COUNT, 16 << 10,
        "Size of the headers of a request, which have 15 s to come.", unit="bytes",
    )
    # fmt: on
    tls: ListenerTls | None = None
    proxies: Proxies = field(default_factory=Proxies)
    """Their connections are of many clients, and in no share."""
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
