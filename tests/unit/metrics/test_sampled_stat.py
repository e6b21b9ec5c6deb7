from __future__ import annotations

import math

import pytest

from odradek.metrics.avg import Avg
from odradek.metrics.metric_config import MetricConfig
from odradek.metrics.windowed_count import WindowedCount
from support.max_stat import Max

START_MS = 1_700_000_000_000
CONFIG = MetricConfig(samples=2, time_window_ms=1000)


def test_count_ignores_the_value() -> None:
    count = WindowedCount(CONFIG)

    for value in (17.0, -3.0, 0.0):
        count.record(value, START_MS)

    assert count.measure(START_MS) == 3


def test_sample_expires_by_its_last_event_and_not_by_its_start() -> None:
    count = WindowedCount(CONFIG)
    count.record(1, START_MS)
    count.record(1, START_MS + 999)

    measured = [count.measure(START_MS + at_ms) for at_ms in (2000, 2998, 2999)]

    assert measured == [2, 2, 0]


def test_one_sample_more_than_configured_stays_live() -> None:
    count = WindowedCount(CONFIG)
    for at_ms in (0, 999, 1000, 1999, 2000):
        count.record(1, START_MS + at_ms)

    measured = count.measure(START_MS + 2000)

    assert (len(count.samples), measured) == (3, 5)


def test_fourth_window_reuses_the_first_slot() -> None:
    count = WindowedCount(CONFIG)
    for at_ms in (0, 1000, 2000, 3000):
        count.record(1, START_MS + at_ms)

    first = count.samples[0]

    assert (len(count.samples), count.current, first.start_ms) == (3, 0, START_MS + 3000)


def test_reset_sample_becomes_the_youngest() -> None:
    count = WindowedCount(CONFIG)
    count.record(1, START_MS)
    count.record(1, START_MS + 1500)

    count.purge(START_MS + 2500)

    assert count.oldest(START_MS + 2500).start_ms == START_MS + 1500
    assert count.samples[0].start_ms == START_MS + 2500


def test_time_alone_creates_no_samples() -> None:
    count = WindowedCount(CONFIG)

    measured = count.measure(START_MS + 10_000)

    assert (measured, count.samples) == (0, [])


def test_window_ends_after_its_number_of_events() -> None:
    count = WindowedCount(MetricConfig(samples=2, time_window_ms=1000, event_window=2))

    for _ in range(3):
        count.record(1, START_MS)

    assert [sample.event_count for sample in count.samples] == [2, 1]


@pytest.mark.parametrize("stat", [Avg, Max])
def test_without_records_the_value_is_nan(stat: type[Avg | Max]) -> None:
    empty = stat(CONFIG)

    measured = empty.measure(START_MS)

    assert math.isnan(measured)


def test_average_is_over_all_windows() -> None:
    avg = Avg(CONFIG)
    for at_ms, value in ((0, 1.0), (0, 2.0), (1000, 6.0)):
        avg.record(value, START_MS + at_ms)

    measured = avg.measure(START_MS + 1000)

    assert measured == 3.0


def test_max_forgets_expired_samples() -> None:
    most = Max(CONFIG)
    most.record(9.0, START_MS)
    most.record(-4.0, START_MS + 1000)

    measured = [most.measure(START_MS + at_ms) for at_ms in (1999, 2000)]

    assert measured == [9.0, -4.0]


def test_max_of_expired_samples_is_nan() -> None:
    most = Max(CONFIG)
    most.record(9.0, START_MS)

    measured = most.measure(START_MS + 2000)

    assert math.isnan(measured)
