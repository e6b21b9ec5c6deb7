"""The lag of groups under the names of other exporters, so that dashboards made for them go on.

Their lag is high watermark - committed offset, which counts records that were lost; it is never below 0 here.
What they have and the records of lag have not, is left out: ``kafka_brokers``, and of kminion the coordinator
and the protocol of a group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from odradek_prometheus.client_series import ClientSeries
from odradek_prometheus.label_values import Labels

CLUSTER: Final = "cluster_name"
PARTITION: Final = ("group", "topic", "partition")
Row = tuple[Mapping[str, str], float]
"""The labels of a series, and its value."""
Rows = Mapping[str, Sequence[Row]]
"""The series of a group or a topic, by metric without ``odradek.``"""


def count(values: Sequence[float]) -> float:
    """The number of series."""
    return float(len(values))


class Alias(NamedTuple):
    """A metric of another exporter."""

    name: str
    metric: str
    """Ours, without ``odradek.``"""
    labels: Mapping[str, str]
    """The names of its labels, and of ours that have their values; empty for a label that is always empty."""
    together: Callable[[Sequence[float]], float] = sum
    """Makes the value of all series that then have the same labels."""


def same(*names: str) -> dict[str, str]:
    """Labels that have the same names in both."""
    return {name: name for name in names}


BURROWED: Final = same(CLUSTER, *PARTITION) | {
    "member_host": "address",
    "consumer_id": "member",
    "client_id": "client_id",
}
IN_KAFKA_EXPORTER: Final = {"consumergroup": "group", "topic": "topic"}
IN_KMINION: Final = {"group_id": "group", "topic_name": "topic"}
TOPIC_OF_KMINION: Final = {"topic_name": "topic", "partition_id": "partition"}
OF_KMINION: Final = "kminion_kafka_consumer_group_"
ALIASES: Final[Mapping[str, Sequence[Alias]]] = {
    "kafka_exporter": (
        Alias("kafka_consumergroup_lag", "group.lag", IN_KAFKA_EXPORTER | same("partition")),
        Alias("kafka_consumergroup_current_offset", "group.offset", IN_KAFKA_EXPORTER | same("partition")),
        Alias("kafka_consumergroup_lag_sum", "group.topic.lag.sum", IN_KAFKA_EXPORTER),
        Alias("kafka_consumergroup_current_offset_sum", "group.offset", IN_KAFKA_EXPORTER),
        Alias("kafka_consumergroup_members", "group.members", {"consumergroup": "group"}),
        Alias("kafka_topic_partition_current_offset", "partition.end.offset", same("topic", "partition")),
        Alias("kafka_topic_partition_oldest_offset", "partition.start.offset", same("topic", "partition")),
        Alias("kafka_topic_partitions", "partition.end.offset", same("topic"), count),
    ),
    "kminion": (
        Alias(OF_KMINION + "topic_partition_lag", "group.lag", IN_KMINION | {"partition_id": "partition"}),
        Alias(OF_KMINION + "topic_lag", "group.topic.lag.sum", IN_KMINION),
        Alias(OF_KMINION + "topic_offset_sum", "group.offset", IN_KMINION),
        Alias(OF_KMINION + "topic_assigned_partitions", "group.topic.assigned", IN_KMINION),
        Alias(OF_KMINION + "topic_members", "group.topic.member", IN_KMINION, count),
        Alias(OF_KMINION + "members", "group.members", {"group_id": "group"}),
        Alias(
            OF_KMINION + "info",
            "group.state",
            {
                "group_id": "group",
                "state": "state",
                "coordinator_id": "",
                "protocol": "",
                "protocol_type": "",
            },
        ),
        Alias("kminion_kafka_topic_partition_high_water_mark", "partition.end.offset", TOPIC_OF_KMINION),
        Alias("kminion_kafka_topic_partition_low_water_mark", "partition.start.offset", TOPIC_OF_KMINION),
    ),
    "kafka-lag-exporter": (
        Alias("kafka_consumergroup_group_lag", "group.lag", BURROWED),
        Alias("kafka_consumergroup_group_lag_seconds", "group.lag.time", BURROWED),
        Alias("kafka_consumergroup_group_offset", "group.offset", BURROWED),
        Alias("kafka_consumergroup_group_max_lag", "group.lag", same("group"), max),
        Alias("kafka_consumergroup_group_max_lag_seconds", "group.lag.time.max", same("group")),
        Alias("kafka_consumergroup_group_sum_lag", "group.topic.lag.sum", same("group")),
        Alias("kafka_consumergroup_group_topic_sum_lag", "group.topic.lag.sum", same("group", "topic")),
        Alias("kafka_partition_latest_offset", "partition.end.offset", same("topic", "partition")),
        Alias("kafka_partition_earliest_offset", "partition.start.offset", same("topic", "partition")),
    ),
}
"""By exporter. A name is in one set only."""


def compatible(
    clients: Iterable[ClientSeries], exporters: Sequence[str]
) -> Iterator[tuple[str, Sequence[tuple[Labels, float]]]]:
    """The series of each metric of these exporters, with the name of the cluster."""
    known = [rows_of(client) for client in clients if not client.facts.is_of_client] if exporters else []
    for exporter in exporters:
        for alias in ALIASES[exporter]:
            found = [series for rows in known for series in renamed(alias, rows.get(alias.metric, ()))]
            if found:
                yield alias.name, found


def renamed(alias: Alias, rows: Iterable[Row]) -> Iterator[tuple[Labels, float]]:
    """The series of one group or topic."""
    values: dict[Labels, list[float]] = {}
    for labels, value in rows:
        mine = {name: labels.get(ours, "") for name, ours in alias.labels.items()}
        place = tuple(sorted(({CLUSTER: labels[CLUSTER]} | mine).items()))
        values.setdefault(place, []).append(value)
    return ((place, alias.together(found)) for place, found in values.items())


def rows_of(client: ClientSeries) -> Rows:
    """The series of a group or a topic as the others count them, and with the members on them."""
    found: dict[str, list[Row]] = {}
    shown = dict(client.labels)
    for position, live in enumerate(client.live):
        if live:
            series, name = client.at(position), client.mapped.identities[position].name
            labels = shown | dict(series.labels)
            labels.setdefault(CLUSTER, "")
            found.setdefault(name.removeprefix("odradek."), []).append((labels, series.value))
    lost = {at(labels, *PARTITION): value for labels, value in found.get("group.lost", ())}
    of_topic: dict[tuple[str, ...], float] = {}
    for place, value in lost.items():
        of_topic[place[:2]] = of_topic.get(place[:2], 0) + value
    members = {at(labels, *PARTITION): labels for labels, _ in found.get("group.member", ())}
    for metric in ("group.lag", "group.lag.time", "group.offset"):
        found[metric] = [
            ({**members.get(at(labels, *PARTITION), {}), **labels}, value)
            for labels, value in found.get(metric, ())
        ]
    found["group.lag"] = [
        (labels, value + lost.get(at(labels, *PARTITION), 0)) for labels, value in found["group.lag"]
    ]
    found["group.topic.lag.sum"] = [
        (labels, value + of_topic.get(at(labels, "group", "topic"), 0))
        for labels, value in found.get("group.topic.lag.sum", ())
    ]
    each_once = {at(labels, "group", "topic", "member"): labels for labels in members.values()}
    found["group.topic.member"] = [(labels, 1.0) for labels in each_once.values()]
    return found


def at(labels: Mapping[str, str], *names: str) -> tuple[str, ...]:
    """The values of labels."""
    return tuple([labels.get(name, "") for name in names])
