"""The metrics of lag as OTLP payloads, for records of the source ``lag``.

A group has one client instance id, a topic another one. A series that is no longer there is ended once by a
point without a value, because the others of its record go on.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from odradek.lag.group_lag import Granularity, GroupLag, PartitionLag, TopicEnds, TopicLag
from odradek.lag.readers import Reader, ReaderLag
from odradek.otlp.metrics_writer import NUMBER_ATTRIBUTE, Attributes, Window, encoded_attributes
from odradek.plugin.context_labels import CLUSTER_NAME
from odradek.wire.uuid_text import named_uuid

SCOPE: Final = "io.odradek.lag"
POINTS_OF_PAYLOAD: Final = 500
"""A payload of some 50 kB, which takes a millisecond to write."""
LABEL_MAX_BYTES: Final = 1_024
RECORD, PARTITION, MEMBER, S = "{record}", "{partition}", "{member}", "s"
UNITS: Final = {
    "group.lag": RECORD,
    "group.offset": RECORD,
    "group.lag.unstable": RECORD,
    "group.lost": RECORD,
    "group.ahead": RECORD,
    "group.lag.time": S,
    "group.uncommitted": PARTITION,
    "group.topic.assigned": PARTITION,
    "group.topic.lag.sum": RECORD,
    "group.topic.lag.time.max": S,
    "group.offset.age": S,
    "group.lag.rate": "{record}/s",
    "group.catch.up.time": S,
    "group.progress": "{topic}",
    "group.retention.share": "1",
    "group.retention.left": S,
    "group.member": PARTITION,
    "group.lag.sum": RECORD,
    "group.lag.time.max": S,
    "group.members": MEMBER,
    "group.state": "{group}",
    "partition.end.offset": RECORD,
    "partition.start.offset": RECORD,
    "partition.hot": "1",
    "client.lag": RECORD,
    "client.position": RECORD,
    "client.lag.time": S,
    "client.fetch.age": S,
    "client.lag.sum": RECORD,
    "client.lag.time.max": S,
    "client.library": "{client}",
}
"""The metrics without their prefix, with their units."""
PREFIX: Final = "odradek."

Key = tuple[str, bytes]
"""The name of a metric without its prefix, and its attributes as written."""
Point = tuple[Key, int | float | None]
"""A value, or None for a series that has ended."""


def group_instance(cluster_id: str, group: str) -> bytes:
    """The client instance id of a group: the same for all that report on the cluster."""
    return named_uuid("odradek.lag", cluster_id, "group", group)


def topic_instance(cluster_id: str, topic: str) -> bytes:
    """The client instance id of a topic."""
    return named_uuid("odradek.lag", cluster_id, "topic", topic)


def reader_instance(cluster_id: str, reader: Reader) -> bytes:
    """The client instance id of a reader's lag: another one than that of what the client pushes."""
    return named_uuid("odradek.lag", cluster_id, "client", *reader)


def cut(text: str) -> str:
    """A label value of at most `LABEL_MAX_BYTES`."""
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= LABEL_MAX_BYTES else raw[:LABEL_MAX_BYTES].decode("utf-8", "ignore")


def labels(*attributes: tuple[str, str]) -> bytes:
    """Attributes of points. Those of a series are the same as these, one after the other."""
    return encoded_attributes(NUMBER_ATTRIBUTE, attributes)


def group_points(lag: GroupLag, granularity: Granularity = Granularity.PARTITION) -> Iterator[Point]:
    """The points of a group: its own, then those of its topics and partitions."""
    group = ("group", cut(lag.group))
    known = [each.time_ms for each in lag.topics.values() if each.time_ms is not None]
    at = labels(group)
    yield ("group.members", at), lag.members
    yield ("group.state", at + labels(("state", lag.state), ("type", lag.type))), 1
    if any(each.partitions for each in lag.topics.values()):
        yield ("group.lag.sum", at), sum(each.lag for each in lag.topics.values())
    if known:
        yield ("group.lag.time.max", at), max(known) / 1_000
    if granularity is Granularity.GROUP:
        return
    for name, topic in lag.topics.items():
        at_topic = at + labels(("topic", name))
        yield from topic_points(at_topic, topic)
        if granularity is Granularity.PARTITION:
            for each in topic.partitions:
                yield from partition_points(at_topic + labels(("partition", str(each.partition))), each)
            for index, owner in topic.owners.items():
                at_member = at + labels(
                    ("member", cut(owner.member)),
                    ("client_id", cut(owner.client_id)),
                    ("address", cut(owner.address)),
                    ("topic", name),
                    ("partition", str(index)),
                )
                yield ("group.member", at_member), 1


def topic_points(at: bytes, topic: TopicLag) -> Iterator[Point]:
    """The points of a group and a topic."""
    yield ("group.uncommitted", at), topic.uncommitted
    yield ("group.topic.assigned", at), topic.assigned
    if topic.partitions:
        yield ("group.topic.lag.sum", at), topic.lag
    if topic.time_ms is not None:
        yield ("group.topic.lag.time.max", at), topic.time_ms / 1_000
    if topic.offset_age_ms is not None:
        yield ("group.offset.age", at), topic.offset_age_ms / 1_000
    if topic.trend is not None:
        yield ("group.lag.rate", at), topic.trend.per_second
        yield ("group.progress", at + labels(("progress", topic.trend.progress))), 1
        if topic.trend.caught_up_in_s is not None:
            yield ("group.catch.up.time", at), topic.trend.caught_up_in_s
    if topic.retention is not None:
        yield ("group.retention.share", at), topic.retention.share
        yield ("group.retention.left", at), topic.retention.left_ms / 1_000


def partition_points(at: bytes, each: PartitionLag) -> Iterator[Point]:
    """The points of a group and a partition."""
    standing = each.standing
    yield ("group.lag", at), standing.lag
    yield ("group.offset", at), each.offset
    if each.time_ms is not None:
        yield ("group.lag.time", at), each.time_ms / 1_000
    if standing.unstable:
        yield ("group.lag.unstable", at), standing.unstable
    if standing.lost:
        yield ("group.lost", at), standing.lost
    if standing.ahead:
        yield ("group.ahead", at), standing.ahead


def topic_end_points(ends: TopicEnds) -> Iterator[Point]:
    """The points of a topic's partitions."""
    at_topic = labels(("topic", ends.topic))
    for partition, start, end in ends.partitions:
        at = at_topic + labels(("partition", str(partition)))
        yield ("partition.end.offset", at), end
        yield ("partition.start.offset", at), start
        if partition in ends.hot:
            yield ("partition.hot", at), ends.hot[partition]


def reader_points(lag: ReaderLag, granularity: Granularity = Granularity.PARTITION) -> Iterator[Point]:
    """The points of a client: its own, then those of the partitions that it reads."""
    reader = lag.reader
    at = labels(("client_id", cut(reader.client_id)), ("client_address", reader.address))
    if reader.group:
        at += labels(("group", cut(reader.group)))
    library = labels(
        ("library", cut(reader.software_name)),
        ("library_version", cut(reader.software_version)),
        ("principal", cut(reader.principal)),
    )
    yield ("client.library", at + library), 1
    if any(each.partitions for each in lag.topics.values()):
        yield ("client.lag.sum", at), lag.lag
    if lag.time_ms is not None:
        yield ("client.lag.time.max", at), lag.time_ms / 1_000
    if granularity is not Granularity.PARTITION:
        return
    for name, topic in lag.topics.items():
        at_topic = at + labels(("topic", name))
        for each in topic.partitions:
            at_partition = at_topic + labels(("partition", str(each.partition)))
            yield ("client.lag", at_partition), each.standing.lag
            yield ("client.position", at_partition), each.offset
            if each.time_ms is not None:
                yield ("client.lag.time", at_partition), each.time_ms / 1_000
            age_ms = lag.ages_ms.get((name, each.partition), 0)
            yield ("client.fetch.age", at_partition), age_ms / 1_000


Subject = GroupLag | ReaderLag | TopicEnds
"""Has records of its own."""


def points_of(subject: Subject, granularity: Granularity) -> Iterator[Point]:
    """The points of a group, client or topic."""
    if isinstance(subject, GroupLag):
        return group_points(subject, granularity)
    if isinstance(subject, ReaderLag):
        return reader_points(subject, granularity)
    return topic_end_points(subject)


def instance_of(cluster_id: str, subject: Subject) -> bytes:
    """The client instance id of a group, client or topic."""
    if isinstance(subject, GroupLag):
        return group_instance(cluster_id, subject.group)
    if isinstance(subject, ReaderLag):
        return reader_instance(cluster_id, subject.reader)
    return topic_instance(cluster_id, subject.topic)


class SeriesSet(NamedTuple):
    """The series of a report, without their values: equal for equal series."""

    number: int
    digest: int


def payloads(points: Iterable[Point], now_ms: int, cluster_name: str) -> Generator[bytes, None, SeriesSet]:
    """Some points as payloads of a bounded size; returns their series.

    Args:
        points: Of one group or topic.
        now_ms: The time of the points, epoch milliseconds.
        cluster_name: The label of all.
    """
    number = digest = 0
    written = iter(points)
    while batch := list(islice(written, POINTS_OF_PAYLOAD)):
        number += len(batch)
        digest = hash((digest, *[key for key, _ in batch]))
        yield payload(batch, now_ms, cluster_name)
    return SeriesSet(number, digest)


def ended(before: Iterable[Point], points: Iterable[Point]) -> Iterator[Point]:
    """The ends of the series that are no longer there."""
    gone = dict.fromkeys(key for key, _ in before)
    for key, _ in points:
        gone.pop(key, None)
    return ((key, None) for key in gone)


def payload(points: Iterable[Point], now_ms: int, cluster_name: str) -> bytes:
    """Points as one payload."""
    window = Window(now_ms, now_ms)
    by_name: dict[str, list[bytes]] = {}
    for (name, at), value in points:
        by_name.setdefault(name, []).append(window.number(value, at))
    for name, numbers in by_name.items():
        window.encoded_gauge(PREFIX + name, UNITS[name], b"".join(numbers))
    resource: Attributes = ((CLUSTER_NAME, cluster_name),)
    return window.payload(resource, SCOPE)
