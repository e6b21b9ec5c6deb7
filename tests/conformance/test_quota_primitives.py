"""The statistics that quotas are built on, after Kafka's own tests of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from odradek.metrics.avg import Avg
from odradek.metrics.metric_config import MetricConfig
from odradek.metrics.quota import Quota
from odradek.metrics.rate import Rate
from odradek.metrics.registry import Metrics
from odradek.metrics.sampled_stat import Sample, SampledStat
from odradek.metrics.sensor import KafkaMetric, MetricName, QuotaViolation, Sensor, Stat
from odradek.metrics.token_bucket import TokenBucket
from odradek.metrics.windowed_sum import WindowedSum
from odradek.quota.throttle_time import bounded_throttle_time_ms, throttle_time_ms
from odradek.quota.throttled_channels import ThrottledChannel, ThrottledChannels
from odradek.testing.clock import MockClock
from odradek.waiting.clock import Timer

START_MS = 1_700_000_000_000


def windows(samples: int, window_ms: int = 1000, bound: float | None = None) -> MetricConfig:
    quota = None if bound is None else Quota(bound)
    return MetricConfig(samples=samples, time_window_ms=window_ms, quota=quota)


def sensor_of(*stats: Stat) -> Sensor:
    metrics = Metrics()
    sensor = metrics.sensor("s", START_MS)
    for number, stat in enumerate(stats):
        metrics.add(sensor, MetricName(f"m{number}", "g"), stat, START_MS)
    return sensor


def strict(sensor: Sensor, value: float, now_ms: int) -> bool:
    """Check the quota and record only if it passes; return whether it did."""
    try:
        sensor.check_quotas(now_ms)
    except QuotaViolation:
        return False
    sensor.record(value, now_ms, check_quotas=False)
    return True


class LiveSamples(SampledStat):
    """Counts the samples that have a recorded value."""

    __slots__ = ()

    def update(self, sample: Sample, value: float) -> None:
        sample.value = 1

    def combine(self, samples: Sequence[Sample]) -> float:
        return sum(sample.value for sample in samples)


def test_a_bucket_refills_at_the_rate_and_may_be_overdrawn() -> None:
    bucket = TokenBucket(windows(10, 2000, bound=5))

    seen = [bucket.measure(START_MS)]
    for at_ms, value in ((0, 60), (2000, 5), (4000, 60)):
        bucket.record(value, START_MS + at_ms)
        seen.append(bucket.measure(START_MS + at_ms))

    assert seen == [100, 40, 45, -5]


def test_credit_is_capped_at_the_burst() -> None:
    bucket = TokenBucket(windows(10, 2000, bound=5))

    seen = []
    for at_ms, value in ((0, -60), (2000, 60), (4000, -60)):
        bucket.record(value, START_MS + at_ms)
        seen.append(bucket.measure(START_MS + at_ms))

    assert seen == [100, 40, 100]


def test_a_rate_stays_high_for_all_its_windows() -> None:
    rate = Rate(WindowedSum(windows(11, bound=2)))
    sensor = sensor_of(rate)

    first = strict(sensor, 30, START_MS)
    second = strict(sensor, 30, START_MS + 5000)

    assert (first, rate.measure(START_MS), rate.measure(START_MS + 5000), second) == (True, 3, 3, False)


def test_a_bucket_admits_again_after_five_seconds() -> None:
    bucket = TokenBucket(windows(10, bound=2))
    sensor = sensor_of(bucket)

    seen: list[object] = [strict(sensor, 30, START_MS), bucket.measure(START_MS)]
    seen += [bucket.measure(START_MS + 5000), strict(sensor, 30, START_MS + 5000)]

    assert [*seen, bucket.measure(START_MS + 5000)] == [True, -10, 0, True, -30]


def test_each_statistic_is_checked_against_its_own_bound() -> None:
    low, high = WindowedSum(windows(2, bound=5)), WindowedSum(windows(2, bound=10))
    sensor = sensor_of(high, low)

    with pytest.raises(QuotaViolation) as caught:
        sensor.record(7, START_MS)

    assert (caught.value.metric.stat, caught.value.value, caught.value.bound) == (low, 7, 5)
    assert high.measure(START_MS) == 7


def test_a_new_config_applies_at_once_and_resets_nothing() -> None:
    total = WindowedSum(windows(2, bound=10))
    sensor = sensor_of(total)
    sensor.record(7, START_MS)

    sensor.metrics[0].config = windows(2, bound=5)

    with pytest.raises(QuotaViolation, match="7"):
        sensor.check_quotas(START_MS)


def test_nothing_is_added_to_an_expired_sensor() -> None:
    metrics = Metrics()
    sensor = metrics.sensor("s", START_MS, expiry_ms=60_000)

    added = metrics.add(sensor, MetricName("m", "g"), Avg(), START_MS + 61_000)

    assert not added
    assert metrics.expire(START_MS + 61_000) == 1
    assert metrics.find("s") is None


def test_a_metric_belongs_to_one_sensor_and_keeps_its_first_statistic() -> None:
    metrics = Metrics()
    one, other = metrics.sensor("one", START_MS), metrics.sensor("other", START_MS)
    name, first = MetricName("m", "g"), Avg()
    metrics.add(one, name, first, START_MS)

    again = metrics.add(one, name, Avg(), START_MS)

    assert again
    assert [metric.stat for metric in one.metrics] == [first]
    with pytest.raises(ValueError, match="another sensor"):
        metrics.add(other, name, Avg(), START_MS)


def test_alternating_checks_and_records_never_fail() -> None:
    total = WindowedSum(windows(100, 1, bound=1e9))
    sensor = sensor_of(total, Rate(WindowedSum(windows(100, 1, bound=1e9))))

    for turn in range(200):
        sensor.record(1, START_MS + turn // 3, check_quotas=False)
        sensor.check_quotas(START_MS + turn // 2)

    assert total.measure(START_MS + 70) == 200


@pytest.mark.parametrize(("samples", "window_s"), [(1, 1), (1, 11), (11, 1), (11, 11)])
def test_a_young_rate_divides_by_the_missing_windows_too(samples: int, window_s: int) -> None:
    rate = Rate(WindowedSum(windows(samples, window_s * 1000)))
    rate.record(50, START_MS)

    measured = rate.measure(START_MS + window_s * 1000 - 1)

    assert measured == 50 / ((window_s * 1000 - 1) / 1000 + (samples - 1) * window_s)


def test_a_rate_is_steady_from_its_second_window_on() -> None:
    rate = Rate(WindowedSum(windows(2)))
    steps_ms = [0, 99, *[100] * 9]
    now_ms = START_MS
    for step_ms in steps_ms:
        rate.record(1, now_ms := now_ms + step_ms)
    now_ms += 101

    seen = []
    for step_ms in steps_ms:
        rate.record(1, now_ms := now_ms + step_ms)
        seen.append((rate.measure(now_ms), rate.measure(now_ms)))

    assert all(10 <= first <= 11 and first == second for first, second in seen)


def complete_sample(stat: SampledStat, now_ms: int) -> int:
    stat.record(1, now_ms)
    stat.record(1, now_ms + 999)
    return now_ms + 999


@pytest.mark.parametrize(
    ("wait_ms", "live"), [pytest.param(2500, 0, id="expired"), pytest.param(1500, 1, id="live")]
)
def test_a_sample_is_live_while_it_overlaps_the_windows(wait_ms: int, live: int) -> None:
    stat = LiveSamples(windows(2))
    now_ms = complete_sample(stat, START_MS)

    measured = stat.measure(now_ms + wait_ms)

    assert measured == live


def test_one_sample_more_than_configured_may_be_live() -> None:
    stat = LiveSamples(windows(2))
    now_ms = complete_sample(stat, START_MS) + 100
    now_ms = complete_sample(stat, now_ms) + 100

    stat.record(1, now_ms)

    assert stat.measure(now_ms) == 3


def violation(value: float, bound: float, samples: int) -> QuotaViolation:
    rate = Rate(WindowedSum(windows(samples)))
    rate.record(1, START_MS)
    return QuotaViolation(KafkaMetric(MetricName("rate", "g"), rate), value, bound)


@pytest.mark.parametrize("samples", [1, 2, 3, 10, 11])
def test_at_the_bound_there_is_no_throttle(samples: int) -> None:
    waited_ms = throttle_time_ms(violation(50, 50, samples), START_MS)

    assert waited_ms == 0


def test_below_the_bound_the_formula_is_negative() -> None:
    waited_ms = throttle_time_ms(violation(40, 50, 2), START_MS)

    assert waited_ms == -200


def test_twice_the_bound_throttles_for_the_length_of_all_windows() -> None:
    waited_ms = throttle_time_ms(violation(100, 50, 3), START_MS)

    assert waited_ms == 2000


@pytest.mark.parametrize(
    ("value", "samples", "expected_ms"),
    [pytest.param(55, 2, 100, id="below-the-limit"), pytest.param(100, 10, 500, id="at-the-limit")],
)
def test_a_throttle_time_can_be_bounded(value: float, samples: int, expected_ms: int) -> None:
    waited_ms = bounded_throttle_time_ms(violation(value, 50, samples), 500, START_MS)

    assert waited_ms == expected_ms


def test_only_a_rate_has_a_throttle_time() -> None:
    broken = QuotaViolation(KafkaMetric(MetricName("avg", "g"), Avg()), 2, 1)

    with pytest.raises(ValueError, match="avg is not a rate"):
        throttle_time_ms(broken, START_MS)


def test_a_throttled_channel_knows_its_remaining_time() -> None:
    channels = [ThrottledChannel(START_MS + delay_ms) for delay_ms in (10, 20, 20)]

    left = [[channel.delay_ms(START_MS + at_ms) for channel in channels] for at_ms in (0, 10, 20)]

    assert left == [[10, 20, 20], [0, 10, 10], [-10, 0, 0]]


def test_channels_start_at_once_and_end_in_the_order_of_their_delays() -> None:
    clock, timer = MockClock(), Timer()
    clock.timer = timer
    channels, started, ended = ThrottledChannels(timer), [], []
    for name, delay_ms in enumerate((10, 30, 30, 20)):
        channels.throttle(
            delay_ms,
            clock.monotonic_ms(),
            on_start=lambda name=name: started.append(name),  # type: ignore[misc]
            on_end=lambda name=name: ended.append(name),  # type: ignore[misc]
        )

    seen = []
    for step_ms in (0, 10, 10, 10, 10):
        clock.advance(step_ms)
        seen.append((list(ended), channels.size(clock.monotonic_ms())))

    assert started == [0, 1, 2, 3]
    assert seen == [([], 4), ([0], 3), ([0, 3], 2), ([0, 3, 1, 2], 0), ([0, 3, 1, 2], 0)]
