"""The context of a request, as a plugin gets it, without a host."""

from __future__ import annotations

from odradek.plugin import UNKNOWN, ConnectionContext, RequestContext

PUSH_TELEMETRY = 72


def request_context(
    *,
    client_id: str | None = "test",
    principal: str = "User:ANONYMOUS",
    received_ms: int = 0,
    client_address: str = "127.0.0.1",
    client_port: int = 50_000,
    client_software_name: str = UNKNOWN,
    client_software_version: str = UNKNOWN,
    listener_name: str = "PLAINTEXT",
    security_protocol: str = "PLAINTEXT",
    connection_id: str = "127.0.0.1:9092-127.0.0.1:50000-0",
    node_id: int = 1,
    cluster_id: str | None = None,
    api_key: int = PUSH_TELEMETRY,
    api_version: int = 0,
    correlation_id: int = 1,
) -> RequestContext:
    """Return the context of a request: by default a push of a client without a login, on this machine.

    Each call has a connection of its own, ``request_context().connection``. The parameters are the fields of
    `RequestContext` and `ConnectionContext`; name those that the test is about.
    """
    connection = ConnectionContext(
        connection_id=connection_id,
        listener_name=listener_name,
        security_protocol=security_protocol,
        client_address=client_address,
        client_port=client_port,
        node_id=node_id,
        principal=principal,
        client_software_name=client_software_name,
        client_software_version=client_software_version,
        cluster_id=cluster_id,
    )
    return RequestContext(connection, api_key, api_version, correlation_id, client_id, received_ms)
