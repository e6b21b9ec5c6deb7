"""The metrics of a gateway's data path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from odradek.gateway.path_meter import PathMeter
from odradek.meters.loop_lag import histogram
from odradek.meters.memory_metrics import memory_rows
from odradek.metrics.metric import MetricRow, Metrics
from odradek.net.pairs.client_side import ClientSide
from odradek.net.pairs.gateway import Pairs
from odradek.net.pairs.routing import Routing
from odradek.wire.api_names import api_name

PREFIX = "odradek.gateway"
PATH = Metrics[PathMeter](PREFIX)
PATH.counter("pairs.opened", "{pair}", "Connections of clients that reached a broker", "opened")
PATH.counter("pairs.closed", "{pair}", "Closed, by cause", "closed", by="cause")
PATH.counter(
    "bytes",
    "By",
    "Bytes read, by their sender",
    lambda it: {"client": it.client_bytes, "broker": it.upstream_bytes},
    by="sender",
)
PATH.counter("requests", "{request}", "Requests of clients", lambda it: by_api(it.requests), by="api")
PATH.counter("requests.without.response", "{request}", "Produce requests with acks=0", "acks0")
PATH.counter(
    "responses.rewritten",
    "{response}",
    "Responses that can name addresses",
    lambda it: by_api(it.rewritten),
    by="api",
)
PATH.counter(
    "internal.errors",
    "{error}",
    "Bugs that closed a connection",
    lambda it: by_api(it.internal_errors),
    by="api",
)
PATH.counter("misrouted", "{connection}", "Clients that expected another node at an address")
PATH.counter("pauses.in.flight", "{pause}", "Clients with too many requests outstanding", "in_flight_pauses")

ROUTINGS = Metrics[Routing](PREFIX, "listener")
ROUTINGS.counter(
    "server.names.refused", "{handshake}", "Handshakes without a node's server name", "refused", by="reason"
)

GATEWAY = Metrics[Pairs, int](PREFIX)
GATEWAY.counter(
    "unmapped.nodes", "{node}", "Brokers in responses whose id has no address", lambda it, _: int(it.unmapped)
)
GATEWAY.counter("dials.failed", "{dial}", "Failed connections to brokers", "dialer.failures", by="node error")
GATEWAY.counter(
    "upstream.stuck",
    "{connection}",
    "Connections to brokers that took or answered nothing for gateway.upstream.stuck.ms",
    "standstills.stuck",
    by="node",
)
GATEWAY.counter("pauses.slow.peer", "{pause}", "Connections not read because the other is slow", "slow_peers")
GATEWAY.gauge("nodes.known", "{node}", "Brokers with an address", "table.addresses")
GATEWAY.gauge("switch", "1", "Steps of the kill switch taken", "switch.position")
GATEWAY.gauge(
    "ready", "1", "Whether a broker has answered lately", lambda it, now_ms: it.reachability.is_ready(now_ms)
)

ADDED_LATENCY = histogram(
    f"{PREFIX}.added.latency",
    "{piece}",
    "Pieces that were written after at most so long",
    "Time between reading and writing of these pieces",
    "of",
)
OUTSTANDING = Metrics[int](PREFIX)
OUTSTANDING.gauge("outstanding", "{request}", "Requests that wait for a response", lambda it: it)


def by_api(numbers: Mapping[int, int]) -> dict[str, int]:
    """The same by the name of the API."""
    return {api_name(key): number for key, number in numbers.items()}


def gateway_rows(gateway: Pairs, sides: Sequence[ClientSide], now_ms: int) -> Iterator[MetricRow]:
    """Yield all metrics of the data path.

    Args:
        gateway: The gateway.
        sides: The connections of clients.
        now_ms: Monotonic time.
    """
    yield from PATH.rows(gateway.path.meter)
    for name, routing in gateway.routings.items():
        yield from ROUTINGS.rows(routing, listener=name)
    yield from GATEWAY.rows(gateway, now_ms)
    for of, seconds in gateway.path.meter.added.items():
        yield from ADDED_LATENCY.rows(seconds, of=of)
    yield from OUTSTANDING.rows(
        sum(len(side.pair.state.outstanding) for side in sides if side.pair is not None)
    )
    yield from memory_rows(gateway.memory)
