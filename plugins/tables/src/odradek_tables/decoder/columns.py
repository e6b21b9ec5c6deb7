"""Builds the Arrow columns of a batch from the few values that its rows share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from odradek_tables.decoder.payload_points import INT64_MAX, Int32s, Int64s, PayloadPoints
from odradek_tables.decoder.record import Identity, Push
from odradek_tables.decoder.series import Number, Numbered, ResourceLabels, Series
from odradek_tables.schemas import HISTOGRAMS, IDENTITY, POINTS, PUSHES, TIMESTAMP, Table

US_PER_MS, NS_PER_US, MS_PER_HOUR = 1_000, 1_000, 3_600_000
SERIES_TEXTS = (
    *("name", "unit", "attrs", "topic", "partition", "node_id", "scope_name", "scope_version", "family"),
)
NOTHING = -1


class Picked:
    """Maps each row of a large table to a row of a small one."""

    def __init__(self, table: Sequence[Any], numbers: Int32s, times: Int64s | None = None) -> None:
        """Keep only the rows that occur: a dictionary column carries all of its values.

        ``numbers`` are indexes of the small table; ``times`` says how often each occurs, None for once.
        """
        there = np.zeros(len(table), np.bool_)
        there[numbers] = True
        kept = np.flatnonzero(there)
        local = np.zeros(len(table), np.intp)
        local[kept] = np.arange(len(kept))
        self.rows = [table[number] for number in kept.tolist()]
        self.numbers = local[numbers]
        self.times = times
        self.indices: dict[bytes, pa.Array] = {}
        """Arrow indices by pattern: columns with the same pattern of distinct values share them."""

    def spread(self, small: Any) -> Any:
        """Expand a column of the small table to the rows of the large one."""
        return repeated(small[self.numbers], self.times)

    def texts(self, column: Callable[[Any], str | None]) -> pa.DictionaryArray:
        small = pa.array([column(row) for row in self.rows], pa.string()).dictionary_encode()
        numbers = small.indices.fill_null(NOTHING).to_numpy()
        key = numbers.tobytes()
        if key not in self.indices:
            self.indices[key] = self.where(numbers != NOTHING, self.spread(np.maximum(numbers, 0)))
        return pa.DictionaryArray.from_arrays(self.indices[key], small.dictionary, safe=False)

    def where(self, there: npt.NDArray[np.bool_], values: Any) -> pa.Array:
        """Values of the large table, null for rows without a value by the small table."""
        if there.all():
            return pa.array(values)
        if not there.any():
            return pa.nulls(len(values), pa.from_numpy_dtype(values.dtype))
        return pa.array(values, mask=self.spread(~there))

    def fixed(self, column: Callable[[Any], Any], dtype: Any) -> Any:
        return self.spread(np.array([column(row) for row in self.rows], dtype))


def repeated(values: Any, times: Int64s | None) -> Any:
    return values if times is None else np.repeat(values, times)


def point_columns(
    pushes: Sequence[Push],
    found: Sequence[PayloadPoints],
    series: Numbered[Series],
    resources: Numbered[ResourceLabels],
    skew_ms: int,
) -> pa.RecordBatch:
    """The rows of ``points``: one for each gauge or sum, in the order of arrival."""
    counts = np.array([len(each.series) for each in found], np.int64)
    by_series = Picked(series.values, joined([each.series for each in found], np.int32))
    by_resource = picked_resources(found, resources, counts)
    columns: dict[str, Any] = identity_columns(pushes, counts)
    times, starts = (
        joined([getattr(each, name) for each in found], np.int64) for name in ("times", "starts")
    )
    columns |= time_columns(pushes, counts, times, starts, skew_ms)
    for name in SERIES_TEXTS:
        columns[name] = by_series.texts(attrgetter(name))
    for name in ResourceLabels._fields:
        columns[name] = by_resource.texts(attrgetter(name))
    columns["kind"] = by_series.fixed(attrgetter("kind"), np.int8)
    columns["temporality"] = by_series.fixed(attrgetter("temporality"), np.int8)
    columns["monotonic"] = by_series.fixed(attrgetter("monotonic"), np.bool_)
    columns["flags"] = by_series.fixed(attrgetter("flags"), np.int32)
    columns |= value_columns(joined([each.values for each in found], np.int64), by_series)
    columns["exemplars"] = exemplar_column(found, counts)
    columns |= source_columns(pushes, counts)
    columns["src_idx"] = joined([indexes(each) for each in found], np.int32)
    return record_batch(POINTS, columns, int(counts.sum()))


def value_columns(bits: Int64s, by_series: Picked) -> dict[str, pa.Array]:
    """The columns of doubles and integers: each point has a value in at most one."""
    number = np.array([each.number for each in by_series.rows], np.int8)
    return {
        "value": by_series.where(number == Number.DOUBLE, bits.view(np.float64)),
        "value_int": by_series.where(number == Number.INT, bits),
    }


def exemplar_column(found: Sequence[PayloadPoints], counts: Int64s) -> pa.Array:
    """The exemplars as JSON; mostly null."""
    if not any(each.exemplars for each in found):
        none = pa.nulls(int(counts.sum()), pa.int32())
        return pa.DictionaryArray.from_arrays(none, pa.array([], pa.string()), safe=False)
    texts = [each.exemplars.get(index) for each in found for index in range(len(each.series))]
    return pa.array(texts, pa.string()).dictionary_encode()


def push_columns(pushes: Sequence[Push], found: Sequence[PayloadPoints]) -> pa.RecordBatch:
    """The rows of ``pushes``, one for each push. Repetitions of a push have the same ``payload_hash``."""
    columns = identity_columns(pushes)
    columns["points"] = np.array([points.count for points in found], np.int32)
    hashes = [xxhash.xxh3_64_intdigest(push.payload) - 2**63 for push in pushes]
    columns["payload_hash"] = np.array(hashes, np.int64)
    columns["shape_id"] = pa.array([points.shape_id for points in found], pa.int64())
    columns["recv_ts"] = microseconds(receive_times(pushes) * US_PER_MS)
    columns["payload_bytes"] = np.array([len(push.payload) for push in pushes], np.int32)
    columns["codec"] = pa.array([push.codec for push in pushes], pa.string()).dictionary_encode()
    columns["subscription_id"] = np.array([push.identity.subscription_id for push in pushes], np.int32)
    columns["push_interval_ms"] = np.array([push.identity.push_interval_ms for push in pushes], np.int32)
    columns["terminating"] = np.array([push.terminating for push in pushes], np.bool_)
    columns["source"] = pa.array([push.identity.source for push in pushes], pa.string()).dictionary_encode()
    columns["observed"] = np.array([push.identity.observed for push in pushes], np.bool_)
    columns["origin"] = pa.array([push.origin for push in pushes], pa.string()).dictionary_encode()
    columns |= source_columns(pushes)
    return record_batch(PUSHES, columns, len(pushes))


def histogram_columns(pushes: Sequence[Push], found: Sequence[PayloadPoints], skew_ms: int) -> pa.RecordBatch:
    """The rows of ``histograms``, which include summaries."""
    counts = np.array([len(each.histograms) for each in found], np.int64)
    rows = [row for each in found for row in each.histograms]
    columns: dict[str, Any] = {name: [row.get(name) for row in rows] for name in HISTOGRAMS.schema.names}
    times, starts = (np.array(columns[name], np.int64) for name in ("time_unix_nano", "start_unix_nano"))
    columns |= identity_columns(pushes, counts) | source_columns(pushes, counts)
    columns |= time_columns(pushes, counts, times, starts, skew_ms)
    return record_batch(HISTOGRAMS, columns, len(rows))


IDENTITY_NAMES = tuple(each.name for each in IDENTITY)


def identity_columns(pushes: Sequence[Push], times: Int64s | None = None) -> dict[str, Any]:
    """The identity of the client for each row; ``times`` is the number of rows of each push."""
    numbered: Numbered[Identity] = Numbered()
    numbers = np.array([numbered.number(push.identity) for push in pushes], np.int32)
    picked = Picked(numbered.values, numbers, times)
    columns: dict[str, Any] = {
        name: picked.texts(attrgetter(name)) for name in IDENTITY_NAMES if name != "broker_id"
    }
    columns["broker_id"] = picked.fixed(attrgetter("broker_id"), np.int32)
    return columns


def source_columns(pushes: Sequence[Push], times: Int64s | None = None) -> dict[str, Any]:
    """The record and its day and hour for each row; ``times`` is the number of rows of each push."""
    hours = receive_times(pushes) // MS_PER_HOUR
    numbered, numbers = np.unique(hours, return_inverse=True)
    days = [day_and_hour(hour * MS_PER_HOUR) for hour in numbered.tolist()]
    day = Picked(days, numbers.astype(np.int32), times)
    return {
        "src_partition": repeated(np.array([push.partition for push in pushes], np.int32), times),
        "src_offset": repeated(np.array([push.offset for push in pushes], np.int64), times),
        "date": day.texts(itemgetter(0)),
        "hour": day.fixed(itemgetter(1), np.int32),
    }


def time_columns(
    pushes: Sequence[Push], counts: Int64s, times: Int64s, starts: Int64s, skew_ms: int
) -> dict[str, Any]:
    """The receive time, the client's time and the corrected time of each point."""
    received = np.repeat(receive_times(pushes) * US_PER_MS, counts)
    times, starts = within(times), within(starts)
    measured = times // NS_PER_US
    return {
        "recv_ts": microseconds(received),
        "client_ts": microseconds(measured, times == 0),
        "ts": microseconds(clamped(measured, received, skew_ms * US_PER_MS)),
        "start_ts": microseconds(starts // NS_PER_US, starts == 0),
        "time_unix_nano": times,
        "start_unix_nano": starts,
    }


def clamped(measured: Int64s, received: Int64s, skew: int) -> Int64s:
    """Clamp measured times to ``skew`` around the receive time, which also replaces missing times."""
    ahead = measured - received
    if not len(ahead) or (ahead.min() >= -skew and ahead.max() <= skew):
        return measured  # fast path: with correct clocks it takes a fifth of the time
    return np.where(measured == 0, received, np.clip(measured, received - skew, received + skew))


def within(times_ns: Int64s) -> Int64s:
    """Unsigned nanoseconds that were read as signed ones: too large ones become the largest of the column."""
    return times_ns if (times_ns >= 0).all() else np.where(times_ns < 0, INT64_MAX, times_ns)


def day_and_hour(recv_ms: int) -> tuple[str, int]:
    """The partition of a receive time: day and hour."""
    at = datetime.fromtimestamp(recv_ms / 1000, UTC)
    return f"{at:%Y-%m-%d}", at.hour


def receive_times(pushes: Sequence[Push]) -> Int64s:
    return np.array([push.recv_ms for push in pushes], np.int64)


def microseconds(times: Int64s, missing: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Numbers of microseconds as timestamps; null for missing ones."""
    mask = None if missing is None or not missing.any() else missing
    return pa.array(times, mask=mask).view(TIMESTAMP)


def picked_resources(
    found: Sequence[PayloadPoints], resources: Numbered[ResourceLabels], counts: Int64s
) -> Picked:
    """The resources of all points; fast if each push has only one, as usual."""
    some = [each.resources for each in found if len(each.series)]
    if all(isinstance(each, int) for each in some):
        return Picked(resources.values, np.array(some, np.int32), counts[counts > 0])
    return Picked(resources.values, joined([resource_numbers(each) for each in found], np.int32))


def resource_numbers(points: PayloadPoints) -> Int32s:
    if isinstance(points.resources, int):
        return np.full(len(points.series), points.resources, np.int32)
    return points.resources


def indexes(points: PayloadPoints) -> Int32s:
    return np.arange(len(points.series), dtype=np.int32) if points.indexes is None else points.indexes


def joined(parts: Sequence[Any], dtype: Any) -> Any:
    return np.concatenate(parts) if parts else np.empty(0, dtype)


def record_batch(table: Table, columns: dict[str, Any], rows: int) -> pa.RecordBatch:
    arrays, fields = [], []
    for each in table.schema:
        column = columns[each.name]
        if not isinstance(column, pa.Array):
            column = pa.array(column, each.type)
        arrays.append(column)
        fields.append(pa.field(each.name, column.type))
    assert all(len(array) == rows for array in arrays)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
