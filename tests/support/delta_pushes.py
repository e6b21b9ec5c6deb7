"""A client that pushes deltas to a running host."""

from __future__ import annotations

from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from support.delta_clients import A, d, metrics_data
from support.waiting import wait_until
from support.wire_client import WireClient

PATIENCE_S = 60


def push_delta(
    bootstrap: str, value: float, start: int, *, terminating: bool = False, patience_s: float = PATIENCE_S
) -> None:
    """Push a delta of one minute as client A, until the host accepts it."""
    data = metrics_data([d(value, start, start + 60)], {}).SerializeToString()
    host, _, port = bootstrap.rpartition(":")
    with WireClient((host, int(port))) as client:
        client.introduce()
        request = PushTelemetryRequest(
            client_instance_id=A,
            subscription_id=client.subscriptions(A).subscription_id,
            terminating=terminating,
            compression_type=0,
            metrics=data,
        )
        wait_until(lambda: client.send(request).error_code == 0, "an accepted push", patience_s)
