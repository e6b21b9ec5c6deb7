from __future__ import annotations

import pytest

from odradek.metrics.metric_config import MetricConfig
from odradek.metrics.quota import Quota
from odradek.metrics.registry import Metrics
from odradek.metrics.sensor import MetricName, QuotaViolation
from odradek.metrics.token_bucket import UNLIMITED_TOKENS, TokenBucket
from odradek.metrics.windowed_sum import WindowedSum

NOW_MS = 1_700_000_000_000


def bounded(bound: float) -> MetricConfig:
    return MetricConfig(quota=Quota(bound))


def test_the_bound_itself_is_no_violation() -> None:
    quota = Quota(5)

    acceptable = [quota.acceptable(value) for value in (4, 5, 6)]

    assert acceptable == [True, True, False]


def test_a_violating_value_is_recorded() -> None:
    metrics = Metrics()
    sensor, total = metrics.sensor("s", NOW_MS), WindowedSum(bounded(5))
    metrics.add(sensor, MetricName("m", "g"), total, NOW_MS)

    with pytest.raises(QuotaViolation, match="m is 6"):
        sensor.record(6, NOW_MS)

    assert total.measure(NOW_MS) == 6


def test_a_record_without_check_never_violates() -> None:
    metrics = Metrics()
    sensor = metrics.sensor("s", NOW_MS)
    metrics.add(sensor, MetricName("m", "g"), WindowedSum(bounded(5)), NOW_MS)

    sensor.record(6, NOW_MS, check_quotas=False)

    with pytest.raises(QuotaViolation):
        sensor.check_quotas(NOW_MS)


def test_a_bucket_without_a_quota_records_nothing() -> None:
    bucket = TokenBucket()

    bucket.record(1e9, NOW_MS)

    assert (bucket.measure(NOW_MS), bucket.tokens) == (UNLIMITED_TOKENS, 0)


def test_a_new_quota_keeps_the_tokens_up_to_its_burst() -> None:
    bucket = TokenBucket(MetricConfig(samples=10, time_window_ms=1000, quota=Quota(10)))
    bucket.record(20, NOW_MS)

    seen = []
    for bound in (20, 2):
        bucket.config = MetricConfig(samples=10, time_window_ms=1000, quota=Quota(bound))
        seen.append(bucket.measure(NOW_MS))

    assert seen == [80, 20]


def test_a_clock_that_is_set_back_removes_no_tokens() -> None:
    bucket = TokenBucket(MetricConfig(samples=10, time_window_ms=1000, quota=Quota(2)))
    bucket.record(15, NOW_MS)

    seen = [bucket.measure(NOW_MS + at_ms) for at_ms in (0, -3_600_000, -3_599_000)]

    assert seen == [5, 5, 7]


def test_a_new_bucket_is_full_whatever_the_time() -> None:
    bucket = TokenBucket(MetricConfig(samples=10, time_window_ms=1000, quota=Quota(2)))

    tokens = bucket.measure(0)

    assert tokens == 20
