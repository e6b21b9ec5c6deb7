"""Walks through the bytes of a payload and finds the offsets of its numbers.

It supports what Kafka clients send: gauges and sums with fixed 64-bit numbers, and one resource. Everything
else is `Unusual` and left to protobuf, which also decides whether bytes are OTLP at all: this walk accepts
nothing that protobuf would refuse or read differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope, KeyValue

from odradek_tables.decoder.series import Kind, MetricHead, Number, PointLabels, Series, series_of

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MAX_VARINT_BYTES = 5
"""Longer varints are left to protobuf: it refuses them as tags and lengths, and truncates numbers."""
ONE_BYTE = 0x80
"""Varints below this are one byte."""
MAX_FIELD = 2**29 - 1
REMEMBERED = 4096
NO_RECORDED_VALUE = 1

Span = tuple[int, int]
"""Start and end of a field's bytes."""


class Unusual(Exception):
    """Protobuf must decode this payload."""


@dataclass(slots=True)
class Layout:
    """The offsets of a payload's numbers, by point; -1 for a missing number."""

    series: list[Series] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    resources: list[Span] = field(default_factory=list)
    groups: int = 0
    """The number of ResourceMetrics, with or without a resource."""


def walk(payload: bytes) -> Layout:
    """Find the offsets of a payload's numbers.

    Raises:
        Unusual: The payload has something that this walk does not support.
    """
    layout = Layout()
    try:
        for number, wire, start, end in fields(payload, 0, len(payload)):
            if expect(number, wire, {1: BYTES}):
                layout.groups += 1
                walk_resource_metrics(payload, (start, end), layout)
    except (IndexError, UnicodeDecodeError, DecodeError) as error:
        raise Unusual from error
    if layout.resources and len(layout.resources) != layout.groups:
        raise Unusual
    return layout


def walk_resource_metrics(payload: bytes, span: Span, layout: Layout) -> None:
    seen = 0
    for number, wire, start, end in fields(payload, *span):
        if not expect(number, wire, {1: BYTES, 2: BYTES, 3: BYTES}):
            continue
        if number == 2:
            walk_scope_metrics(payload, (start, end), layout)
        else:
            seen = once(seen, number)
            if number == 1:
                layout.resources.append((start, end))
            else:
                payload[start:end].decode()


def walk_scope_metrics(payload: bytes, span: Span, layout: Layout) -> None:
    scope, seen, metrics = InstrumentationScope(), 0, []
    for number, wire, start, end in fields(payload, *span):
        if not expect(number, wire, {1: BYTES, 2: BYTES, 3: BYTES}):
            continue
        if number == 2:
            metrics.append((start, end))
            continue
        seen = once(seen, number)
        if number == 1:
            scope = read_scope(payload[start:end])
        else:
            payload[start:end].decode()
    for metric in metrics:
        walk_metric(payload, metric, scope, layout)


def walk_metric(payload: bytes, span: Span, scope: InstrumentationScope, layout: Layout) -> None:
    head, body = metric_head(payload, span)
    points = []
    for number, wire, start, end in fields(payload, *body):
        if number == 1 and wire == BYTES:
            points.append((start, end))
        elif head.kind == Kind.SUM and number in (2, 3):
            continue
        elif number <= 3:
            raise Unusual
    for point in points:
        walk_point(payload, point, head, scope, layout)


def metric_head(payload: bytes, span: Span) -> tuple[MetricHead, Span]:
    """Name, unit and kind of a metric, and the span of its data; an empty span if it has none."""
    head, body, seen = MetricHead(), (0, 0), 0
    for number, wire, start, end in fields(payload, *span):
        if number > 12:
            continue
        if wire != BYTES or number not in (1, 2, 3, 5, 7, 12):
            raise Unusual
        if number == 12:
            flat([KeyValue.FromString(payload[start:end])])
            continue
        seen = once(seen, 5 if number == 7 else number)
        if number in HEAD_TEXTS:
            setattr(head, HEAD_TEXTS[number], payload[start:end].decode())
        else:
            head.kind = Kind.GAUGE if number == 5 else Kind.SUM
            body = (start, end)
    if head.kind == Kind.SUM:
        sum_head(payload, body, head)
    return head, body


HEAD_TEXTS = {1: "name", 2: "description", 3: "unit"}


def sum_head(payload: bytes, body: Span, head: MetricHead) -> None:
    """Read temporality and monotonicity of a sum."""
    seen = 0
    for number, wire, start, _ in fields(payload, *body):
        if number not in (2, 3):
            continue
        if wire != VARINT:
            raise Unusual
        seen = once(seen, number)
        value, _ = varint(payload, start)
        if number == 2:
            head.temporality = small(value)
        else:
            head.monotonic = bool(value)


@dataclass(slots=True)
class Point:
    """The offsets of a data point's numbers; -1 for a missing one."""

    start: int = -1
    time: int = -1
    value: int = -1
    number: Number = Number.NONE
    flags: int = 0
    attributes: list[bytes] = field(default_factory=list)

    def place(self, number: int, offset: int) -> None:
        """Store the offset of a fixed 64-bit field."""
        if number == 2:
            self.start = offset
        elif number == 3:
            self.time = offset
        else:
            self.value = offset
            self.number = Number.DOUBLE if number == 4 else Number.INT


def walk_point(
    payload: bytes, span: Span, head: MetricHead, scope: InstrumentationScope, layout: Layout
) -> None:
    point = read_point(payload, span)
    if point.flags & NO_RECORDED_VALUE:
        point.number, point.value = Number.NONE, -1
    labels = point_labels(tuple(point.attributes))
    layout.series.append(series_of(head, scope, labels, point.flags, point.number))
    layout.times.append(point.time)
    layout.starts.append(point.start)
    layout.values.append(point.value)


@lru_cache(REMEMBERED)
def point_labels(attributes: tuple[bytes, ...]) -> PointLabels:
    """Parse the attributes of a data point. Cached, because many points share them."""
    return PointLabels.of(flat([KeyValue.FromString(each) for each in attributes]))


@lru_cache(REMEMBERED)
def read_scope(scope: bytes) -> InstrumentationScope:
    """Parse a scope."""
    found = InstrumentationScope.FromString(scope)
    flat(found.attributes)
    return found


def flat(attributes: Sequence[KeyValue]) -> Sequence[KeyValue]:
    """Check that no attribute is a list or a map.

    Protobuf limits the depth counted from the payload, which parsing an attribute alone would miss.

    Raises:
        Unusual: An attribute is a list or a map.
    """
    if any(each.value.WhichOneof("value") in ("array_value", "kvlist_value") for each in attributes):
        raise Unusual
    return attributes


def read_point(payload: bytes, span: Span) -> Point:
    """Find the fields of a data point."""
    point, seen = Point(), 0
    for number, wire, start, end in fields(payload, *span):
        if number == 7 and wire == BYTES:
            point.attributes.append(payload[start:end])
        elif number == 8 and wire == VARINT:
            seen = once(seen, number)
            point.flags = small(varint(payload, start)[0])
        elif number in NUMBERS and wire == FIXED64:
            seen = once(seen, NUMBERS[number])
            point.place(number, start)
        elif number <= 8:
            raise Unusual
    return point


NUMBERS = {2: 2, 3: 3, 4: 4, 6: 4}
"""Fixed 64-bit fields, by number; the double (4) and the integer (6) share a oneof."""


def fields(  # noqa: C901  tags and lengths of one byte are read in place: half the time of a walk
    payload: bytes, position: int, end: int
) -> Iterator[tuple[int, int, int, int]]:
    """Number, wire type, start and end of each field; for length-delimited fields, of their contents."""
    while position < end:
        tag = payload[position]
        position += 1
        if tag >= ONE_BYTE:
            tag, position = varint(payload, position - 1)
        number, wire = tag >> 3, tag & 7
        if not 0 < number <= MAX_FIELD:
            raise Unusual
        if wire == BYTES:
            size = payload[position]
            position += 1
            if size >= ONE_BYTE:
                size, position = varint(payload, position - 1)
            stop = position + size
        elif wire == VARINT:
            stop = varint(payload, position)[1]
        elif wire == FIXED64:
            stop = position + 8
        elif wire == FIXED32:
            stop = position + 4
        else:
            raise Unusual
        if stop > end:
            raise Unusual
        yield number, wire, position, stop
        position = stop


def varint(payload: bytes, position: int) -> tuple[int, int]:
    """Read a varint; return it and the offset after it."""
    value = 0
    for index in range(MAX_VARINT_BYTES):
        byte = payload[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < ONE_BYTE:
            return value, position + index + 1
    raise Unusual


def expect(number: int, wire: int, known: dict[int, int]) -> bool:
    """Whether a field is known; raises `Unusual` for a known field of another wire type."""
    if number not in known:
        return False
    if known[number] != wire:
        raise Unusual
    return True


def once(seen: int, number: int) -> int:
    """Add a field to the bits of ``seen``; raises `Unusual` for a repetition, which protobuf must merge."""
    if seen >> number & 1:
        raise Unusual
    return seen | 1 << number


def small(value: int) -> int:
    """Check that a number fits its type and its column; raises `Unusual` if not."""
    if value > 127:
        raise Unusual
    return value
