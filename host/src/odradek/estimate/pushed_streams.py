"""The streams of a push: the names and labels of the series that Prometheus has of it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from odradek.findings.node_names import node_name
from odradek.otlp.metrics_data import parsed
from odradek.otlp.metrics_writer import key_value
from odradek.otlp.private_messages import message_classes
from odradek.otlp.protobuf_bytes import NotOtlp
from odradek.otlp.sender_records import attribute_texts, parse_attribute

NODE_KEYS: Final = ("node_id", "node.id")
"""Java's attribute, and librdkafka's."""
TOPIC_KEY: Final = "topic"
PARTITION_KEY: Final = "partition"
API_KEY: Final = "api"
PART_KEY: Final = "le"
GROUP_ID_KEY: Final = "group_id"
MAX_REMEMBERED: Final = 100_000

# The fields of data points have different numbers in each kind of metric. Repeated messages above the metrics
# are declared singular, so that protobuf merges them.
PARSE: Final = message_classes(
    "odradek.pushed_streams",
    {
        "Number": {"attributes": (7, "bytes*"), "as_double": (4, "double")},
        "Histogram": {"attributes": (9, "bytes*"), "explicit_bounds": (7, "double*")},
        "Exponential": {"attributes": (1, "bytes*")},
        "Numbers": {"data_points": (1, "Number*")},
        "Histograms": {"data_points": (1, "Histogram*")},
        "Exponentials": {"data_points": (1, "Exponential*")},
        "Metric": {
            "name": (1, "bytes"),
            "gauge": (5, "Numbers"),
            "sum": (7, "Numbers"),
            "histogram": (9, "Histograms"),
            "exponential_histogram": (10, "Exponentials"),
            "summary": (11, "Numbers"),
        },
        "ScopeMetrics": {"metrics": (2, "Metric*")},
        "Resource": {"attributes": (1, "bytes*")},
        "ResourceMetrics": {"resource": (1, "Resource"), "scope_metrics": (2, "ScopeMetrics")},
        "MetricsData": {"resource_metrics": (1, "ResourceMetrics")},
    },
)["MetricsData"].FromString
KINDS: Final = ("gauge", "sum", "histogram", "exponential_histogram", "summary")

Point = tuple[str, Sequence[bytes]]
"""The name of a metric, and the serialized attributes of a data point."""
Stream = tuple[str, bytes]
"""The name of a metric, and the serialized attributes of a data point in a fixed order."""


class Labels(NamedTuple):
    """The labels that divide a client's metrics; None if a stream has no such label."""

    node: str | None = None
    topic: str | None = None
    partition: str | None = None
    api: str | None = None
    """Of observed clients: a kind of request."""

    @property
    def broker(self) -> str | None:
        """The node, if it is a broker: not a bootstrap address, nor the coordinator of a group."""
        return self.node if self.node and node_name(self.node).isdecimal() else None


class PushedPoints(NamedTuple):
    """The data points of a push, and the group of its client."""

    points: Sequence[Point]
    group_id: str
    """Empty if the client has none."""


def points_of(data: bytes) -> PushedPoints:
    """The data points of a push, without their values. Gauges that are no number are left out: Java clients
    send one for each mean and maximum of nothing, and Prometheus has no series of it.

    Args:
        data: A serialized ``MetricsData``.

    Raises:
        NotOtlp: It is not one.
    """
    message: Any = parsed(PARSE, data)
    pushed = message.resource_metrics
    points = [
        (metric.name.decode(errors="replace"), attributes)
        for metric in pushed.scope_metrics.metrics
        for kind in KINDS
        if metric.HasField(kind)
        for point in getattr(metric, kind).data_points
        for attributes in series_of(kind, point)
    ]
    return PushedPoints(points, attributes_of(pushed.resource.attributes).get(GROUP_ID_KEY, ""))


def series_of(kind: str, point: Any) -> Iterator[list[bytes]]:
    """The attributes of each series that Prometheus has of a data point. A histogram has one for each bucket,
    the largest, the count, and the sum.
    """
    attributes = list(point.attributes)
    if kind in ("gauge", "sum"):
        if not math.isnan(point.as_double):
            yield attributes
    elif kind == "summary":
        yield attributes
    else:
        bounds = len(point.explicit_bounds) if kind == "histogram" else 0
        for part in range(bounds + 3):
            yield [*attributes, key_value(PART_KEY, str(part))]


@dataclass(slots=True, eq=False)
class StreamReader:
    """Reads the streams of pushes. Equal ones are the same object, so that a thousand clients share them."""

    streams: dict[Stream, Stream] = field(default_factory=dict)
    sets: dict[frozenset[Stream], frozenset[Stream]] = field(default_factory=dict)
    labels: dict[bytes, Labels] = field(default_factory=dict)

    def read(self, points: Iterable[Point]) -> frozenset[Stream]:
        """The streams of a push with these data points."""
        return self.shared(frozenset(self.stream(name, attributes) for name, attributes in points))

    def stream(self, name: str, attributes: Sequence[bytes]) -> Stream:
        key = name, b"".join(attributes if len(attributes) < 2 else sorted(attributes))
        known = self.streams.get(key)
        if known is None:
            known = key
            if len(self.streams) < MAX_REMEMBERED:
                self.streams[key] = key
                self.labels.setdefault(key[1], labels_of(attributes))
        return known

    def shared(self, streams: frozenset[Stream]) -> frozenset[Stream]:
        """The same set as one object for all clients that have it."""
        if len(self.sets) >= MAX_REMEMBERED:
            return streams
        return self.sets.setdefault(streams, streams)


def attributes_of(attributes: Sequence[bytes]) -> dict[str, str]:
    """Serialized attributes that are text or whole numbers, as text."""
    found = []
    for raw in attributes:
        with contextlib.suppress(NotOtlp):
            found.append(parsed(parse_attribute, raw))
    return attribute_texts(found)


def labels_of(attributes: Sequence[bytes]) -> Labels:
    """The labels of a data point that divide a client's metrics."""
    found = attributes_of(attributes)
    node = next((found[key] for key in NODE_KEYS if key in found), None)
    return Labels(node, found.get(TOPIC_KEY), found.get(PARTITION_KEY), found.get(API_KEY))
