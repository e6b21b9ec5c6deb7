"""The metrics of one observed client in one window."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from odradek.gateway.observation.apis import FETCH, OFFSET_COMMIT, PRODUCE, Role
from odradek.gateway.observation.client_account import ClientAccount, NodeAccount, TopicSums
from odradek.gateway.observation.membership import Member
from odradek.gateway.observation.names import CONSUMER, OWN, PRODUCER
from odradek.gateway.observation.row import BOUNDS_MS, FETCHES, NO_VERSION, Row
from odradek.otlp.metrics_writer import Attributes, Window
from odradek.wire.api_names import api_name
from odradek.wire.error_code import error_name

SCOPE: Final = "io.odradek.observed.client"
NS_PER_MS: Final = 1_000_000
NOTHING: Final[Attributes] = ()
MS, BYTES, COUNT = "ms", "By", "1"


def report(
    client: ClientAccount,
    wanted: frozenset[str],
    now_ms: int,
    now_monotonic_ms: int,
    name_of: Callable[[bytes], str | None],
) -> bytes | None:
    """The payload of a window that ends now; None if nothing in it is wanted.

    Args:
        client: The client.
        wanted: The names of the metrics that are wanted.
        now_ms: Epoch milliseconds.
        now_monotonic_ms: The monotonic clock.
        name_of: The name of a topic with an id; None if it is not known.
    """
    window = Window(client.since_ms, max(now_ms, client.since_ms))
    if client.role & Role.PRODUCER:
        standard(window, wanted, client, PRODUCER, now_monotonic_ms)
        produce_throttle(window, wanted, client)
    if client.role & Role.CONSUMER:
        standard(window, wanted, client, CONSUMER, now_monotonic_ms)
        consumer(window, wanted, client)
    for row_metric in ROW_METRICS:
        row_metric.add(window, wanted, client)
    own(window, wanted, client)
    by_topic(window, wanted, client, name_of)
    return window.payload(resource(client), SCOPE) if window.metrics else None


def resource(client: ClientAccount) -> Attributes:
    """The attributes of the Resource: the mark, and the labels that a client itself would add."""
    known = dict(client.labels)
    members = list(client.memberships.members.values())
    if members:
        known = of_members(members)
    if len(client.transactional_ids) == 1:
        known["transactional_id"] = next(iter(client.transactional_ids))
    client.labels = tuple(known.items())
    return (("observed", "true"), *client.labels)


def of_members(members: Sequence[Member]) -> dict[str, str]:
    """The labels that members of groups have in common."""
    first, labels = members[0], {}
    if len({member.group_id for member in members}) == 1:
        labels["group_id"] = first.group_id
    if len(members) == 1:
        labels["group_member_id"] = first.member_id
        if first.instance_id:
            labels["group_instance_id"] = first.instance_id
    return labels


def node_label(node: NodeAccount) -> tuple[str, str]:
    """The node of a data point, as Java clients write it."""
    return "node_id", f"node-{node.node_id}"


def latency(rows: Iterable[Row]) -> tuple[float, float] | None:
    """Average and maximum of the latencies of some rows, ms; None without a response."""
    responses = total_ns = largest_ns = 0
    for row in rows:
        responses += row.responses
        total_ns += row.latency_ns
        largest_ns = max(largest_ns, row.latency_max_ns)
    return (total_ns / responses / NS_PER_MS, largest_ns / NS_PER_MS) if responses else None


def rows_of(client: ClientAccount, api_key: int) -> Iterator[Row]:
    """The rows of an API, of all nodes."""
    return (node.rows[api_key] for node in client.nodes.values() if api_key in node.rows)


def average_and_maximum(
    window: Window, wanted: frozenset[str], name: str, found: dict[Attributes, tuple[float, float]]
) -> None:
    """Add two gauges, of milliseconds. As in a client's own metrics of these names, the unit is not written:
    a series has one name, whoever reports it.
    """
    for index, suffix in enumerate((".avg", ".max")):
        if name + suffix in wanted:
            window.gauge(name + suffix, "", {at: pair[index] for at, pair in found.items()})


def standard(
    window: Window, wanted: frozenset[str], client: ClientAccount, prefix: str, now_monotonic_ms: int
) -> None:
    """The metrics that producers and consumers have."""
    if prefix + "connection.creation.rate" in wanted:
        seconds = max(now_monotonic_ms - client.since_monotonic_ms, 1) / 1_000
        window.gauge(prefix + "connection.creation.rate", "", {NOTHING: client.opened / seconds})
    if prefix + "connection.creation.total" in wanted:
        window.sum(prefix + "connection.creation.total", "", {NOTHING: client.opened_before + client.opened})
    found: dict[Attributes, tuple[float, float]] = {}
    for node in client.nodes.values():
        seen = latency(node.rows.values())
        if seen is not None:
            found[node_label(node),] = seen
    average_and_maximum(window, wanted, prefix + "node.request.latency", found)


def produce_throttle(window: Window, wanted: frozenset[str], client: ClientAccount) -> None:
    """The throttle times of Produce responses."""
    rows = list(rows_of(client, PRODUCE))
    responses = sum(row.responses for row in rows)
    if responses:
        total = sum(row.throttle_ms for row in rows)
        largest = max(row.throttle_max_ms for row in rows)
        found: dict[Attributes, tuple[float, float]] = {NOTHING: (total / responses, float(largest))}
        average_and_maximum(window, wanted, PRODUCER + "produce.throttle.time", found)


def consumer(window: Window, wanted: frozenset[str], client: ClientAccount) -> None:
    """The metrics of the group coordinator and of fetches."""
    for name, api_key in (
        ("coordinator.commit.latency", OFFSET_COMMIT),
        ("fetch.manager.fetch.latency", FETCH),
    ):
        seen = latency(rows_of(client, api_key))
        if seen is not None:
            average_and_maximum(window, wanted, CONSUMER + name, {NOTHING: seen})
    memberships = client.memberships
    if memberships.has_joined and CONSUMER + "coordinator.assigned.partitions" in wanted:
        assigned = memberships.assigned_partitions
        window.gauge(CONSUMER + "coordinator.assigned.partitions", "", {NOTHING: assigned})
    rebalances = memberships.rebalances
    name = CONSUMER + "coordinator.rebalance.latency"
    if rebalances.count:
        average = rebalances.total_ns / rebalances.count / NS_PER_MS
        average_and_maximum(window, wanted, name, {NOTHING: (average, rebalances.max_ns / NS_PER_MS)})
        if name + ".total" in wanted:
            window.sum(name + ".total", "", {NOTHING: rebalances.total_ns / NS_PER_MS})


class RowMetric:
    """A sum or gauge with a value for each API and node.

    Args:
        name: The name after the prefix.
        unit: Its unit.
        value: The value of a row; None leaves the data point out.
        is_sum: A sum of delta temporality, or a gauge.
    """

    def __init__(
        self, name: str, unit: str, value: Callable[[Row], int | None], *, is_sum: bool = True
    ) -> None:
        self.name, self.unit, self.value, self.is_sum = OWN + name, unit, value, is_sum

    def add(self, window: Window, wanted: frozenset[str], client: ClientAccount) -> None:
        """Add the metric to a window, if it is wanted."""
        if self.name not in wanted:
            return
        points: dict[Attributes, int | float] = {}
        for node in client.nodes.values():
            label = node_label(node)
            for api_key, row in node.rows.items():
                value = self.value(row)
                if value is not None:
                    points[("api", api_name(api_key)), label] = value
        if self.is_sum:
            window.sum(self.name, self.unit, points)
        else:
            window.gauge(self.name, self.unit, points)


ROW_METRICS: Final = (
    RowMetric("requests", COUNT, lambda row: row.requests),
    RowMetric("request.bytes", BYTES, lambda row: row.request_bytes),
    RowMetric("response.bytes", BYTES, lambda row: row.response_bytes),
    RowMetric("throttle.time", MS, lambda row: row.throttle_ms),
    RowMetric("produce.records", COUNT, lambda row: row.produced.records if row.produced else None),
    RowMetric("produce.batches", COUNT, lambda row: row.produced.batches if row.produced else None),
    RowMetric("produce.bytes", BYTES, lambda row: row.produced.bytes if row.produced else None),
    RowMetric("acks0.requests", COUNT, lambda row: row.produced.acks0 if row.produced else None),
    RowMetric("fetch.bytes", BYTES, lambda row: row.response_bytes if row.api_key in FETCHES else None),
    RowMetric(
        "api.version", "", lambda row: row.version if row.version != NO_VERSION else None, is_sum=False
    ),
)


def own(window: Window, wanted: frozenset[str], client: ClientAccount) -> None:
    """The metrics under our own names that are not simply a value of a row."""
    nodes = list(client.nodes.values())
    if OWN + "latency" in wanted:
        window.histogram(
            OWN + "latency",
            MS,
            BOUNDS_MS,
            [
                (
                    (("api", api_name(api_key)), node_label(node)),
                    row.buckets,
                    row.latency_ns / NS_PER_MS,
                    row.latency_max_ns / NS_PER_MS,
                )
                for node in nodes
                for api_key, row in node.rows.items()
                if row.responses
            ],
        )
    if OWN + "errors" in wanted:
        window.sum(
            OWN + "errors",
            COUNT,
            {
                (
                    ("api", api_name(api_key)),
                    ("error", error if isinstance(error, str) else error_name(error)),
                    node_label(node),
                ): times
                for node in nodes
                for api_key, row in node.rows.items()
                for error, times in row.errors.items()
            },
        )
    if OWN + "in.flight.max" in wanted:
        window.gauge(
            OWN + "in.flight.max", COUNT, {(node_label(node),): node.in_flight_max for node in nodes}
        )
    if OWN + "connections" in wanted:
        window.sum(OWN + "connections", COUNT, {(node_label(node),): node.connections for node in nodes})
    if OWN + "connections.open" in wanted:
        window.gauge(OWN + "connections.open", COUNT, {(node_label(node),): node.open for node in nodes})
    if OWN + "disconnects" in wanted:
        window.sum(
            OWN + "disconnects",
            COUNT,
            {
                (("by", side), node_label(node)): times
                for node in nodes
                for side, times in node.disconnects.items()
            },
        )
    if OWN + "instances.seen" in wanted:
        window.gauge(OWN + "instances.seen", COUNT, {NOTHING: client.instances_seen})


TOPIC_METRICS: Final[tuple[tuple[str, str, Callable[[TopicSums], int]], ...]] = (
    ("topic.produce.records", COUNT, lambda sums: sums.produced.records),
    ("topic.produce.batches", COUNT, lambda sums: sums.produced.batches),
    ("topic.produce.bytes", BYTES, lambda sums: sums.produced.bytes),
    ("topic.fetch.records", COUNT, lambda sums: sums.read_records),
)


def by_topic(
    window: Window, wanted: frozenset[str], client: ClientAccount, name_of: Callable[[bytes], str | None]
) -> None:
    """Add what was written and read, by topic. A topic whose name is not known is left out."""
    named = [(name_of(key) if isinstance(key, bytes) else key, sums) for key, sums in client.topics.items()]
    for name, unit, value in TOPIC_METRICS:
        points: dict[Attributes, int | float] = {
            (("topic", topic),): value(sums) for topic, sums in named if topic is not None and value(sums)
        }
        if OWN + name in wanted and points:
            window.sum(OWN + name, unit, points)
