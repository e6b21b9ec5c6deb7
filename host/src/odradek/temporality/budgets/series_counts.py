"""Counts of live series by app, principal, software, metric and label.

Each series that begins or ends changes the counts that it belongs to, so an answer scans no series.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from odradek.temporality.budgets.other_streams import labels_of
from odradek.temporality.stream_key import LOWER_HALF, StreamKey, StreamKeys

HOUR_MS = 3_600_000
Key = TypeVar("Key")
Labels = tuple[tuple[str, str], ...]


class ClientFacts(NamedTuple):
    """The names by which the series of a client instance are counted."""

    app: str
    principal: str
    software: str
    example: str
    """A name that a person recognizes the client by: its client id."""


@dataclass(slots=True)
class SeriesCount:
    """Live series of one app, principal, software, metric or label."""

    series: int = 0
    created: int = 0
    """Series that were ever created."""
    created_by_hour: int = 0
    """`created` when the current hour began."""
    created_last_hour: int = 0
    hour: int = 0
    clients: int = 0
    """Live instances of an app, principal or software."""
    others: int = 0
    """Instances that have the series of many."""
    example: str = ""
    """The newest: a client id, a label's value, or the labels of a series."""

    def add(self, series: int, hour: int) -> None:
        """Count new series."""
        if hour > self.hour:
            self.roll(hour)
        self.series += series
        self.created += series

    @property
    def users(self) -> int:
        """All instances."""
        return self.clients + self.others

    def leave(self, is_other: bool) -> None:
        """Count one instance fewer."""
        if is_other:
            self.others -= 1
        else:
            self.clients -= 1

    def roll(self, hour: int) -> None:
        """Begin an hour."""
        self.created_last_hour = self.created - self.created_by_hour if hour == self.hour + 1 else 0
        self.created_by_hour, self.hour = self.created, hour

    def new_per_hour(self, now_ms: int) -> int:
        """New series in about the last hour."""
        hour, into_ms = divmod(now_ms, HOUR_MS)
        if hour > self.hour:
            self.roll(hour)
        earlier = self.created_last_hour * (HOUR_MS - into_ms) // HOUR_MS
        return self.created - self.created_by_hour + earlier


@dataclass(slots=True)
class LabelCount(SeriesCount):
    """Live series of a metric that have a label, and the label's values."""

    values: dict[str, int] = field(default_factory=dict)
    """The number of live streams with each value."""


@dataclass(slots=True)
class MetricCount(SeriesCount):
    """Live series of a metric."""

    labels: dict[str, LabelCount] = field(default_factory=dict)
    latest: Labels = ()
    """The labels of its newest series."""

    def widest_label(self) -> tuple[str, int]:
        """The label with the most values, and their number; empty without labels."""
        return max(
            ((name, len(label.values)) for name, label in self.labels.items()),
            key=lambda each: each[1],
            default=("", 0),
        )


class SeriesCounts:
    """All counts of one destination."""

    def __init__(self, keys: StreamKeys) -> None:
        self.keys = keys
        self.series = SeriesCount()
        self.apps: dict[tuple[str, str], SeriesCount] = {}
        """By principal and app."""
        self.principals: dict[str, SeriesCount] = {}
        self.software: dict[str, SeriesCount] = {}
        self.metrics: dict[str, MetricCount] = {}
        self.hour = 0
        self.most_values = 0
        """An upper bound of the values of each label of a metric."""
        self.pairs: dict[int, tuple[bytes, Labels]] = {}
        """The attributes of streams, serialized and as labels, by their number."""

    def of_client(
        self, facts: ClientFacts, *, is_other: bool
    ) -> tuple[SeriesCount, SeriesCount, SeriesCount, SeriesCount]:
        """The counts of a client's series: app, principal, all, software. `leave` forgets empty ones."""
        found = (
            self.apps.setdefault((facts.principal, facts.app), SeriesCount()),
            self.principals.setdefault(facts.principal, SeriesCount()),
            self.series,
            self.software.setdefault(facts.software, SeriesCount()),
        )
        for count in found:
            if is_other:
                count.others += 1
            else:
                count.clients += 1
                count.example = facts.example
        return found

    def leave(self, facts: ClientFacts, *, is_other: bool) -> None:
        """Count one instance fewer, and forget counts without instances."""
        left_in(self.apps, (facts.principal, facts.app), is_other)
        left_in(self.principals, facts.principal, is_other)
        left_in(self.software, facts.software, is_other)
        self.series.leave(is_other)

    def name_of(self, key: StreamKey) -> str:
        """The metric of a stream."""
        return self.keys.families.value(key >> 32)[2]

    def pairs_of(self, key: StreamKey) -> Labels:
        """Labels and values of a stream."""
        number = key & LOWER_HALF
        attributes = self.keys.attributes.value(number)
        if not attributes:
            return ()
        known = self.pairs.get(number)
        # The number may have stood for other attributes.
        if known is None or known[0] is not attributes:
            known = self.pairs[number] = attributes, labels_of(attributes)
        return known[1]

    def add(self, key: StreamKey, series: int = 1) -> None:
        """Count a new stream of a client under its metric and labels.

        Args:
            key: The stream.
            series: Its series: a histogram has several.
        """
        name, hour = self.name_of(key), self.hour
        metric = self.metrics.get(name)
        if metric is None:
            metric = self.metrics[name] = MetricCount()
        metric.add(series, hour)
        pairs = self.pairs_of(key)
        for name, value in pairs:
            label = metric.labels.get(name)
            if label is None:
                label = metric.labels[name] = LabelCount()
            label.add(series, hour)
            label.values[value] = label.values.get(value, 0) + 1
            if len(label.values) > self.most_values:
                self.most_values = len(label.values)
        metric.latest = pairs

    def remove(self, key: StreamKey, series: int = 1) -> None:
        """Count a series that has ended."""
        name = self.name_of(key)
        metric = self.metrics[name]
        metric.series -= series
        for label_name, value in self.pairs_of(key):
            label = metric.labels[label_name]
            label.series -= series
            label.values[value] -= 1
            if not label.values[value]:
                del label.values[value]
                if not label.values:
                    del metric.labels[label_name]
        if not metric.series:
            del self.metrics[name]

    def has_label_room(self, streams: int, limit: int) -> bool:
        """Whether so many new streams cannot give any label more values than the limit."""
        if self.most_values + streams > limit:
            labels = [label for metric in self.metrics.values() for label in metric.labels.values()]
            self.most_values = max([len(label.values) for label in labels], default=0)
        return self.most_values + streams <= limit

    def begin_hour(self) -> None:
        """Take all series as created before this hour."""
        tables = (self.apps, self.principals, self.software, self.metrics)
        counts = [count for table in tables for count in table.values()]
        labels = [label for metric in self.metrics.values() for label in metric.labels.values()]
        for count in (self.series, *counts, *labels):
            count.created_by_hour, count.created_last_hour = count.created, 0

    def labels(self) -> dict[str, LabelCount]:
        """The counts of each label over all metrics. Its values are those of the metric with the most."""
        found: dict[str, LabelCount] = {}
        for metric in self.metrics.values():
            for name, label in metric.labels.items():
                total = found.setdefault(name, LabelCount())
                total.series += label.series
                total.created += label.created
                total.created_by_hour += label.created_by_hour
                total.created_last_hour += label.created_last_hour
                total.hour = max(total.hour, label.hour)
                if len(label.values) > len(total.values):
                    total.values, total.example = label.values, label.example
        return found


def left_in(counts: dict[Key, SeriesCount], key: Key, is_other: bool) -> None:
    """Count one instance fewer, and forget a count without instances."""
    counts[key].leave(is_other)
    if not counts[key].users:
        del counts[key]
