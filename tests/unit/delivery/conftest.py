"""Records to queue."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from odradek.plugin import ClientTelemetryPayload, ConnectionContext, RequestContext, TelemetryRecord


@pytest.fixture
def record_of() -> Callable[[int], TelemetryRecord]:
    """A record with so many bytes of payload."""
    connection = ConnectionContext(
        connection_id="127.0.0.1:9092-127.0.0.1:40000-0",
        listener_name="PLAINTEXT",
        security_protocol="PLAINTEXT",
        client_address="127.0.0.1",
        client_port=40000,
        node_id=1,
    )
    request = RequestContext(
        connection=connection, api_key=72, api_version=0, correlation_id=1, client_id=None, received_ms=0
    )

    def record(size_bytes: int = 10) -> TelemetryRecord:
        payload = ClientTelemetryPayload(
            client_instance_id=bytes(16), terminating=False, data=bytes(size_bytes)
        )
        return TelemetryRecord(request, 1_000, payload)

    return record
