"""A shape: the common part of all payloads of one layout, by which their numbers are read without parsing.

Protobuf's control flow depends only on tags, lengths and varints. Suppose that a payload equals the shape in
every byte except those of fixed 64-bit numbers and of resources, and that its resources are as long as the
shape's and equal to each other. Then protobuf parses it into the same tree, and its numbers are at the
offsets of the shape.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import xxhash
from google.protobuf.message import DecodeError

from odradek.otlp import NotOtlp
from odradek.otlp.protobuf_fields import FieldBudget, fields
from odradek_tables.decoder.by_protobuf import bits_of, number_points
from odradek_tables.decoder.payload_points import Int32s, Int64s, PayloadPoints
from odradek_tables.decoder.series import Number, Numbered, Series

WORD: Final = 8
FIRST: Final = 1 << 3 | 2
"""The tag of field 1 with a length: a ResourceMetrics, and the resource in it."""
START, TIME = b"\x11", b"\x19"
VALUES: Final[Mapping[int, bytes]] = {Number.NONE: b"", Number.DOUBLE: b"\x21", Number.INT: b"\x31"}
"""The tags of a point's numbers."""
MAX_SHAPES: Final = 4096
MAX_BYTES: Final = 256 << 20
"""Limits of the shapes of a worker process."""
MAX_PER_LENGTH: Final = 16
"""Limit of layouts that are tried per length: a client with random layouts slows down only itself."""
WORDS: Final = struct.Struct("<q")
Span = tuple[int, int]
"""Start and end of a field's bytes."""
unpack_word = struct.Struct("<Q").unpack_from


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """The offset of one number of each point."""

    offsets: Int64s
    points: Int64s | None
    """The points that have the number; None for all."""

    def read(self, words: Int64s, count: int) -> Int64s:
        """The numbers of all points; 0 for those that have none."""
        found: Int64s = words[self.offsets]  # not take(), which copies all words to align them
        if self.points is None:
            return found
        all_points = np.zeros(count, np.int64)
        all_points[self.points] = found
        return all_points


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    length: int
    mask: Int64s
    """All ones for bytes that must be equal, in words; the last word overlaps the one before it."""
    constant: bytes
    last_mask: int
    last_constant: int
    series: Int32s
    times: Column
    starts: Column
    values: Column
    resource: Span
    """The first resource."""
    repeated: Int64s | None
    """The offsets of all resources; None if there is only one."""
    shape_id: int

    @property
    def held_bytes(self) -> int:
        repeated = 0 if self.repeated is None else self.repeated.nbytes
        return 2 * self.length + 28 * len(self.series) + repeated + 1024

    def fits(self, payload: bytes, words: Int64s) -> bool:
        """Whether a payload of the shape's length has this layout; ``words`` are its whole 64-bit words."""
        if unpack_word(payload, self.length - WORD)[0] & self.last_mask != self.last_constant:
            return False
        return (words & self.mask).tobytes() == self.constant and self.has_one_resource(payload)

    def has_one_resource(self, payload: bytes) -> bool:
        """Whether all resources are equal."""
        if self.repeated is None:
            return True
        start, end = self.resource
        size = end - start
        # numpy compares each resource as one element: slices or words would take four times as long
        every = np.ndarray((self.length - size + 1,), f"V{size}", payload, strides=(1,))[self.repeated]
        return every.tobytes() == payload[start:end] * len(self.repeated)

    def points(self, payload: bytes, resource: int) -> PayloadPoints:
        count = len(self.series)
        words = unaligned(payload)
        return PayloadPoints(
            self.series,
            self.times.read(words, count),
            self.starts.read(words, count),
            self.values.read(words, count),
            resource,
            shape_id=self.shape_id,
        )


class ShapeCache:
    """Shapes by the length of their payloads; the least recently used ones are evicted."""

    def __init__(self, max_shapes: int = MAX_SHAPES, max_bytes: int = MAX_BYTES) -> None:
        self.max_shapes = max_shapes
        self.max_bytes = max_bytes
        self.by_length: OrderedDict[int, list[Shape]] = OrderedDict()
        """For each length, the most recently used shape first."""
        self.shapes = 0
        self.held_bytes = 0

    def find(self, payload: bytes) -> Shape | None:
        candidates = self.by_length.get(len(payload))
        if not candidates:
            return None
        words = np.frombuffer(payload, "<i8", count=len(payload) // WORD)
        for index, shape in enumerate(candidates):
            if shape.fits(payload, words):
                if index:
                    candidates.insert(0, candidates.pop(index))
                self.by_length.move_to_end(shape.length)
                return shape
        return None

    def add(self, shape: Shape) -> None:
        """Add a shape, unless it alone exceeds the limit; evict the least recently used lengths."""
        if shape.held_bytes > self.max_bytes:
            return
        candidates = self.by_length.setdefault(shape.length, [])
        candidates.insert(0, shape)
        self.count(shape, 1)
        self.by_length.move_to_end(shape.length)
        if len(candidates) > MAX_PER_LENGTH:
            self.count(candidates.pop(), -1)
        while self.shapes > self.max_shapes or self.held_bytes > self.max_bytes:
            length, oldest = next(iter(self.by_length.items()))
            self.count(oldest.pop(), -1)
            if not oldest:
                del self.by_length[length]

    def count(self, shape: Shape, times: int) -> None:
        self.shapes += times
        self.held_bytes += times * shape.held_bytes

    def clear(self) -> None:
        self.by_length.clear()
        self.shapes = self.held_bytes = 0


def make_shape(payload: bytes, found: PayloadPoints, series: Numbered[Series]) -> Shape | None:
    """The shape of a payload, whose points protobuf has found.

    Returns:
        None if it has histograms or exemplars, if some resources differ or are missing, or if its numbers are
        not where a search finds them.
    """
    spans = resource_spans(payload)
    if len(payload) < WORD or found.histograms or found.exemplars or spans is None:
        return None
    offsets = places(payload, found, [VALUES[series.values[each].number] for each in found.series.tolist()])
    if offsets is None or not is_read_there(payload, offsets):
        return None
    mask = np.full(len(payload), 0xFF, np.uint8)
    mask[offsets[offsets > 0][:, None] + np.arange(WORD)] = 0
    for start, end in spans:
        mask[start:end] = 0
    raw = np.frombuffer(payload, np.uint8) & mask
    whole = len(payload) // WORD * WORD
    constant = raw[:whole].tobytes()
    last = len(payload) - WORD
    starts, times, values = (column(each) for each in offsets.T)
    return Shape(
        length=len(payload),
        mask=mask[:whole].view("<i8"),
        constant=constant,
        last_mask=unpack_word(mask[last:].tobytes())[0],
        last_constant=unpack_word(raw[last:].tobytes())[0],
        series=found.series,
        times=times,
        starts=starts,
        values=values,
        resource=spans[0] if spans else (0, 0),
        repeated=repeated_spans(spans),
        shape_id=xxhash.xxh3_64_intdigest(constant + raw[last:].tobytes()) - 2**63,
    )


def resource_spans(payload: bytes) -> list[Span] | None:
    """Where the resources are; None if they differ, or if some of the groups have none or several."""
    budget = FieldBudget(len(payload))
    try:
        groups = [
            [(begin, stop) for each, _, begin, stop in fields(payload, budget, start, end) if each == FIRST]
            for tag, _, start, end in fields(payload, budget)
            if tag == FIRST
        ]
    except NotOtlp:  # protobuf skips more kinds of unknown fields
        return None
    spans = [span for group in groups for span in group]
    if spans and any(len(group) != 1 for group in groups):
        return None
    return spans if len({payload[start:end] for start, end in spans}) <= 1 else None


def places(payload: bytes, found: PayloadPoints, kinds: Sequence[bytes]) -> Int64s | None:
    """By point, the offsets of its start, time and value, searched in their order; 0 for a missing number.

    None if a number is not found.
    """
    numbers = zip(found.starts.tolist(), found.times.tolist(), found.values.tolist(), kinds, strict=True)
    offsets, position = [], 0
    for start, time, value, kind in numbers:
        tagged = ((start and START, start), (time and TIME, time), (kind, value))
        point = [tag and payload.find(tag + WORDS.pack(number), position) + 1 for tag, number in tagged]
        if any(tag and not offset for (tag, _), offset in zip(tagged, point, strict=True)):
            return None
        offsets.append([each or 0 for each in point])
        position = max(position, *(each + WORD for each in offsets[-1]))
    return np.array(offsets, np.int64).reshape(-1, 3)


def is_read_there(payload: bytes, offsets: Int64s) -> bool:
    """Whether protobuf reads other numbers at these offsets as the same starts, times and values."""
    trial = bytearray(payload)
    marks = np.arange(1, offsets.size + 1).reshape(offsets.shape)
    unaligned(trial)[offsets[offsets > 0]] = marks[offsets > 0]
    try:
        points = list(number_points(bytes(trial)))
    except DecodeError:
        return False
    if len(points) != len(offsets):
        return False
    rows: list[list[int]] = np.hstack([offsets, marks]).tolist()
    for point, row in zip(points, rows, strict=True):
        read = (point.start_time_unix_nano, point.time_unix_nano, bits_of(point))
        if any(at and number != mark for at, number, mark in zip(row[:3], read, row[3:], strict=True)):
            return False
    return True


def unaligned(data: bytes | bytearray) -> Int64s:
    """The 64-bit words that start at each byte."""
    return np.ndarray((len(data) - WORD + 1,), "<i8", data, strides=(1,))


def repeated_spans(spans: Sequence[Span]) -> Int64s | None:
    """The offsets of equal spans; None if there is only one, and so nothing to compare."""
    if len(spans) < 2 or spans[0][0] == spans[0][1]:
        return None
    return np.array([start for start, _ in spans], np.int64)


def column(offsets: Int64s) -> Column:
    """A column from the offsets of all points; 0 is a missing number."""
    there = np.flatnonzero(offsets)
    return Column(offsets[there], None if len(there) == len(offsets) else there)
