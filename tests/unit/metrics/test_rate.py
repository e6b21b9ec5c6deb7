from __future__ import annotations

import pytest

from odradek.metrics.meter import Meter
from odradek.metrics.metric_config import MetricConfig
from odradek.metrics.rate import Rate
from odradek.metrics.windowed_count import WindowedCount

START_MS = 1_700_000_000_000
QUOTA_WINDOWS = MetricConfig(samples=11, time_window_ms=1000)


def test_a_new_rate_counts_as_ten_windows_old() -> None:
    rate = Rate(WindowedCount(QUOTA_WINDOWS))
    rate.record(1, START_MS)

    size_ms = rate.window_size_ms(START_MS)

    assert size_ms == 10_000


def test_rate_in_its_eleventh_window_divides_by_the_elapsed_time() -> None:
    rate = Rate(WindowedCount(QUOTA_WINDOWS))
    for second in range(11):
        rate.record(1, START_MS + second * 1000)

    size_ms = rate.window_size_ms(START_MS + 10_500)

    assert size_ms == 10_500


def test_window_is_never_shorter_than_a_millisecond() -> None:
    rate = Rate(WindowedCount(MetricConfig(samples=1, time_window_ms=1000)))
    rate.record(1, START_MS)

    size_ms = rate.window_size_ms(START_MS)

    assert size_ms == 1


@pytest.mark.parametrize("elapsed_ms", [0, 29_999])
def test_young_rate_counts_one_more_window(elapsed_ms: int) -> None:
    rate = Rate(WindowedCount())
    rate.record(1, START_MS)

    size_ms = rate.window_size_ms(START_MS + elapsed_ms)

    assert size_ms == 30_000 + elapsed_ms


def test_a_rate_without_records_is_zero() -> None:
    rate = Rate(WindowedCount())

    measured = rate.measure(START_MS)

    assert measured == 0


def test_rate_is_per_second() -> None:
    rate = Rate(WindowedCount())
    for _ in range(60):
        rate.record(1, START_MS)

    measured = rate.measure(START_MS)

    assert measured == 2.0


def test_meter_counts_a_total_and_a_windowed_rate() -> None:
    meter = Meter()
    for at_ms in (0, 0, 30_000, 120_000):
        meter.record(START_MS + at_ms)

    measured = meter.rate(START_MS + 120_000)

    assert (meter.total, measured) == (4, 1 / 30)


def test_meter_records_like_a_windowed_count() -> None:
    meter, count = Meter(QUOTA_WINDOWS), WindowedCount(QUOTA_WINDOWS)
    times_ms = [START_MS + step * 370 for step in range(100)]

    for now_ms in times_ms:
        meter.record(now_ms)
        count.record(1, now_ms)

    def state(stat: WindowedCount) -> list[tuple[int, int, int]]:
        return [(sample.start_ms, sample.last_event_ms, sample.event_count) for sample in stat.samples]

    assert state(meter.windowed) == state(count)
    assert meter.windowed.measure(times_ms[-1]) == count.measure(times_ms[-1])
