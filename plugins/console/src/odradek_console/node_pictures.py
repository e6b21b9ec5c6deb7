"""Rows of brokers as their clients see them, made on demand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from odradek.findings.hints import SLOW_MS
from odradek.findings.node_names import node_name
from odradek.findings.troubles import CONSUMER, PRODUCER
from odradek_console.cluster_rows import BrokerRow
from odradek_console.engine.client import Client
from odradek_console.engine.fleet import Fleet
from odradek_console.json_form import JsonRow
from odradek_console.rows import ClientRow

AVERAGE: Final = "node.request.latency.avg"
LARGEST: Final = "node.request.latency.max"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow(JsonRow):
    """A broker."""

    node: str
    """Its node id."""
    address: str
    """Empty if the cluster does not tell it."""
    clients: int
    """Those that talk to it now."""
    slow: int
    """Those for which a request takes longer than a second on average."""
    median_ms: float | None
    """The median of the clients' average latencies."""
    largest_ms: float | None
    findings: tuple[str, ...]
    """The findings about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuffererRow(JsonRow):
    """A client of a broker."""

    row: ClientRow
    node: str
    average_ms: float | None
    largest_ms: float | None


def sufferers(
    fleet: Fleet, clients: Iterable[Client], rows: Mapping[str, ClientRow]
) -> Iterator[SuffererRow]:
    """The brokers of some clients, with their latencies now. A fetch that waits for records is no latency."""
    for client in clients:
        row = rows.get(client.entry.key)
        latencies = latencies_of(fleet, client) if row is not None else {}
        for node, (average, largest) in latencies.items():
            if row is not None:
                yield SuffererRow(row=row, node=node, average_ms=average, largest_ms=largest)


def latencies_of(fleet: Fleet, client: Client) -> dict[str, tuple[float | None, float | None]]:
    """The average and the largest latency of a client by broker: its own, else what was observed."""
    for each in (client, *fleet.identities.parts(client)):
        series = fleet.series(each)
        if series is None:
            continue
        since_ms = series.fresh_ms(each.entry.interval_ms)
        found: dict[str, dict[str, float]] = defaultdict(dict)
        for metric in (role + kind for role in (PRODUCER, CONSUMER) for kind in (AVERAGE, LARGEST)):
            for place in series.places.get(metric, ()):
                node, point = node_name(dict(place.labels).get("node_id", "")), series.last(place)
                if node.isdecimal() and point is not None and point.time_ms >= since_ms:
                    kind = metric[-3:]
                    found[node][kind] = max(point.value, found[node].get(kind, point.value))
        if found:
            return {node: (values.get("avg"), values.get("max")) for node, values in found.items()}
    return {}


def node_rows(found: Iterable[SuffererRow], brokers: Sequence[BrokerRow]) -> Iterator[NodeRow]:
    """All brokers: those of the cluster, and those that clients talk to."""
    by_node: dict[str, list[SuffererRow]] = defaultdict(list)
    for each in found:
        by_node[each.node].append(each)
    addresses = {str(each.node_id): f"{each.host}:{each.port}" for each in brokers}
    for node in {*by_node, *addresses}:
        some = by_node[node]
        averages = [each.average_ms for each in some if each.average_ms is not None]
        yield NodeRow(
            node=node,
            address=addresses.get(node, ""),
            clients=len(some),
            slow=sum(each > SLOW_MS for each in averages),
            median_ms=median(averages) if averages else None,
            largest_ms=max((each.largest_ms for each in some if each.largest_ms is not None), default=None),
            findings=tuple(
                dict.fromkeys(
                    trouble.id for each in some for trouble in each.row.troubles if trouble.broker == node
                )
            ),
        )
