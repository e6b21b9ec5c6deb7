"""M1 to M9: changes of the metadata (KIP-599), after ControllerMutationQuotaManagerTest pins it down."""

from __future__ import annotations

import pytest

from odradek.metrics.metric_config import MetricConfig
from odradek.metrics.quota import Quota
from odradek.metrics.sensor import KafkaMetric, MetricName, QuotaViolation
from odradek.metrics.token_bucket import TokenBucket
from odradek.metrics.windowed_sum import WindowedSum
from odradek.plugin.client_quota import ClientQuotaEntity
from odradek.quota.controller_mutation_quota import (
    ControllerMutationQuota,
    PermissiveControllerMutationQuota,
    StrictControllerMutationQuota,
    UnboundedControllerMutationQuota,
)
from odradek.quota.controller_mutation_quota_manager import ControllerMutationQuotaManager
from odradek.quota.quota_config import UNLIMITED, QuotaConfig
from odradek.quota.throttle_time import token_bucket_throttle_time_ms
from odradek.testing.clock import MockClock
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

USER, CLIENT_ID = "user", "client"


class World:
    """A manager with ten windows of a second, so that the burst is ten times the rate."""

    def __init__(self, rate: float | None = 10) -> None:
        self.clock = MockClock()
        self.manager = ControllerMutationQuotaManager(
            QuotaConfig(samples=10), self.clock, timer=self.clock.timer
        )
        if rate is not None:
            self.manager.update_quota(ClientQuotaEntity(user=USER, client_id=CLIENT_ID), rate)

    def quota(self, *, strict: bool) -> ControllerMutationQuota:
        return self.manager.quota_for(USER, CLIENT_ID, strict)

    def mutate(self, permits: float) -> int:
        return self.manager.record_and_throttle_ms(USER, CLIENT_ID, permits, self.clock.now_ms())

    def tokens(self) -> KafkaMetric | None:
        found = [m for name, m in self.manager.metrics.metrics.items() if name.name == "tokens"]
        return found[0] if found else None


def throttle_of(tokens: float) -> int:
    bucket = TokenBucket(MetricConfig(quota=Quota(10)))
    return token_bucket_throttle_time_ms(
        QuotaViolation(KafkaMetric(MetricName("t", "g"), bucket), tokens, 10)
    )


def test_M1_what_is_overdrawn_is_waited_out() -> None:
    throttles_ms = [throttle_of(tokens) for tokens in (0, -5, -10)]

    assert throttles_ms == [0, 500, 1000]


def test_M1_only_a_bucket_tells_it() -> None:
    other = QuotaViolation(KafkaMetric(MetricName("rate", "g"), WindowedSum()), 2, 1)

    with pytest.raises(ValueError, match="rate is no token bucket"):
        token_bucket_throttle_time_ms(other)


def test_M2_a_strict_quota_refuses_once_the_bucket_is_overdrawn() -> None:
    world = World()
    quota = world.quota(strict=True)
    quota.record(90)
    quota.record(90)
    before = (quota.is_exceeded, quota.throttle_ms(world.clock.now_ms()))

    with pytest.raises(ApiError) as caught:
        quota.record(90)

    refused_ms = quota.throttle_ms(world.clock.now_ms())
    world.clock.advance(5000)
    assert before == (False, 0)
    assert caught.value.code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert caught.value.message == "The throttling quota has been exceeded."
    assert (quota.is_exceeded, refused_ms, quota.throttle_ms(world.clock.now_ms())) == (True, 8000, 3000)


def test_M3_a_permissive_quota_throttles_and_never_refuses() -> None:
    world = World()
    quota = world.quota(strict=False)

    throttles = []
    for _ in range(3):
        quota.record(90)
        throttles.append((quota.is_exceeded, quota.throttle_ms(world.clock.now_ms())))
    world.clock.advance(5000)

    assert throttles == [(False, 0), (False, 8000), (False, 17_000)]
    assert quota.throttle_ms(world.clock.now_ms()) == 12_000


def test_M3_a_throttle_that_is_over_is_not_negative() -> None:
    world = World()
    quota = world.quota(strict=False)
    quota.record(110)

    world.clock.advance(60_000)

    assert quota.throttle_ms(world.clock.now_ms()) == 0


def overdrawn() -> tuple[World, list[int]]:
    world, throttles = World(), []
    for _ in range(10):
        throttles.append(world.mutate(10))
        world.clock.advance(1000)
    return world, [*throttles, world.mutate(110), world.mutate(110)]


def test_M4_the_manager_checks_before_it_counts() -> None:
    world, throttles = overdrawn()
    metric = world.tokens()

    assert throttles == [0] * 10 + [0, 1000]
    assert metric is not None
    assert metric.value(world.clock.now_ms()) == -10


def test_M5_after_the_throttle_the_client_is_let_in() -> None:
    world, _ = overdrawn()
    ended: list[str] = []
    world.manager.throttled(USER, CLIENT_ID, 1000, on_end=lambda: ended.append("end"))
    queued = (world.manager.queue_size(world.clock.now_ms()), list(ended))

    world.clock.advance(1000)

    assert queued == (1, [])
    assert (world.manager.queue_size(world.clock.now_ms()), ended) == (0, ["end"])
    assert world.mutate(110) == 0


@pytest.mark.parametrize("strict", [True, False])
def test_M6_without_any_quota_nothing_is_counted(strict: bool) -> None:
    world = World(rate=None)

    quota = world.quota(strict=strict)

    quota.record(1_000_000)
    assert isinstance(quota, UnboundedControllerMutationQuota)
    assert (quota.is_exceeded, quota.throttle_ms(world.clock.now_ms()), world.tokens()) == (False, 0, None)


def test_M7_the_version_of_the_request_decides_on_the_kind() -> None:
    world = World()

    kinds: list[type] = [type(world.quota(strict=strict)) for strict in (True, False)]

    assert kinds == [StrictControllerMutationQuota, PermissiveControllerMutationQuota]


def test_M8_a_rate_may_have_a_fraction() -> None:
    manager, seen = World(rate=None).manager, []
    for value in (None, 1.5, None):
        manager.update_quota(ClientQuotaEntity(user=USER), value)
        seen.append(manager.limit(USER, CLIENT_ID))

    assert seen == [UNLIMITED, 1.5, UNLIMITED]


def test_M9_the_metric_appears_with_the_first_mutation_and_follows_the_quota() -> None:
    world = World(rate=None)
    world.manager.update_quota(ClientQuotaEntity(user=USER), 2)
    before = world.tokens()

    world.mutate(10)

    metric = world.tokens()
    assert before is None
    assert metric is not None
    assert metric.name == MetricName("tokens", "ControllerMutation", (("user", USER), ("client-id", "")))
    assert metric.config == MetricConfig(samples=10, time_window_ms=1000, quota=Quota(2))
    world.manager.update_quota(ClientQuotaEntity(user=USER), 4)
    world.mutate(0)
    assert world.tokens() is metric
    assert metric.config == MetricConfig(samples=10, time_window_ms=1000, quota=Quota(4))
