"""The metrics of connection limits (KIP-612).

Kafka's group ``socket-server-metrics`` is offered in two domains: ``kafka.server``, as in Kafka, and
``kafka.network``, as in the KIP.
"""

from __future__ import annotations

from collections.abc import Iterator

from odradek.metrics.metric import Metric, MetricRow, Metrics, declare
from odradek.quota.connection_quotas import ConnectionQuotas
from odradek.quota.connection_rates import GROUP

DOMAINS = ("kafka.server", "kafka.network")
RATE = "{connection}/s"
KAFKA: dict[str, list[Metric]] = {}
"""By Kafka's name. All rows of a metric have the same labels: they are empty if Kafka has no tag."""


def kafka(name: str, unit: str, sentence: str, *labels: str) -> None:
    """Declare a metric of the group in both domains."""
    names = [f"{domain}.{GROUP}.{name}".replace("-", ".") for domain in DOMAINS]
    KAFKA[name] = [declare("gauge", each, unit, sentence, *labels) for each in names]


kafka("broker-connection-accept-rate", RATE, "Accepted connections of the host")
OF_BOTH = "Accepted connections of a listener, or of an address with a limit"
kafka("connection-accept-rate", RATE, OF_BOTH, "listener", "ip")
kafka("connection-accept-throttle-time", "ms", "Delay of a listener because of a rate, mean", "listener")
OF_ADDRESSES = "Throttle time of connections over an address's rate, mean"
kafka("ip-connection-accept-throttle-time", "ms", OF_ADDRESSES, "listener")
BLOCKED = "kafka.network.acceptor.blocked.percent"
KAFKA["AcceptorBlockedPercent"] = [
    declare("gauge", BLOCKED, "1", "Share of the time that an acceptor waited", "listener")
]
LIMITS = Metrics[ConnectionQuotas]("odradek.connections")
LIMITS.gauge("limit", "{connection}", "Limit of open connections to the whole host", "most")


def connection_rows(quotas: ConnectionQuotas, now_ms: int) -> Iterator[MetricRow]:
    """Yield all metrics of the connection limits."""
    yield from LIMITS.rows(quotas)
    for (name, _, tags), value in quotas.measured(now_ms):
        for metric in KAFKA[name]:
            yield metric.row(value, **dict.fromkeys(metric.labels, "") | dict(tags))
