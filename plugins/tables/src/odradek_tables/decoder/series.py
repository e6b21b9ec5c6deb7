"""Series and resources, stored once per worker process under a number.

A data point then is the numbers of its series and its resource, its value and its times. The columns of a
batch are built from the few series that occur in it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Generic, NamedTuple, TypeVar

from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from odradek_tables.decoder.json_values import canonical_json, promoted

FAMILIES = ("admin", "connect", "consumer", "producer", "share", "streams")
OTHER = "other"
PREFIX = "org.apache.kafka."
NODE_NUMBER = "node.id"
"""librdkafka's label of a broker: 1, or -1 for a bootstrap server. Java's ``node_id``: node-1, node--1."""

T = TypeVar("T", bound=Hashable)


class Kind(IntEnum):
    """OTLP's kinds of metrics, with the tables' numbers."""

    GAUGE = 1
    SUM = 2
    HISTOGRAM = 3
    EXPONENTIAL_HISTOGRAM = 4
    SUMMARY = 5


class Number(IntEnum):
    """The type of a data point's value."""

    NONE = 0
    """No value was recorded."""
    DOUBLE = 1
    INT = 2


class Series(NamedTuple):
    """All attributes of a data point but its value and times."""

    name: str
    unit: str
    kind: int
    temporality: int
    monotonic: bool
    attrs: str
    topic: str | None
    partition: str | None
    node_id: str | None
    scope_name: str
    scope_version: str
    flags: int
    number: int
    family: str


class MetricHead(NamedTuple):
    """The fields of a metric besides its data points: the first ones of `Series`."""

    name: str
    unit: str
    kind: int
    temporality: int
    monotonic: bool


class PointLabels(NamedTuple):
    """The attributes of a data point as JSON, and those with columns of their own."""

    attrs: str
    topic: str | None
    partition: str | None
    node_id: str | None

    @classmethod
    def of(cls, attributes: Sequence[KeyValue]) -> PointLabels:
        """The attributes as the tables have them.

        librdkafka has the number of a broker under another key; it becomes the Java client's text.
        """
        topic, partition, node, number = promoted(attributes, (*cls._fields[1:], NODE_NUMBER))
        if node is None and number is not None:
            node = f"node-{number}"
        return cls(canonical_json(attributes), topic, partition, node)


class ResourceLabels(NamedTuple):
    """A resource: its attributes as JSON, and those with columns of their own."""

    resource: str
    client_rack: str | None
    group_id: str | None
    group_instance_id: str | None
    group_member_id: str | None
    transactional_id: str | None

    @classmethod
    def of(cls, attributes: Sequence[KeyValue]) -> ResourceLabels:
        """The attributes as the tables have them."""
        return cls(canonical_json(attributes), *promoted(attributes, cls._fields[1:]))


@dataclass(slots=True)
class Numbered(Generic[T]):
    """Values and their numbers, from 0 on."""

    values: list[T] = field(default_factory=list)
    numbers: dict[T, int] = field(default_factory=dict)

    def number(self, value: T) -> int:
        """The value's number; a new value gets a new number."""
        number = self.numbers.get(value)
        if number is None:
            number = self.numbers[value] = len(self.values)
            self.values.append(value)
        return number

    def clear(self) -> None:
        """Remove all values, which invalidates their numbers."""
        self.values.clear()
        self.numbers.clear()


def family(name: str) -> str:
    """The kind of client in a metric's name. The set of results is bounded, even for invented names."""
    if not name.startswith(PREFIX):
        return OTHER
    first = name[len(PREFIX) :].partition(".")[0]
    return first if first in FAMILIES else OTHER
