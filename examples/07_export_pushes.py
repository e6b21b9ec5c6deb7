"""A custom plugin: an exporter that prints how often each client pushes, and how much.

Run it: ``python examples/07_export_pushes.py`` (needs ``odradek[demo]``). Takes seconds.

To run the plugin in a host: ``odradek serve --plugin FILE``.
"""

from __future__ import annotations

from collections import Counter

from confluent_kafka import Producer

from odradek import testing
from odradek.otlp import merged_scopes
from odradek.plugin import ClientTelemetryContext, ClientTelemetryPayload, PluginConfig, hookimpl


class PushMeter:
    """Adds up pushes and metrics. The host calls it on its event loop, so it must not block."""

    def __init__(self) -> None:
        self.pushes: Counter[str] = Counter()
        self.metrics: Counter[str] = Counter()
        self.intervals_ms: dict[str, int] = {}

    def client_telemetry_exporter(self) -> PushMeter:
        return self

    def export_metrics(self, context: ClientTelemetryContext, payload: ClientTelemetryPayload) -> None:
        client_id = context.request.client_id or ""
        self.pushes[client_id] += 1
        self.metrics[client_id] += len(merged_scopes(payload.data).scope_metrics.metrics)
        self.intervals_ms[client_id] = context.push_interval_ms

    def close(self) -> None:
        """Print the sums. The host calls it once, when it stops."""
        for client_id, pushes in self.pushes.items():
            seconds = self.intervals_ms[client_id] / 1000
            each = self.metrics[client_id] / pushes
            print(f"{client_id} pushes every {seconds:g} s, {each:.0f} metrics each time")


class MeterPlugin:
    @hookimpl
    def odradek_client_telemetry(self, config: PluginConfig) -> PushMeter:
        return PushMeter()


def main() -> None:
    with testing.host(plugins=[MeterPlugin]) as host:
        host.subscribe("*", interval_ms=500)
        producer = Producer({"bootstrap.servers": host.bootstrap, "client.id": "my-app", "log_level": 3})
        host.requests.wait_for("PushTelemetry", count=3, timeout_s=20)
        del producer


if __name__ == "__main__":
    main()
