"""Adds the points of a push whose layout is known, and writes the totals into its bytes.

These loops run for each counter of each push. They do what `Conversion` does, for the usual case only:
finite deltas that are not negative, and streams without marks.
"""

from __future__ import annotations

import struct
from typing import Final

from odradek.temporality.client_state import ClientState, Mark
from odradek.temporality.counts import Counts
from odradek.temporality.exact_sum import EXACT, whole
from odradek.temporality.layout import CUMULATIVE, DOUBLE_TAG, INTEGER_TAG, TIME_TAG, Layout
from odradek.temporality.stream_times import StreamTimes

DOUBLE_POINT: Final = struct.Struct("<qcqcd")
"""Start, tag, time, tag and value, which are adjacent in a layout."""
INTEGER_POINT: Final = struct.Struct("<qcqcq")


def add_usual(layout: Layout, body: bytes, client: ClientState, times: StreamTimes, counts: Counts) -> bool:
    """Add all points; False, with nothing added, if one of them is unusual."""
    numbers = layout.sum_format.unpack(body)
    values = numbers[2::3]
    # A value that is not finite makes the sum not finite, and so the comparison false.
    if client.marks or (values and not (min(values) >= 0 and sum(values) <= EXACT)):
        return False
    amounts, known, seen = client.amounts, client.times, client.seen
    now_s = times.now_ns // 1_000_000_000
    for position, start, time, value in zip(
        layout.places, numbers[0::3], numbers[1::3], values, strict=False
    ):
        first = position + position
        if start == known[first + 1] <= time:
            known[first + 1] = time
        else:
            times.move(position, start, time)
        seen[position] = now_s
        if value:
            total = amounts[first]
            result = total + value
            amounts[first] = result
            if total >= value:
                amounts[first + 1] += (total - result) + value
            else:
                amounts[first + 1] += (value - result) + total
    counts.added_points += len(values)
    if layout.gauge_keys:
        set_gauges(layout, body, client, times, now_s)
    if layout.has_integers:
        note_inexact(layout, client, counts)
    return True


def set_gauges(layout: Layout, body: bytes, client: ClientState, times: StreamTimes, now_s: int) -> None:
    """Take the values of the gauges."""
    numbers = layout.gauge_format.unpack(body)
    for position, time, value in zip(
        layout.places[len(layout.keys) :], numbers[0::2], numbers[1::2], strict=True
    ):
        times.move_cumulative(position, time, time)
        client.amounts[2 * position] = value
        client.seen[position] = now_s


def note_inexact(layout: Layout, client: ClientState, counts: Counts) -> None:
    """Count streams of integers that have become too large for a double."""
    for position, is_integer in zip(layout.places, layout.integers, strict=False):
        total, compensation = client.amounts[2 * position : 2 * position + 2]
        if is_integer and total >= EXACT and int(total) + int(compensation) > EXACT:
            client.marks[position] = Mark.INEXACT
            counts.inexact_streams += 1


def write_usual(layout: Layout, data: bytes, body: int, client: ClientState) -> bytes:
    """The push with the totals of its streams.

    Args:
        layout: The layout of the body.
        data: The push.
        body: Where the body starts.
        client: The client, which has all streams of the layout.
    """
    out = bytearray(data)
    for offset in layout.temporalities:
        out[body + offset] = CUMULATIVE
    amounts, times = client.amounts, client.times
    for position, offset, is_integer in zip(layout.places, layout.starts, layout.integers, strict=False):
        first = position + position
        total, compensation = amounts[first], amounts[first + 1]
        exact = whole(total, compensation) if is_integer else None
        if exact is None:
            DOUBLE_POINT.pack_into(
                out, body + offset, times[first], TIME_TAG, times[first + 1], DOUBLE_TAG, total + compensation
            )
        else:
            INTEGER_POINT.pack_into(
                out, body + offset, times[first], TIME_TAG, times[first + 1], INTEGER_TAG, exact
            )
    return bytes(out)
