"""The connection and the request that a push arrived in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

UNKNOWN = "unknown"
"""Software name and version of a client that sent none (ApiVersions below v3), as in Kafka."""


@dataclass(slots=True, eq=False)
class ConnectionContext:
    """One connection of a client, from its first byte to its last.

    ApiVersions and authentication each set their fields at most once. Plugins must not change them.
    """

    connection_id: str
    """``local host:port-remote host:port-serial``, unique while the host runs."""
    listener_name: str
    security_protocol: str
    client_address: str
    """As Java's ``getHostAddress`` prints it: dotted IPv4, or IPv6 in full groups without leading zeros."""
    client_port: int
    node_id: int
    """Id of the broker that the client is connected to."""
    principal: str = "User:ANONYMOUS"
    """``<type>:<name>``. The user of a client quota is the name alone."""
    client_software_name: str = UNKNOWN
    client_software_version: str = UNKNOWN
    cluster_id: str | None = None
    """Id of the cluster of that broker, as a relay told it; None if the client is connected to a host."""


def about_client(connection: ConnectionContext, client_id: str | None = None) -> dict[str, Any]:
    """Who a line of the log is about: address, client id if it is known, and connection."""
    named = {} if not client_id else {"client_id": client_id}
    return {"address": connection.client_address, **named, "connection": connection.connection_id}


@dataclass(slots=True, eq=False)
class RequestContext:
    """One request: Kafka's ``AuthorizableRequestContext`` and more.

    ``connection`` has the software name and version, address, port, principal and listener.
    """

    connection: ConnectionContext
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    received_ms: int
    """Time when the host read the request, epoch milliseconds."""


@dataclass(slots=True, eq=False)
class ClientTelemetryContext:
    """The context of a push for an exporter (KIP-1217)."""

    push_interval_ms: int
    """The push interval that the host gave this client instance, milliseconds."""
    request: RequestContext
