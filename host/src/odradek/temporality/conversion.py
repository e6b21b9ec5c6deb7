"""Adds the points of a parsed push to the streams of its client, and writes the totals into it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    ExponentialHistogramDataPoint,
    HistogramDataPoint,
    NumberDataPoint,
)

from odradek.temporality.client_state import ClientState, Distribution, Mark
from odradek.temporality.counts import Counts, Rejection
from odradek.temporality.exact_sum import EXACT, added, halves, whole
from odradek.temporality.exponential import ExponentialState
from odradek.temporality.histogram import HistogramState
from odradek.temporality.layout import CUMULATIVE
from odradek.temporality.parsed_push import DataPoint, ParsedMetric, ParsedPoint, number
from odradek.temporality.stream_key import Kind, StreamKey
from odradek.temporality.stream_times import StreamTimes


class Conversion:
    """The conversion of one push."""

    def __init__(self, client: ClientState, counts: Counts, times: StreamTimes) -> None:
        """Prepare.

        Args:
            client: The client, whose shape has all streams of the push that fit the limits.
            counts: Counts the points.
            times: The times of the client's streams.
        """
        self.client = client
        self.counts = counts
        self.times = times
        self.positions = client.shape.positions
        self.written: set[StreamKey] = set()
        """The streams whose totals are in the push."""
        self.now_s = times.now_ns // 1_000_000_000

    def add_all(self, metrics: Sequence[ParsedMetric]) -> None:
        """Add the points of a push, the oldest of each stream first: some programs write the newest first."""
        points = [each for metric in metrics for each in metric.points]
        added: set[StreamKey] = set()
        for each in sorted(points, key=self.moment):
            position = self.positions.get(each.key)
            if each.rejection is not None or position is None:
                self.counts.rejected_points[each.rejection or Rejection.TOO_MANY_STREAMS] += 1
                continue
            self.counts.duplicates_in_push += each.key in added
            added.add(each.key)
            self.add(each, position)

    def moment(self, each: ParsedPoint) -> tuple[int, int]:
        """Time and start of a point. Points with the same stay in the order of the push."""
        return self.times.valid(each.point.time_unix_nano), each.point.start_time_unix_nano

    def convert(self, metric: ParsedMetric) -> bool:
        """Write the totals into a metric.

        Returns:
            Whether any of its points is left, if it had some.
        """
        kept = [each.point for each in metric.points if self.convert_point(each)]
        if len(kept) != len(metric.points):
            del metric.data.data_points[:]
            metric.data.data_points.extend(kept)
        if hasattr(metric.data, "aggregation_temporality"):
            metric.data.aggregation_temporality = CUMULATIVE
        return bool(kept) or not metric.points

    def convert_point(self, each: ParsedPoint) -> bool:
        """Write the total into a point; whether it stays in the push."""
        position = self.positions.get(each.key)
        if each.rejection is not None or position is None:
            return False
        if each.kind == Kind.GAUGE or not each.has_value:
            return True
        if each.key in self.written:
            return False
        self.written.add(each.key)
        return self.write(each.point, position)

    def add(self, each: ParsedPoint, position: int) -> None:
        """Add a point to its stream."""
        client, point = self.client, each.point
        client.seen[position] = self.now_s
        kind = each.kind
        if kind == Kind.GAUGE:
            self.set_gauge(position, cast(NumberDataPoint, point))
            return
        if not each.has_value:
            client.marks[position] = client.marks.get(position, Mark(0)) | Mark.ENDED
            return
        self.counts.added_points += 1
        self.note_temporality(position, each)
        if isinstance(point, NumberDataPoint):
            self.add_number(position, point, each.is_cumulative, kind == Kind.COUNTER)
        else:
            self.add_distribution(position, point, each.is_cumulative)

    def set_gauge(self, position: int, point: NumberDataPoint) -> None:
        self.times.move_cumulative(position, point.time_unix_nano, point.time_unix_nano)
        value = number(point) if point.WhichOneof("value") and not point.flags else float("nan")
        self.client.amounts[2 * position] = value

    def note_temporality(self, position: int, each: ParsedPoint) -> None:
        """Begin a new epoch if the temporality has changed; a value ends the state of having none."""
        marks = self.client.marks
        mark = marks.get(position, Mark(0)) & ~Mark.ENDED
        if bool(mark & Mark.CUMULATIVE) != each.is_cumulative:
            if self.client.times[2 * position + 1]:
                self.times.begin_again(position, each.point.start_time_unix_nano)
            mark ^= Mark.CUMULATIVE
        if mark:
            marks[position] = mark
        else:
            marks.pop(position, None)

    def add_number(
        self, position: int, point: NumberDataPoint, is_cumulative: bool, is_monotonic: bool
    ) -> None:
        amounts, first = self.client.amounts, 2 * position
        value = number(point)
        if is_cumulative:
            falls = is_monotonic and value < amounts[first] + amounts[first + 1]
            self.times_of_cumulative(position, point, falls)
            amounts[first], amounts[first + 1] = halves(value)
        else:
            self.times.move(position, point.start_time_unix_nano, point.time_unix_nano)
            near, rest = halves(value)
            total, compensation = added(amounts[first], amounts[first + 1], near)
            amounts[first], amounts[first + 1] = total, compensation + rest
        if isinstance(value, int) and abs(amounts[first]) >= EXACT:
            self.note_inexact(position)

    def note_inexact(self, position: int) -> None:
        client = self.client
        exact = int(client.amounts[2 * position]) + int(client.amounts[2 * position + 1])
        mark = client.marks.get(position, Mark(0))
        if abs(exact) > EXACT and not mark & Mark.INEXACT:
            client.marks[position] = mark | Mark.INEXACT
            self.counts.inexact_streams += 1

    def times_of_cumulative(self, position: int, point: DataPoint, falls: bool) -> None:
        """Take the times of a cumulative point; one that falls or starts later begins a new epoch."""
        start, times = point.start_time_unix_nano, self.client.times
        if times[2 * position + 1] and (falls or start > times[2 * position]):
            self.times.begin_again(position, start)
        self.times.move_cumulative(position, start, point.time_unix_nano)

    def add_distribution(
        self, position: int, point: HistogramDataPoint | ExponentialHistogramDataPoint, is_cumulative: bool
    ) -> None:
        client, first = self.client, 2 * position
        state = client.distributions.get(position)
        if is_cumulative:
            self.times_of_cumulative(position, point, state is not None and point.count < state.count)
            state = None
            client.amounts[first] = client.amounts[first + 1] = 0.0
        else:
            if state is not None and state.begins_again(point):  # type: ignore[arg-type]
                self.times.begin_again(position, point.start_time_unix_nano)
                self.times.move_cumulative(position, 0, point.time_unix_nano)
            else:
                self.times.move(position, point.start_time_unix_nano, point.time_unix_nano)
            state = client.distributions.get(position)
        if state is None:
            client.distributions[position] = distribution_of(point)
        else:
            state.add(point)  # type: ignore[arg-type]
        total, compensation = added(client.amounts[first], client.amounts[first + 1], point.sum)
        client.amounts[first], client.amounts[first + 1] = total, compensation

    def write(self, point: DataPoint, position: int) -> bool:
        """Write times and total into a point; False if there is none."""
        client = self.client
        start, last = client.times[2 * position : 2 * position + 2]
        total, compensation = client.amounts[2 * position : 2 * position + 2]
        point.start_time_unix_nano, point.time_unix_nano = start, last
        if point.exemplars:
            self.counts.dropped_exemplars += len(point.exemplars)
            point.ClearField("exemplars")
        if isinstance(point, NumberDataPoint):
            write_number(point, total, compensation)
            return True
        state = client.distributions.get(position)
        if state is not None:
            state.fill(point, total + compensation)  # type: ignore[arg-type]
        return state is not None


def write_number(point: NumberDataPoint, total: float, compensation: float) -> None:
    """Write a total: as an integer if the point has one and the total is one, otherwise as a double."""
    exact = whole(total, compensation) if point.WhichOneof("value") == "as_int" else None
    if exact is None:
        point.as_double = total + compensation
    else:
        point.as_int = exact


def distribution_of(point: HistogramDataPoint | ExponentialHistogramDataPoint) -> Distribution:
    """The state after the first point."""
    return HistogramState(point) if isinstance(point, HistogramDataPoint) else ExponentialState(point)


def streams_of(metrics: Sequence[ParsedMetric]) -> list[StreamKey]:
    """The streams of a push, each once, in their order."""
    points = (each for metric in metrics for each in metric.points)
    return list(dict.fromkeys([each.key for each in points if each.rejection is None]))
