"""The lag of groups and of clients that read, as a host or a gateway has measured it.

Its records are about groups, not about clients. One that is written again has all values of its group, so the
latest ones are kept as they are, and read when somebody looks.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.metrics.v1.metrics_pb2 import DataPointFlags, MetricsData

from odradek.plugin import TelemetryRecord
from odradek_console.engine.texts import cut

GROUP: Final = "odradek.group."
CLIENT: Final = "odradek.client."
BEGINS: Final = (f"{GROUP}members".encode(), f"{CLIENT}library".encode())
"""Names in the first payload of a whole report. Those without are its other parts, and the ends of series."""
MOST_BYTES: Final = 64 << 20
MOST_PARTS: Final = 200
TROUBLES: Final = {"falling behind": "behind", "stalled": "stalled"}
"""Troubles of clients, by the progress of their group in a topic."""
KEPT_MS: Final = 900_000
"""A report is written again each five minutes; one that was not has ended."""
NO_VALUE: Final = DataPointFlags.DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK


class Behind(NamedTuple):
    """A lag."""

    records: float
    seconds: float | None
    """None if it is not known."""


class Owner(NamedTuple):
    """The member of a group that reads a partition."""

    member: str
    client_id: str
    address: str


Partition = tuple[str, int]
"""Topic and index."""


class Labels(NamedTuple):
    """The labels of a value of a group."""

    topic: str = ""
    partition: int = -1
    owner: Owner = Owner("", "", "")
    state: str = ""
    kind: str = ""
    progress: str = ""


class GroupReport:
    """What is known of a group.

    Args:
        time_ms: When it was reported.
        values: The values by name, without the prefix, and labels.
        before: The report before this one.
    """

    def __init__(
        self, time_ms: int, values: Mapping[str, Mapping[Labels, float]], before: GroupReport | None = None
    ) -> None:
        def by_partition(name: str) -> dict[Partition, float]:
            return {(at.topic, at.partition): value for at, value in values.get(name, {}).items()}

        def by_topic(name: str) -> dict[str, float]:
            return {at.topic: value for at, value in values.get(name, {}).items()}

        state = list(values.get("state", {Labels(): 1.0}))[-1]
        records, seconds = by_topic("lag.sum").get(""), by_topic("lag.time.max").get("")
        self.time_ms = time_ms
        self.state, self.kind = state.state, state.kind
        self.members = int(by_topic("members").get("", 0))
        self.whole = None if records is None else Behind(records, seconds)
        self.records, self.seconds = by_partition("lag"), by_partition("lag.time")
        self.offsets = by_partition("offset")
        self.owners = {(at.topic, at.partition): at.owner for at in values.get("member", ())}
        self.progress = {at.topic: at.progress for at in values.get("progress", ())}
        self.since_ms: dict[str, int] = {
            topic: before.since_ms[topic] if before and before.progress.get(topic) == each else time_ms
            for topic, each in self.progress.items()
        }
        """Since when the group gets on so, by topic."""
        self.rates = by_topic("lag.rate")
        """How fast the lag of a topic grows, records per second."""
        self.caught_up_s = by_topic("catch.up.time")

    def of(self, partitions: list[Partition]) -> Behind | None:
        """The lag of some partitions together; the longest time counts."""
        known = [self.records[each] for each in partitions if each in self.records]
        seconds = [self.seconds[each] for each in partitions if each in self.seconds]
        return Behind(sum(known), max(seconds, default=None)) if known else None

    def troubles(self, client: tuple[str, str]) -> Iterator[tuple[str, str, float, int]]:
        """Each trouble of a client in which there is something to read: topic, lag, and since when.

        Args:
            client: Client id and address.
        """
        left = [
            topic
            for (topic, index), owner in self.owners.items()
            if owner[1:] == client and self.records.get((topic, index), 1.0) > 0
        ]
        for topic, progress in self.progress.items():
            if progress in TROUBLES and topic in left:
                lag = sum(value for at, value in self.records.items() if at[0] == topic)
                yield TROUBLES[progress], topic, lag, self.since_ms[topic]

    def by_member(self) -> Mapping[Owner, Behind | None]:
        """The lag of each member that has partitions."""
        found: dict[Owner, list[Partition]] = defaultdict(list)
        for partition, owner in self.owners.items():
            found[owner].append(partition)
        return {owner: self.of(partitions) for owner, partitions in found.items()}


@dataclass(slots=True)
class Report:
    """The payloads about one group or client, and what was read from them."""

    time_ms: int
    payloads: list[bytes]
    is_read: bool = False
    names: tuple[str, ...] = ()
    """Of its group; or of its client: client id, address and group."""


class Lags:
    """The reports of all groups and clients. Not thread-safe."""

    def __init__(self) -> None:
        self.reports: OrderedDict[bytes, Report] = OrderedDict()
        """By the instance id of the group or client, the latest at the end."""
        self.held_bytes = 0
        self.groups: dict[str, GroupReport] = {}
        self.told: defaultdict[str, dict[bytes, GroupReport]] = defaultdict(dict)
        """By group and instance id: groups of several clusters may have the same name."""
        self.count = count(1)
        self.changes: dict[str, int] = {}
        """The number of the change after which others may be in trouble, by group. No two have the same."""
        self.members: dict[str, Mapping[Owner, Behind | None]] = {}
        """By group."""
        self.readers: dict[tuple[str, ...], tuple[int, Behind]] = {}
        """Time and lag by client id, address and group."""

    def add(self, record: TelemetryRecord) -> None:
        """Take a record."""
        data, instance = record.payload.data, record.payload.client_instance_id
        time_ms = record.context.received_ms
        if record.payload.terminating:
            self.forget(instance)
            return
        if any(each in data for each in BEGINS):
            names = self.drop(instance)
            self.reports[instance] = Report(time_ms, [data], names=names)
        elif instance in self.reports and len(self.reports[instance].payloads) < MOST_PARTS:
            report = self.reports[instance]
            report.payloads.append(data)
            report.time_ms, report.is_read = time_ms, False
            self.reports.move_to_end(instance)
        else:
            return
        self.held_bytes += len(data)
        while self.held_bytes > MOST_BYTES:
            self.forget(next(iter(self.reports)))

    def drop(self, instance: bytes) -> tuple[str, ...]:
        """Forget the payloads of a report; returns what it was about."""
        report = self.reports.pop(instance, None)
        if report is None:
            return ()
        self.held_bytes -= sum(map(len, report.payloads))
        return report.names

    def forget(self, instance: bytes) -> None:
        """Forget a group or a client."""
        self.end(instance, self.drop(instance))

    def end(self, instance: bytes, names: tuple[str, ...]) -> None:
        """Forget what was read from a report."""
        if len(names) == 1:
            (name,) = names
            self.changes[name] = next(self.count)
            self.told[name].pop(instance, None)
            if not self.told[name]:
                del self.told[name], self.changes[name]
                self.groups.pop(name, None)
                self.members.pop(name, None)
        self.readers.pop(names, None)

    def read(self, now_ms: int) -> None:
        """Read the reports that are new, and forget the groups that nobody reports any more."""
        for instance, report in list(self.reports.items()):
            if now_ms - report.time_ms > KEPT_MS:
                self.forget(instance)
            elif not report.is_read:
                self.open(instance, report)

    def open(self, instance: bytes, report: Report) -> None:
        """Read a report."""
        report.is_read = True
        names, values, reader = told_in(report.payloads)
        if names != report.names:
            self.end(instance, report.names)
            report.names = names
        if len(names) == 1:
            (name,) = names
            before = self.told[name].get(instance)
            found = self.told[name][instance] = GroupReport(report.time_ms, values, before)
            is_same = before and (before.progress, before.owners) == (found.progress, found.owners)
            if not is_same:
                self.changes[name] = next(self.count)
            self.groups[name], self.members[name] = found, found.by_member()
        elif "lag.sum" in reader:
            self.readers[names] = report.time_ms, Behind(reader["lag.sum"], reader.get("lag.time.max"))

    def troubles(self, group: str, client: tuple[str, str]) -> list[tuple[str, str, float, int]] | None:
        """The troubles of a client in its group; None if nobody measures the group. See `GroupReport`."""
        reports = self.told.get(group) if group else None
        if not reports:
            return None
        return [each for report in reports.values() for each in report.troubles(client)]

    def of_client(self, client_id: str, address: str, group: str, member: str) -> Behind | None:
        """The lag of a client: that of its partitions in its group, else that of what it fetches."""
        members = self.members.get(group, {})
        for fits in (
            [each for each in members if member and each.member == member],
            [each for each in members if (each.client_id, each.address) == (client_id, address)],
            [each for each in members if each.client_id == client_id],
        ):
            if len(fits) == 1:
                return members[fits[0]]
        found = self.readers.get((client_id, address, group))
        return found[1] if found is not None else None


def told_in(
    payloads: list[bytes],
) -> tuple[tuple[str, ...], Mapping[str, Mapping[Labels, float]], Mapping[str, float]]:
    """The names of a report (see `Report.names`), the values of its group, and those of its client."""
    values = defaultdict[str, dict[Labels, float]](dict)
    reader, names = dict[str, float](), tuple[str, ...]()
    for name, labels, value in points(payloads):
        if name.startswith(GROUP):
            names, known, at = (labels["group"],), values[name.removeprefix(GROUP)], labels_of(labels)
            known.pop(at, None)
            if value is not None:
                known[at] = value
        elif name.startswith(CLIENT) and "topic" not in labels and value is not None:
            names = labels["client_id"], labels["client_address"], labels["group"]
            reader[name.removeprefix(CLIENT)] = value
    return names, values, reader


def labels_of(labels: Mapping[str, str]) -> Labels:
    """The labels of a value of a group."""
    index = labels["partition"]
    return Labels(
        topic=labels["topic"],
        partition=int(index) if index.isdecimal() and len(index) < 10 else -1,
        owner=Owner(labels["member"], labels["client_id"], labels["address"]),
        state=labels["state"],
        kind=labels["type"],
        progress=labels["progress"],
    )


def points(payloads: list[bytes]) -> Iterator[tuple[str, Mapping[str, str], float | None]]:
    """Name, labels and value of each data point; None for one that has ended."""
    for data in payloads:
        try:
            found = MetricsData.FromString(data)
        except DecodeError:
            continue
        for resource in found.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.gauge.data_points:
                        kind = None if point.flags & NO_VALUE else point.WhichOneof("value")
                        labels = defaultdict[str, str](str)
                        for each in point.attributes:
                            labels[each.key] = cut(each.value.string_value)
                        yield metric.name, labels, None if kind is None else float(getattr(point, kind))
