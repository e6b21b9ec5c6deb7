"""Who is asking: the connection and the request behind a push."""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN = "unknown"
"""Kafka's name and version of a client that did not say (ApiVersions below v3)."""


@dataclass(slots=True, eq=False)
class ConnectionContext:
    """One connection of a client, from its first byte to its last.

    Fields that ApiVersions and authentication fill in change at most once each; plugins only read.
    """

    connection_id: str
    """``local host:port-remote host:port-serial``, unique while the host runs."""
    listener_name: str
    security_protocol: str
    client_address: str
    """As Java's ``getHostAddress`` prints it: dotted IPv4, or IPv6 in full groups without leading zeros."""
    client_port: int
    node_id: int
    """The broker that the client talks to."""
    principal: str = "User:ANONYMOUS"
    """``<type>:<name>``; the name alone is what a quota's user means."""
    client_software_name: str = UNKNOWN
    client_software_version: str = UNKNOWN


@dataclass(slots=True, eq=False)
class RequestContext:
    """One request; Kafka's ``AuthorizableRequestContext`` and what it keeps to itself.

    ``connection`` carries software name and version, address, port, principal and listener.
    """

    connection: ConnectionContext
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    received_ms: int
    """When the host read the request, epoch milliseconds."""


@dataclass(slots=True, eq=False)
class ClientTelemetryContext:
    """What an exporter learns beyond the request (KIP-1217)."""

    push_interval_ms: int
    """The interval this client instance was told, milliseconds."""
    request: RequestContext
