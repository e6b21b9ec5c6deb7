"""Layouts: the common part of all pushes that differ only in their numbers.

Protobuf's control flow depends only on tags, lengths and varints. Two payloads that are equal in every byte
except those of fixed 64-bit numbers are therefore parsed into the same tree, with their numbers at the same
offsets. A layout is learned once from a parsed payload; after that two calls of `struct` check and read a
push.

To learn a layout, each number is searched where its point must be, all numbers are overwritten with others,
and protobuf must read exactly those. So no assumption about the order of fields can go wrong: a payload with
another order is not learned.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    NumberDataPoint,
    ResourceMetrics,
)

from odradek.temporality.counts import Limits
from odradek.temporality.stream_key import StreamKey, StreamKeys

DELTA: Final = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
CUMULATIVE: Final = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
NS: Final = struct.Struct("<Q")
START_TAG: Final = b"\x11"
TIME_TAG: Final = b"\x19"
DOUBLE_TAG: Final = b"\x21"
INTEGER_TAG: Final = b"\x31"
IS_DELTA: Final = b"\x10\x01"
"""The temporality of a sum with its tag."""
MAX_TRIED: Final = 8
"""Limit of the layouts of one length, newest first, that are tried for a client whose latest layout does not
fit. So clients with layouts of their own do not slow each other down, however many they are."""
MAX_UNUSUAL: Final = 8
"""Limit of the bodies of one length that cannot be learned; then no other is tried."""
NO_LAYOUTS: Final[Sequence[Layout]] = ()


class NotUsual(Exception):
    """This payload has no layout that can be learned."""


@dataclass(frozen=True, slots=True)
class Learnable:
    """A data point of a gauge or a delta sum, as protobuf has read it."""

    key: StreamKey | None
    """None for a gauge that is not kept."""
    is_sum: bool
    point: NumberDataPoint
    is_last: bool
    """It is the last point of its metric."""


@dataclass(frozen=True, slots=True)
class Place:
    """The offsets of the numbers of a data point; -1 for a missing start."""

    start: int
    time: int
    value: int
    is_integer: bool


class Layout:
    """One layout: the formats that check and read a push, and the streams of its points."""

    __slots__ = (
        "constants",
        "constants_format",
        "gauge_format",
        "gauge_keys",
        "has_integers",
        "held_bytes",
        "integers",
        "keys",
        "length",
        "number",
        "places",
        "resource",
        "shape_number",
        "starts",
        "sum_format",
        "temporalities",
    )

    def __init__(
        self,
        body: bytes,
        resource: bytes,
        points: Sequence[Learnable],
        places: Sequence[Place],
        temporalities: Sequence[int],
    ) -> None:
        self.length = len(body)
        self.resource = resource
        """The identity of the Resource."""
        self.temporalities = temporalities
        """Offsets of the temporality of each sum."""
        self.constants_format = constants_format(len(body), places)
        self.constants: tuple[bytes, ...] = self.constants_format.unpack(body)
        sums = [place for each, place in zip(points, places, strict=True) if each.is_sum]
        gauges = [
            place
            for each, place in zip(points, places, strict=True)
            if not each.is_sum and each.key is not None
        ]
        self.keys = tuple(each.key for each in points if each.is_sum and each.key is not None)
        self.gauge_keys = tuple(each.key for each in points if not each.is_sum and each.key is not None)
        self.starts = [place.start for place in sums]
        """Offsets of each sum's start; its time and value follow."""
        self.integers = [place.is_integer for place in sums]
        self.has_integers = any(self.integers)
        self.sum_format = numbers_format(len(body), sums, with_start=True)
        self.gauge_format = numbers_format(len(body), gauges, with_start=False)
        self.number = 0
        self.shape_number = 0
        """The shape of the last client that sent this layout."""
        self.places: Sequence[int] = ()
        """The position of each stream, sums then gauges, in that shape."""
        self.held_bytes = 2_000 + 2 * len(body) + 120 * len(points) + 40 * len(self.constants)

    def fits(self, body: bytes) -> bool:
        """Whether a body of the layout's length has the layout."""
        found: tuple[bytes, ...] = self.constants_format.unpack(body)
        return found == self.constants


class Layouts:
    """The known layouts, by the length of what follows the Resource; the least recently used are evicted."""

    def __init__(self, keys: StreamKeys, limits: Limits) -> None:
        self.keys = keys
        self.limits = limits
        self.by_number: OrderedDict[int, Layout] = OrderedDict()
        self.by_length: dict[tuple[bytes, int], list[Layout]] = {}
        """By the identity of the Resource and the length."""
        self.unusual: dict[int, int] = {}
        """How often bodies of a length could not be learned."""
        self.made = 0
        self.held_bytes = 0

    def find(self, body: bytes, resource: bytes, number: int) -> Layout | None:
        """The layout of a body; None if it is unknown.

        Args:
            body: What follows the Resource.
            resource: The identity of the Resource.
            number: The layout of the client's last push, which is tried first.
        """
        length = len(body)
        latest = self.by_number.get(number)
        if latest is not None and latest.length != length:
            latest = None
        if latest is not None and latest.resource == resource and latest.fits(body):
            self.by_number.move_to_end(number)
            return latest
        for layout in self.by_length.get((resource, length), NO_LAYOUTS)[-MAX_TRIED:]:
            if layout is not latest and layout.fits(body):
                self.by_number.move_to_end(layout.number)
                return layout
        return None

    def learn(self, body: bytes, resource: bytes, points: Sequence[Learnable]) -> int:
        """Learn the layout of a body that was parsed; return its number, or 0.

        Args:
            body: What follows the Resource.
            resource: The identity of the Resource.
            points: All of its points, in their order.
        """
        if self.unusual.get(len(body), 0) >= MAX_UNUSUAL:
            return 0
        try:
            places, temporalities = found_places(body, points)
        except NotUsual:
            if len(self.unusual) > self.limits.max_layouts:
                self.unusual.clear()
            self.unusual[len(body)] = self.unusual.get(len(body), 0) + 1
            return 0
        return self.add(Layout(body, resource, points, places, temporalities))

    def add(self, layout: Layout) -> int:
        """Add a layout, and evict others if there are too many; return its number."""
        same = self.by_length.setdefault((layout.resource, layout.length), [])
        self.made += 1
        layout.number = self.made
        same.append(layout)
        self.by_number[layout.number] = layout
        self.held_bytes += layout.held_bytes
        self.keys.use(layout.keys)
        self.keys.use(layout.gauge_keys)
        while len(self.by_number) > self.limits.max_layouts or self.held_bytes > self.limits.max_layout_bytes:
            self.remove(next(iter(self.by_number.values())))
        return layout.number

    def remove(self, layout: Layout) -> None:
        """Forget a layout."""
        del self.by_number[layout.number]
        same = self.by_length[layout.resource, layout.length]
        same.remove(layout)
        if not same:
            del self.by_length[layout.resource, layout.length]
        self.held_bytes -= layout.held_bytes
        self.keys.release(layout.keys)
        self.keys.release(layout.gauge_keys)


def constants_format(length: int, places: Sequence[Place]) -> struct.Struct:
    """The format of all bytes between the numbers."""
    parts, position = ["<"], 0
    for place in places:
        for offset in (place.start, place.time, place.value):
            if offset >= 0:
                parts.append(f"{offset - position}s8x")
                position = offset + 8
    return struct.Struct("".join((*parts, f"{length - position}s")))


def numbers_format(length: int, places: Sequence[Place], *, with_start: bool) -> struct.Struct:
    """The format of time and value of each point, with its start before them or without."""
    parts, position = ["<"], 0
    for place in places:
        if with_start:
            parts.append(f"{place.start - position}xq")
            position = place.start + 8
        parts.append(f"{place.time - position}xqx{'q' if place.is_integer else 'd'}")
        position = place.value + 8
    return struct.Struct("".join((*parts, f"{length - position}x")))


def found_places(body: bytes, points: Sequence[Learnable]) -> tuple[list[Place], list[int]]:
    """The offsets of all numbers, checked by protobuf, and those of the temporalities.

    Raises:
        NotUsual: A number is not found where it is expected, or protobuf reads another one.
    """
    places, position = [], 0
    for each in points:
        places.append(place_of(body, position, each))
        position = places[-1].value + 8
    trial = bytearray(body)
    for index, place in enumerate(places):
        for offset, number in zip((place.start, place.time), trial_times(index), strict=True):
            if offset >= 0:
                NS.pack_into(trial, offset, number)
        trial_value = struct.pack("<q" if place.is_integer else "<d", index)
        trial[place.value : place.value + 8] = trial_value
    temporalities = []
    for each, place in zip(points, places, strict=True):
        if each.is_sum and each.is_last:
            found = body.find(IS_DELTA, place.value + 8)
            if found < 0:
                raise NotUsual
            temporalities.append(found + 1)
            trial[found + 1] = CUMULATIVE
    check(bytes(trial), points, places)
    return places, temporalities


def place_of(body: bytes, position: int, each: Learnable) -> Place:
    """Search the numbers of a point from a position on."""
    point = each.point
    which = point.WhichOneof("value")
    if point.flags or point.exemplars or which is None or (each.is_sum and not point.start_time_unix_nano):
        raise NotUsual
    head = TIME_TAG + NS.pack(point.time_unix_nano) + (DOUBLE_TAG if which == "as_double" else INTEGER_TAG)
    if point.start_time_unix_nano:
        head = START_TAG + NS.pack(point.start_time_unix_nano) + head
    found = body.find(head, position)
    if found < 0 or found + len(head) + 8 > len(body):
        raise NotUsual
    value = found + len(head)
    return Place(found + 1 if point.start_time_unix_nano else -1, value - 9, value, which == "as_int")


def trial_times(index: int) -> tuple[int, int]:
    return 2 * index + 1, 2 * index + 2


def check(trial: bytes, points: Sequence[Learnable], places: Sequence[Place]) -> None:
    """Check that protobuf reads the numbers of the trial."""
    try:
        parsed = ResourceMetrics.FromString(trial)
    except DecodeError as error:
        raise NotUsual from error
    if parsed.HasField("resource"):
        raise NotUsual
    index = 0
    for scope in parsed.scope_metrics:
        for metric in scope.metrics:
            is_sum = metric.WhichOneof("data") == "sum"
            if is_sum and metric.sum.aggregation_temporality != CUMULATIVE:
                raise NotUsual
            for point in metric.sum.data_points if is_sum else metric.gauge.data_points:
                check_point(point, index, places[index], is_sum == points[index].is_sum)
                index += 1
    if index != len(points):
        raise NotUsual


def check_point(point: NumberDataPoint, index: int, place: Place, same_kind: bool) -> None:
    start, time = trial_times(index)
    found = (
        point.start_time_unix_nano,
        point.time_unix_nano,
        point.as_int if place.is_integer else point.as_double,
    )
    if not same_kind or found != (start if place.start >= 0 else 0, time, index):
        raise NotUsual
