"""The values of the metrics of a gateway's data path."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from odradek.broker.dispatch.error_log import api_name
from odradek.meters.loop_lag import bucket_rows
from odradek.meters.memory_metrics import memory_rows
from odradek.net.pairs.client_side import ClientSide
from odradek.net.pairs.gateway import Gateway
from odradek.telemetry.client_metrics_stats import MetricRow


def gateway_rows(
    gateway: Gateway, sides: Sequence[ClientSide], names: Mapping[int, str], now_ms: int
) -> Iterator[MetricRow]:
    """Yield all metrics of the data path.

    Args:
        gateway: The gateway.
        sides: The connections of clients.
        names: The names of the APIs, by key.
        now_ms: Monotonic time.
    """
    meter = gateway.path.meter

    def of_api(key: int) -> str:
        return names.get(key, str(key))

    yield counter("pairs-opened", meter.opened)
    yield from counters("pairs-closed", "cause", meter.closed)
    yield counter("bytes", meter.client_bytes, sender="client")
    yield counter("bytes", meter.upstream_bytes, sender="broker")
    yield from counters("requests", "api", meter.requests, of_api)
    yield counter("silent-requests", meter.acks0)
    yield from counters("responses-rewritten", "api", meter.rewritten, of_api)
    yield from counters("internal-errors", "api", meter.internal_errors, of_api)
    yield counter("unmapped-nodes", int(gateway.unmapped))
    for name, routing in gateway.routings.items():
        yield from counters("server-names-refused", "reason", routing.refused, listener=name)
    yield counter("misrouted", meter.misrouted)
    for (node, kind), number in gateway.dialer.failures.items():
        yield counter("dials-failed", number, node=node, error=kind)
    for node, number in gateway.standstills.stuck.items():
        yield counter("upstream-stuck", number, node=node)
    for of, seconds in meter.added.items():
        yield from bucket_rows("gateway-added-latency", seconds, {"of": of})
    yield counter("in-flight-pauses", meter.in_flight_pauses)
    yield counter("slow-peer-pauses", gateway.slow_peers)
    outstanding = sum(len(side.pair.state.outstanding) for side in sides if side.pair is not None)
    yield gauge("outstanding", outstanding)
    yield from memory_rows(gateway.memory)
    yield gauge("nodes-known", len(gateway.table.addresses))
    yield gauge("switch", gateway.switch.position)
    yield gauge("ready", gateway.reachability.is_ready(now_ms))


def counter(name: str, value: float, **labels: str) -> MetricRow:
    """A row of a counter."""
    return MetricRow(f"gateway-{name}", "counter", labels, value)


def counters(
    name: str, label: str, numbers: Mapping[Any, int], named: Callable[[Any], str] = str, **labels: str
) -> Iterator[MetricRow]:
    """Yield a row of a counter for each key."""
    for key, number in numbers.items():
        yield counter(name, number, **labels, **{label: named(key)})


def gauge(name: str, value: float) -> MetricRow:
    """A row of a gauge."""
    return MetricRow(f"gateway-{name}", "gauge", {}, value)


def api_names(routes: Mapping[int, Any]) -> dict[int, str]:
    """The names of the APIs that this version knows, by key."""
    return {key: api_name(route.request) for key, route in routes.items()}
