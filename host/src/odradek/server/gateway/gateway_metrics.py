"""The values of the metrics of a gateway's data path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from odradek.broker.dispatch.error_log import api_name
from odradek.server.gateway.client_side import ClientSide
from odradek.server.gateway.gateway import Gateway
from odradek.server.meters.loop_lag import bucket_rows
from odradek.server.meters.memory_metrics import memory_rows
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
    yield counter("pairs-opened", meter.opened)
    for cause, number in meter.closed.items():
        yield counter("pairs-closed", number, cause=str(cause))
    yield counter("bytes", meter.client_bytes, sender="client")
    yield counter("bytes", meter.upstream_bytes, sender="broker")
    for key, number in meter.requests.items():
        yield counter("requests", number, api=names.get(key, str(key)))
    yield counter("silent-requests", meter.acks0)
    for key, number in meter.rewritten.items():
        yield counter("responses-rewritten", number, api=names.get(key, str(key)))
    for key, number in meter.internal_errors.items():
        yield counter("internal-errors", number, api=names.get(key, str(key)))
    yield counter("unmapped-nodes", int(gateway.unmapped))
    for name, routing in gateway.routings.items():
        for why, number in routing.refused.items():
            yield counter("server-names-refused", number, listener=name, reason=why)
    yield counter("misrouted", meter.misrouted)
    for (node, kind), number in gateway.dialer.failures.items():
        yield counter("dials-failed", number, node=node, error=kind)
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


def gauge(name: str, value: float) -> MetricRow:
    """A row of a gauge."""
    return MetricRow(f"gateway-{name}", "gauge", {}, value)


def api_names(routes: Mapping[int, Any]) -> dict[int, str]:
    """The names of the APIs that this version knows, by key."""
    return {key: api_name(route.request) for key, route in routes.items()}
