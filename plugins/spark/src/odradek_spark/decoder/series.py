"""What data points have in common, kept once per worker process under a number.

A data point is then two numbers and its times: which series, which resource. The columns of a batch are made
from the few series that occur in it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Generic, NamedTuple, TypeVar

from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope, KeyValue

from odradek_spark.decoder.json_values import canonical_json, promoted

FAMILIES = ("admin", "connect", "consumer", "producer", "share", "streams")
OTHER = "other"
PREFIX = "org.apache.kafka."

T = TypeVar("T", bound=Hashable)


class Kind(IntEnum):
    """OTLP's kinds of metric, as the tables number them."""

    GAUGE = 1
    SUM = 2
    HISTOGRAM = 3
    EXPONENTIAL_HISTOGRAM = 4
    SUMMARY = 5


class Number(IntEnum):
    """How a data point has its value."""

    NONE = 0
    """Not recorded."""
    DOUBLE = 1
    INT = 2


class Series(NamedTuple):
    """Everything about a data point but its value and times."""

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


@dataclass(slots=True)
class MetricHead:
    """What a metric says before its data points."""

    name: str = ""
    description: str = ""
    unit: str = ""
    kind: int = 0
    temporality: int = 0
    monotonic: bool = False


class PointLabels(NamedTuple):
    """The attributes of a data point as JSON, and those with columns of their own."""

    attrs: str
    topic: str | None
    partition: str | None
    node_id: str | None

    @classmethod
    def of(cls, attributes: Sequence[KeyValue]) -> PointLabels:
        """The attributes as the tables have them."""
        return cls(canonical_json(attributes), *promoted(attributes, cls._fields[1:]))


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
        """The value's number, a new one if it is new."""
        number = self.numbers.get(value)
        if number is None:
            number = self.numbers[value] = len(self.values)
            self.values.append(value)
        return number

    def clear(self) -> None:
        """Forget everything; numbers that were given mean nothing any more."""
        self.values.clear()
        self.numbers.clear()


def family(name: str) -> str:
    """Which client a metric is about: bounded, whatever names a client makes up."""
    if not name.startswith(PREFIX):
        return OTHER
    first = name[len(PREFIX) :].partition(".")[0]
    return first if first in FAMILIES else OTHER


def series_of(
    head: MetricHead,
    scope: InstrumentationScope,
    labels: PointLabels,
    flags: int,
    number: Number = Number.NONE,
) -> Series:
    """The series of a data point."""
    return Series(
        head.name,
        head.unit,
        head.kind,
        head.temporality,
        head.monotonic,
        *labels,
        scope.name,
        scope.version,
        flags,
        number,
        family(head.name),
    )
