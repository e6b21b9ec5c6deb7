"""A shape: the common part of all payloads of one layout, by which their numbers are read without parsing.

Protobuf's control flow depends only on tags, lengths and varints. Suppose that a payload equals the shape in
every byte except those of fixed 64-bit numbers and of resources, and that its resources are as long as the
shape's and equal to each other. Then protobuf parses it into the same tree, and its numbers are at the
offsets of the shape.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import numpy as np
import xxhash

from odradek_tables.decoder.payload_points import Int32s, Int64s, PayloadPoints
from odradek_tables.decoder.series import Numbered, Series
from odradek_tables.decoder.walk import Layout, Span

WORD: Final = 8
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
    """One layout, made from a payload after `walk`."""

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
        """Approximate size in memory."""
        repeated = 0 if self.repeated is None else self.repeated.nbytes
        return 2 * self.length + 28 * len(self.series) + repeated + 1024

    def fits(self, payload: bytes, words: Int64s) -> bool:
        """Whether the payload has this layout.

        Args:
            payload: A payload of the shape's length.
            words: Its complete 64-bit words.
        """
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

    def unaligned(self, payload: bytes) -> Int64s:
        """The 64-bit words that start at each byte."""
        return np.ndarray((self.length - WORD + 1,), "<i8", payload, strides=(1,))

    def points(self, payload: bytes, resource: int) -> PayloadPoints:
        """Read the data points of a payload that fits."""
        count = len(self.series)
        unaligned = self.unaligned(payload)
        return PayloadPoints(
            self.series,
            self.times.read(unaligned, count),
            self.starts.read(unaligned, count),
            self.values.read(unaligned, count),
            resource,
            shape_id=self.shape_id,
        )


def make_shape(payload: bytes, layout: Layout, series: Numbered[Series]) -> Shape | None:
    """The shape of a payload; None if its resources differ, or it is shorter than a word."""
    if len(payload) < WORD:
        return None
    if len({payload[start:end] for start, end in layout.resources}) > 1:
        return None
    mask = np.full(len(payload), 0xFF, np.uint8)
    for offsets in (layout.times, layout.starts, layout.values):
        for offset in offsets:
            if offset >= 0:
                mask[offset : offset + WORD] = 0
    for start, end in layout.resources:
        mask[start:end] = 0
    raw = np.frombuffer(payload, np.uint8) & mask
    whole = len(payload) // WORD * WORD
    constant = raw[:whole].tobytes()
    last = len(payload) - WORD
    return Shape(
        length=len(payload),
        mask=mask[:whole].view("<i8"),
        constant=constant,
        last_mask=unpack_word(mask[last:].tobytes())[0],
        last_constant=unpack_word(raw[last:].tobytes())[0],
        series=np.array([series.number(each) for each in layout.series], np.int32),
        times=column(layout.times),
        starts=column(layout.starts),
        values=column(layout.values),
        resource=layout.resources[0] if layout.resources else (0, 0),
        repeated=repeated_spans(layout.resources),
        shape_id=xxhash.xxh3_64_intdigest(constant + raw[last:].tobytes()) - 2**63,
    )


def repeated_spans(spans: list[Span]) -> Int64s | None:
    """The offsets of the spans; None if there is only one, and so nothing to compare."""
    if len(spans) < 2 or not size_of(spans):
        return None
    return np.array([start for start, _ in spans], np.int64)


def size_of(spans: list[Span]) -> int:
    """The length of spans that all have the same length."""
    return spans[0][1] - spans[0][0] if spans else 0


def column(offsets: list[int]) -> Column:
    """A column from the offsets of all points; -1 is a missing number."""
    there = [index for index, offset in enumerate(offsets) if offset >= 0]
    return Column(
        np.array([offsets[index] for index in there], np.int64),
        None if len(there) == len(offsets) else np.array(there, np.int64),
    )
