"""The metrics of connection limits (KIP-612).

Kafka's group ``socket-server-metrics`` is offered under both domains: ``kafka.server``, where Kafka has it,
and ``kafka.network``, where the KIP says it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from odradek.quota.connection_quotas import ConnectionQuotas
from odradek.quota.connection_rates import GROUP
from odradek.server.meters.instrument import Instrument
from odradek.telemetry.client_metrics_stats import MetricRow

DOMAINS = ("kafka.server", "kafka.network")
RATE = "{connection}/s"
MEANINGS = {
    "broker-connection-accept-rate": (RATE, "Connections of the host that were accepted"),
    "connection-accept-rate": (RATE, "Connections of a listener, or of an address that has a limit"),
    "connection-accept-throttle-time": ("ms", "How long a listener waited because of a rate, mean"),
    "ip-connection-accept-throttle-time": ("ms", "How long addresses were turned away, mean"),
}
LABELS = {"connection-accept-rate": ("listener", "ip")}
"""Labels that are empty where Kafka has no tag: a metric has the same labels in all its rows."""
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
    )
}
"""By row name."""


def connection_rows(quotas: ConnectionQuotas, now_ms: int) -> Iterator[MetricRow]:
    """Every metric of the limits of connections."""
    for (name, _, tags), value in quotas.measured(now_ms):
        labels = dict.fromkeys(LABELS.get(name, ()), "") | dict(tags)
        for domain in ("kafka.network",) if name == BLOCKED else DOMAINS:
            yield MetricRow(f"{domain}:{name}", "gauge", labels, value)
