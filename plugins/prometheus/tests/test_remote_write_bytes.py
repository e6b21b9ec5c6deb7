"""The requests of remote write, read again by protobuf with the published field numbers."""

from __future__ import annotations

import math
import struct
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import ExponentialHistogramDataPoint

from odradek.otlp import message_classes
from odradek.temporality.exponential import ExponentialState
from odradek_prometheus.families import Family, FamilyType
from odradek_prometheus.remote_write.native import native_histogram
from odradek_prometheus.remote_write.protobuf import varint, zigzag
from odradek_prometheus.remote_write.request_v1 import request_v1
from odradek_prometheus.remote_write.request_v2 import request_v2
from odradek_prometheus.remote_write.sample import STALE_BITS, NativeHistogram, Sample
from support.remote_write_messages import V1, WrittenSeries, number, series_of_v2

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW_MS = 1_795_000_000_000
SENDS = Family("sends_total", "sends.total", FamilyType.COUNTER, "", "Sends.")
WAIT = Family("wait_milliseconds", "wait", FamilyType.GAUGE, "milliseconds", "")
SIZES = Family("sizes", "sizes", FamilyType.EXPONENTIAL, "", "")


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


def read_v2(samples: Sequence[Sample]) -> list[WrittenSeries]:
    return series_of_v2(request_v2(samples))


def read_v1(samples: Sequence[Sample], *families: Family) -> Any:
    return V1["WriteRequest"].FromString(request_v1(samples, families))


TOTAL = Sample(
    name="sends_total",
    labels=(("Zone", "b"), ("client_id", "orders"), ("topic", "é")),
    family=SENDS,
    time_ms=NOW_MS,
    bits=bits(7.5),
    start_ms=NOW_MS - 60_000,
    zero_ms=NOW_MS - 59_999,
)
GAUGE = Sample(name="wait_milliseconds", labels=(), family=WAIT, time_ms=NOW_MS + 1, bits=STALE_BITS)


def test_a_request_of_2_0() -> None:
    (total, series, about), (_, ended, about_ended) = read_v2([TOTAL, GAUGE])

    assert total == {"Zone": "b", "__name__": "sends_total", "client_id": "orders", "topic": "é"}
    assert [(number(each.value), each.timestamp, each.start_timestamp) for each in series.samples] == [
        (0.0, NOW_MS - 59_999, 0),
        (7.5, NOW_MS, NOW_MS - 60_000),
    ]
    assert (about, about_ended) == ((1, "Sends.", ""), (2, "", "milliseconds"))
    assert [(each.value, each.timestamp) for each in ended.samples] == [(0x7FF0000000000002, NOW_MS + 1)]


def test_a_request_of_1_0() -> None:
    request = read_v1([TOTAL, GAUGE], SENDS, WAIT)

    total, ended = request.timeseries
    assert [(each.name, each.value) for each in total.labels] == [
        ("Zone", "b"),
        ("__name__", "sends_total"),
        ("client_id", "orders"),
        ("topic", "é"),
    ]
    assert [(number(each.value), each.timestamp) for each in total.samples] == [
        (0.0, NOW_MS - 59_999),
        (7.5, NOW_MS),
    ]
    assert [(each.value, each.timestamp) for each in ended.samples] == [(0x7FF0000000000002, NOW_MS + 1)]
    assert [(each.type, each.metric_family_name, each.help, each.unit) for each in request.metadata] == [
        (1, "sends_total", "Sends.", ""),
        (2, "wait_milliseconds", "", "milliseconds"),
    ]


def test_a_native_histogram() -> None:
    sample = Sample(
        name="sizes",
        labels=(),
        family=SIZES,
        time_ms=NOW_MS,
        bits=b"",
        start_ms=NOW_MS - 5,
        histogram=NativeHistogram(
            observations=12,
            total=3.5,
            schema=-2,
            zero_threshold=0.25,
            zero_count=1,
            positive=[(-3, [2, 5]), (7, [1])],
            negative=[(0, [3])],
        ),
    )

    ((_, series, about),) = read_v2([sample])
    (found,) = series.histograms
    (old,) = read_v1([sample]).timeseries[0].histograms

    assert about == (3, "", "")
    assert (found.count_int, found.sum, found.schema) == (12, 3.5, -2)
    assert (found.zero_threshold, found.zero_count_int) == (0.25, 1)
    assert [(span.offset, span.length) for span in found.positive_spans] == [(-3, 2), (8, 1)]
    assert list(found.positive_deltas) == [2, 3, -4]
    assert [(span.offset, span.length) for span in found.negative_spans] == [(0, 1)]
    assert list(found.negative_deltas) == [3]
    assert (found.timestamp, found.start_timestamp) == (NOW_MS, NOW_MS - 5)
    assert (old.timestamp, old.start_timestamp) == (NOW_MS, 0)


def test_a_native_histogram_ends() -> None:
    marker = Sample(name="sizes", labels=(), family=SIZES, time_ms=NOW_MS, bits=STALE_BITS)

    for series in (read_v2([marker])[0][1], read_v1([marker]).timeseries[0]):
        (found,) = series.histograms
        assert (struct.pack("<d", found.sum), found.timestamp) == (STALE_BITS, NOW_MS)
        assert not series.samples


LABELS = st.dictionaries(st.text(min_size=1, max_size=5), st.text(max_size=5), max_size=4)


@given(st.lists(st.tuples(LABELS, st.floats(), st.integers(1, 2**62)), min_size=1, max_size=30))
def test_any_samples_are_read_as_they_were_written(rows: list[tuple[dict[str, str], float, int]]) -> None:
    samples = [
        Sample(
            name="sends_total",
            labels=tuple(sorted(labels.items())),
            family=SENDS,
            time_ms=time_ms,
            bits=bits(value),
        )
        for labels, value, time_ms in rows
    ]

    for (labels, value, time_ms), (found, series, _) in zip(rows, read_v2(samples), strict=True):
        assert found == labels | {"__name__": "sends_total"}
        assert struct.pack("<Q", series.samples[0].value) == bits(value)
        assert series.samples[0].timestamp == time_ms
    for (labels, _, _), series in zip(rows, read_v1(samples).timeseries, strict=True):
        assert {each.name: each.value for each in series.labels} == labels | {"__name__": "sends_total"}


@pytest.mark.parametrize("value", [0, 1, 127, 128, 16_383, 16_384, 2**63 - 1, -1, -(2**63)])
def test_numbers(value: int) -> None:
    read = message_classes("test.numbers", {"N": {"plain": (1, "int64"), "signed": (2, "sint64")}})["N"]
    found: Any = read.FromString(b"\x08" + varint(value) + b"\x10" + zigzag(value))

    assert (found.plain, found.signed) == (value, value)


class State:
    """An exponential histogram."""

    scale = 9
    zero_threshold = 0.5
    zero_count = 2
    count = 12
    has_sum = True
    positive = {0: 1, 1: 2, 4: 3}  # noqa: RUF012
    negative = {-1: 4}  # noqa: RUF012


def test_a_finer_scale_is_lowered_to_that_of_prometheus() -> None:
    state: Any = State()

    found = native_histogram(state, 1.5)

    assert found == NativeHistogram(12, 1.5, 8, 0.5, 2, positive=[(1, [3]), (3, [3])], negative=[(0, [4])])


def test_a_histogram_without_a_sum_or_with_too_wide_buckets() -> None:
    state: Any = State()
    state.has_sum, state.scale = False, -4

    found = native_histogram(state, 0.0)
    state.scale = -5

    assert found is not None
    assert math.isnan(found.total)
    assert native_histogram(state, 0.0) is None


@pytest.mark.parametrize("count", [2**63 - 1, 2**63, 2**64 - 1])
def test_counts_beyond_the_message_are_the_largest_of_it(count: int) -> None:
    point = ExponentialHistogramDataPoint(count=count, zero_count=count)
    point.positive.bucket_counts.extend([count, 0, 1, count])
    state = ExponentialState(point)
    state.add(point)
    histogram = native_histogram(state, 1.0)
    assert histogram is not None
    sample = Sample("sizes", (), SIZES, NOW_MS, b"", histogram=histogram)

    ((_, series, _),) = read_v2([sample])

    (found,) = series.histograms
    most = 2**63 - 1
    assert (found.count_int, found.zero_count_int) == (most, most)
    assert list(accumulate(found.positive_deltas)) == [most, 2, most]
