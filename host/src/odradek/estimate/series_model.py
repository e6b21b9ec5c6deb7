"""The number of series of a client that has not pushed them yet, from the reference of client metrics.

A producer of the Java client has 75 series, 12 for each node it is connected to and 9 for each topic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Final

from odradek.findings.client_metrics import MADE_BY, PREFIX, client_metrics
from odradek.findings.presets import OBSERVED, selects
from odradek.findings.troubles import JAVA, LIBRDKAFKA
from odradek.telemetry.client_metrics_configs import ALL_METRICS

LIBRDKAFKA_NAMES: Final = ("librdkafka", "confluent-kafka-")
LIBRDKAFKA_MARK: Final = "rdkafka"
FRANZ_GO: Final = "franz-go"
SHARE_CONSUMER: Final = "consumer.share"
"""Most consumers are none, and nothing tells it before they push."""
FRANZ_GO_NAME: Final = "kgo"
OBSERVED_CLIENT: Final = "observed"
"""What takes the place of a library where the metrics of a client come from a gateway or a host."""
ROLES: Final = ("producer", "consumer", "admin.client")
CLIENT: Final[frozenset[str]] = frozenset()
NODE: Final = frozenset({"node_id"})
BROKER: Final = frozenset({"broker"})
"""Like `NODE`, of metrics that Java clients measure only of brokers to which they send records or fetches."""
CALL: Final = frozenset({"api", "node_id"})
"""Of observed clients: each kind of request to each node."""
PRODUCE_CALL: Final = frozenset({"api", "node_id", "Produce"})
FETCH_CALL: Final = frozenset({"api", "node_id", "Fetch"})
"""`CALL` of one kind of request."""
TOPIC: Final = frozenset({"topic"})
PARTITION: Final = frozenset({"topic", "partition"})

OBSERVED_METRICS: Final[Mapping[frozenset[str], Mapping[str, int]]] = {
    CLIENT: {
        "instances.seen": 1,
        "producer|consumer connection.creation.rate": 1,
        "producer|consumer connection.creation.total": 1,
        "producer produce.throttle.time.avg": 1,
        "producer produce.throttle.time.max": 1,
        "consumer coordinator.commit.latency.avg": 1,
        "consumer coordinator.commit.latency.max": 1,
        "consumer coordinator.assigned.partitions": 1,
        "consumer coordinator.rebalance.latency.avg": 1,
        "consumer coordinator.rebalance.latency.max": 1,
        "consumer coordinator.rebalance.latency.total": 1,
        "consumer fetch.manager.fetch.latency.avg": 1,
        "consumer fetch.manager.fetch.latency.max": 1,
    },
    NODE: {
        "in.flight.max": 1,
        "connections": 1,
        "connections.open": 1,
        "disconnects": 1,
        "producer|consumer node.request.latency.avg": 1,
        "producer|consumer node.request.latency.max": 1,
    },
    CALL: {
        "requests": 1,
        "request.bytes": 1,
        "response.bytes": 1,
        "throttle.time": 1,
        "api.version": 1,
        "latency": 15 + 3,
    },
    PRODUCE_CALL: {"produce.records": 1, "produce.batches": 1, "produce.bytes": 1, "acks0.requests": 1},
    FETCH_CALL: {"fetch.bytes": 1},
}
"""The series of observed clients by labels and name: a histogram has one for each bucket, and three more.
Names of standard metrics begin with the roles that have them.
"""


def library_of(software_name: str | None, software_version: str | None) -> str:
    """The library of a client as the reference calls it. Bindings of librdkafka have names of their own, and
    its version within theirs.
    """
    name = software_name or ""
    if name.startswith(LIBRDKAFKA_NAMES) or LIBRDKAFKA_MARK in f"{name} {software_version}":
        return LIBRDKAFKA
    return FRANZ_GO if name == FRANZ_GO_NAME else name


Breadth = Mapping[frozenset[str], int | None]
"""How many series a metric has, by the labels that divide it: nodes, topics, partitions. None: not known."""
USUAL: Final[Breadth] = {
    CLIENT: 1,
    NODE: 2,
    BROKER: 1,
    TOPIC: 1,
    PARTITION: 1,
    CALL: 8,
    PRODUCE_CALL: 1,
    FETCH_CALL: 1,
}
"""A client of one topic on one broker, which it also knows as the bootstrap server."""


@cache
def made_series() -> int:
    """How many series odradek-prometheus makes for each client beside those that the client sends."""
    return sum(MADE_BY in each.software for each in client_metrics().values())


def covers(prefixes: Sequence[str], others: Iterable[str]) -> bool:
    """Whether each metric that the other prefixes select is selected by these."""
    return ALL_METRICS in prefixes or all(
        other != ALL_METRICS and other.startswith(tuple(prefixes)) for other in others
    )


def role_of(names: Iterable[str]) -> str | None:
    """The role of a client with metrics of these names; None if they do not tell."""
    for name in names:
        for role in ROLES:
            if name.startswith(f"{PREFIX}{role}."):
                return role
    return None


def role_of_client_id(client_id: str | None) -> str | None:
    """The role of a Java client that has chosen its client id itself."""
    for role in ROLES:
        if client_id is not None and client_id.startswith(f"{role.replace('.', '')}-"):
            return role
    return None


@lru_cache(maxsize=256)
def metrics_by_level(
    library: str, role: str, wanted: tuple[str, ...], known: tuple[str, ...]
) -> Mapping[frozenset[str], int]:
    """Metrics of a client by the labels of their series, as far as they are wanted and not known.

    Args:
        library: As `library_of` returns it.
        role: One of `ROLES`.
        wanted: Prefixes of names.
        known: Prefixes of names that are left out.
    """
    if library == OBSERVED_CLIENT:
        return observed_by_level(role, wanted, known)
    found: Counter[frozenset[str]] = Counter()
    others = tuple(f"{PREFIX}{each}." for each in (*ROLES, SHARE_CONSUMER) if each != role)
    for metric in client_metrics().values():
        is_theirs = library in metric.software and not metric.rare and not metric.name.startswith(others)
        if is_theirs and selects(wanted, metric.name) and not selects(known, metric.name):
            of_brokers = library == JAVA and metric.standard
            found.update(BROKER if of_brokers and level == NODE else level for level in metric.levels)
    return found


def observed_by_level(
    role: str, wanted: tuple[str, ...], known: tuple[str, ...]
) -> Mapping[frozenset[str], int]:
    """Like `metrics_by_level`, for a client that is observed. Errors are rare, and not counted."""
    found: Counter[frozenset[str]] = Counter()
    for level, names in OBSERVED_METRICS.items():
        for name, series in names.items():
            roles, _, rest = name.partition(" ")
            full = f"{PREFIX}{role}.{rest}" if rest else OBSERVED + name
            is_theirs = not rest or role in roles.split("|")
            if is_theirs and selects(wanted, full) and not selects(known, full):
                found[level] += series
    return found


def modelled_series(metrics: Mapping[frozenset[str], int], breadth: Breadth) -> int | None:
    """The series of some metrics; None if they need a number that is not known."""
    total = 0
    for level, count in metrics.items():
        each = breadth.get(level)
        if each is None:
            return None
        total += count * each
    return total
