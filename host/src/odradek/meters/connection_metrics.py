"""The metrics of connection limits (KIP-612).

Kafka's group ``socket-server-metrics`` is offered in two domains: ``kafka.server``, as in Kafka, and
``kafka.network``, as in the KIP.
"""

from __future__ import annotations

from collections.abc import Iterator

from odradek.meters.instrument import Instrument
from odradek.quota.connection_quotas import ConnectionQuotas
from odradek.quota.connection_rates import GROUP
from odradek.telemetry.client_metrics_stats import MetricRow

DOMAINS = ("kafka.server", "kafka.network")
RATE = "{connection}/s"
MEANINGS = {
    "broker-connection-accept-rate": (RATE, "Accepted connections of the host"),
    "connection-accept-rate": (RATE, "Accepted connections of a listener, or of an address with a limit"),
    "connection-accept-throttle-time": ("ms", "Delay of a listener because of a rate, mean"),
    "ip-connection-accept-throttle-time": ("ms", "Throttle time of connections over an address's rate, mean"),
}
LABELS = {"connection-accept-rate": ("listener", "ip")}
"""These labels are empty if Kafka has no tag: all rows of a metric have the same labels."""
BLOCKED = "AcceptorBlockedPercent"
CONNECTION_INSTRUMENTS = {
    f"{domain}:{name}": Instrument(
        f"{domain}.{GROUP.replace('-', '.')}.{name.replace('-', '.')}", "gauge", unit, meaning
    )
    for domain in DOMAINS
    for name, (unit, meaning) in MEANINGS.items()
} | {
    f"kafka.network:{BLOCKED}": Instrument(
        "kafka.network.acceptor.blocked.percent", "gauge", "1", "Share of the time that an acceptor waited"
    ),
    "connections-limit": Instrument(
        "odradek.connections.limit", "gauge", "{connection}", "Limit of open connections to the whole host"
    ),
}
"""By row name."""


def connection_rows(quotas: ConnectionQuotas, now_ms: int) -> Iterator[MetricRow]:
    """Yield all metrics of the connection limits."""
    yield MetricRow("connections-limit", "gauge", {}, quotas.most)
    for (name, _, tags), value in quotas.measured(now_ms):
        labels = dict.fromkeys(LABELS.get(name, ()), "") | dict(tags)
        for domain in ("kafka.network",) if name == BLOCKED else DOMAINS:
            yield MetricRow(f"{domain}:{name}", "gauge", labels, value)
