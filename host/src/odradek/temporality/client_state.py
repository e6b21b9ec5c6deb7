"""The streams of one client instance: arrays in the order of its shape.

For each stream: total and compensation, start and last time in nanoseconds of the client's clock, and the
second at which the host last saw a point. That is 36 bytes; the rest is shared or small per client.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from enum import IntFlag
from typing import Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.metrics.v1.metrics_pb2 import ExponentialHistogramDataPoint, HistogramDataPoint

from odradek.temporality.exponential import ExponentialState
from odradek.temporality.histogram import HistogramState
from odradek.temporality.shape import DIGEST_BYTES, BadState, Shape
from odradek.temporality.stream_key import Kind

STREAM_BYTES: Final = 36
CLIENT_BYTES: Final = 900
"""Approximate memory of an instance without streams."""
HEAD: Final = struct.Struct("<B16sqqIBIII")
VERSION: Final = 3
ROUTES: Final = struct.Struct("<BI")
"""`ClientState.folded` and the number of routes."""
ROUTE_BYTES: Final = 4
MARK: Final = struct.Struct("<IB")
DISTRIBUTION: Final = struct.Struct("<II")
"""The position of a stream, and the length of its data point, which follows."""
NO_STREAM: Final = -1
OWN: Final = -1
"""The route of a stream that is shown as it is."""
NO_ROUTE: Final = -2
"""The route of a stream that is new."""

Distribution = HistogramState | ExponentialState


class Mark(IntFlag):
    """An unusual property of a stream. The numbers are in stored states."""

    CUMULATIVE = 1
    """Its points are cumulative."""
    ENDED = 2
    """Its last point says that there is no value."""
    INEXACT = 4
    """It was counted as inexact."""


class ClientState:
    """The state of a client instance."""

    __slots__ = (
        "amounts",
        "closed",
        "distributions",
        "folded",
        "interval_ms",
        "last_ms",
        "layout_number",
        "marks",
        "note",
        "resource",
        "resource_hash",
        "routes",
        "seen",
        "shape",
        "times",
    )

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.amounts = array("d")
        """Total and compensation of each stream; of gauges the value."""
        self.times = array("q")
        """Start and last time of each stream; 0 before its first point."""
        self.seen = array("I")
        """When the host last saw a point of each stream, in seconds."""
        self.marks: dict[int, Mark] = {}
        self.distributions: dict[int, Distribution] = {}
        self.last_ms = 0
        """When the host received the last record."""
        self.interval_ms = 0
        self.closed = False
        """The last record was the client's goodbye."""
        self.resource = b""
        self.resource_hash = 0
        self.layout_number = 0
        self.note = b""
        """Facts that a destination needs after a restart, such as the client's labels."""
        self.folded = 0
        """The `budgets.policy.Level` whose ``other`` has all streams of the client; 0 if it has its own."""
        self.routes: array[int] | None = None
        """The route of each stream: the position of the stream of this client that it is part of, or a
        negative number. None if all streams are shown as they are."""

    @property
    def held_bytes(self) -> int:
        """Approximate size in memory, without what is shared."""
        others = sum([each.held_bytes for each in self.distributions.values()]) if self.distributions else 0
        routes = ROUTE_BYTES * len(self.routes) if self.routes is not None else 0
        return CLIENT_BYTES + len(self.note) + STREAM_BYTES * len(self.seen) + routes + others

    def is_shown(self, position: int) -> bool:
        """Whether a stream is shown as it is, and not part of another one."""
        return not self.folded and (self.routes is None or self.routes[position] == OWN)

    def move_to(self, shape: Shape, positions: Sequence[int]) -> None:
        """Take another shape.

        Args:
            shape: The shape.
            positions: For each of its streams the position in the old one; `NO_STREAM` for a new stream.
        """
        old = len(self.seen)
        if len(positions) >= old and positions[:old] == list(range(old)):
            more = len(positions) - old
            self.amounts.frombytes(bytes(16 * more))
            self.times.frombytes(bytes(16 * more))
            self.seen.frombytes(bytes(4 * more))
        else:
            self.amounts = array("d", [v for p in positions for v in pair(self.amounts, p)])
            self.times = array("q", [int(v) for p in positions for v in pair(self.times, p)])
            self.seen = array("I", [0 if p < 0 else self.seen[p] for p in positions])
            moved = {p: place for place, p in enumerate(positions) if p >= 0}
            self.marks = {moved[p]: mark for p, mark in self.marks.items() if p in moved}
            self.distributions = {moved[p]: each for p, each in self.distributions.items() if p in moved}
        if self.routes is not None:
            self.routes = moved_routes(self.routes, positions)
        self.shape = shape

    def stored(self) -> bytes:
        """The state as bytes, to be read by `read_client`."""
        marks = b"".join([MARK.pack(position, mark) for position, mark in self.marks.items()])
        distributions = b"".join([stored_distribution(*each) for each in sorted(self.distributions.items())])
        routes = array("i") if self.routes is None else self.routes
        head = HEAD.pack(
            VERSION,
            self.shape.name(),
            self.last_ms,
            self.interval_ms,
            len(self.seen),
            self.closed,
            len(self.marks),
            len(self.distributions),
            len(distributions),
        )
        arrays = [little(each).tobytes() for each in (self.amounts, self.times, self.seen)]
        routes_head = ROUTES.pack(self.folded, len(routes))
        return b"".join(
            (head, *arrays, marks, distributions, routes_head, little(routes).tobytes(), self.note)
        )


def stored_distribution(position: int, state: Distribution) -> bytes:
    data = state.point(0.0).SerializeToString()
    return DISTRIBUTION.pack(position, len(data)) + data


def little(values: array[float] | array[int]) -> array[float] | array[int]:
    """The array with little-endian numbers."""
    if sys.byteorder == "little":
        return values
    swapped = values[:]
    swapped.byteswap()
    return swapped


def pair(values: Sequence[float], position: int) -> Sequence[float]:
    return (0, 0) if position < 0 else values[2 * position : 2 * position + 2]


def moved_routes(routes: Sequence[int], positions: Sequence[int]) -> array[int]:
    """Routes after a client has taken another shape. A stream whose target is gone is new."""
    moved = {p: place for place, p in enumerate(positions) if p >= 0}
    old = [NO_ROUTE if p < 0 else routes[p] for p in positions]
    return array("i", [moved.get(route, NO_ROUTE) if route >= 0 else route for route in old])


def shape_name(stored: bytes) -> bytes:
    """The digest of the shape of a stored client.

    Raises:
        BadState: It is too short, or of another version.
    """
    if len(stored) < HEAD.size or stored[0] != VERSION:
        raise BadState(f"a stored client of {len(stored)} bytes, version {stored[:1].hex() or 'missing'}")
    return stored[1 : 1 + DIGEST_BYTES]


def read_client(stored: bytes, shapes: Mapping[bytes, Shape]) -> ClientState:
    """A client from its stored state.

    Raises:
        BadState: The bytes are damaged, of another version, or of a shape that is missing.
    """
    shape = shapes.get(shape_name(stored))
    if shape is None:
        raise BadState(f"no shape {shape_name(stored).hex()}")
    _, _, last_ms, interval_ms, streams, closed, marks, distributions, size = HEAD.unpack_from(stored)
    if streams != len(shape.keys):
        raise BadState(f"a stored client of {streams} streams, its shape has {len(shape.keys)}")
    end = HEAD.size + STREAM_BYTES * streams + MARK.size * marks + size
    client = ClientState(shape)
    client.last_ms, client.interval_ms, client.closed = last_ms, interval_ms, bool(closed)
    client.folded, client.routes, note = read_routes(stored, end, streams)
    client.note = stored[note:]
    position = HEAD.size
    for values, width in ((client.amounts, 16), (client.times, 16), (client.seen, 4)):
        values.frombytes(stored[position : position + width * streams])
        if sys.byteorder == "big":
            values.byteswap()
        position += width * streams
    marks_end = position + MARK.size * marks
    client.marks = {place: Mark(mark) for place, mark in MARK.iter_unpack(stored[position:marks_end])}
    if client.marks and max(client.marks) >= streams:
        raise BadState("a mark of a stored client belongs to no stream")
    client.distributions = dict(read_distributions(shape, stored[marks_end:end], distributions))
    return client


def read_distributions(shape: Shape, stored: bytes, count: int) -> Iterator[tuple[int, Distribution]]:
    """The distributions in a stored client, each after the position of its stream.

    Raises:
        BadState: They are damaged.
    """
    position = 0
    try:
        for _ in range(count):
            place, length = DISTRIBUTION.unpack_from(stored, position)
            position += DISTRIBUTION.size + length
            yield place, read_distribution(shape, place, stored[position - length : position])
    except (struct.error, IndexError, DecodeError) as error:
        raise BadState(f"a stored histogram is damaged: {error}") from error
    if position != len(stored):
        raise BadState(f"stored histograms of {len(stored)} bytes instead of {position}")


def read_distribution(shape: Shape, position: int, data: bytes) -> Distribution:
    if shape.known.identity(shape.keys[position]).kind == Kind.HISTOGRAM:
        return HistogramState(HistogramDataPoint.FromString(data))
    return ExponentialState(ExponentialHistogramDataPoint.FromString(data))


def read_routes(stored: bytes, position: int, streams: int) -> tuple[int, array[int] | None, int]:
    """The level and the routes in a stored client, and where they end.

    Raises:
        BadState: They are cut off, their number is not that of the streams, or a route leads to no stream.
    """
    if position + ROUTES.size > len(stored):
        raise BadState(f"a stored client of {len(stored)} bytes without routes")
    folded, count = ROUTES.unpack_from(stored, position)
    position += ROUTES.size
    data, routes = stored[position : position + ROUTE_BYTES * count], array("i")
    if count not in (0, streams) or len(data) != ROUTE_BYTES * count:
        raise BadState(f"a stored client with {count} routes for {streams} streams")
    routes.frombytes(data)
    if sys.byteorder == "big":
        routes.byteswap()
    if count and max(routes) >= streams:
        raise BadState("a route of a stored client leads to no stream")
    return folded, routes if count else None, position + len(data)
