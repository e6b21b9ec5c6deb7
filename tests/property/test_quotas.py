"""Quotas over time, for any load of a client that respects its throttle time.

Kafka's rate forgives: ten windows are allowed at once, and usage older than eleven is forgotten even if its
throttle is not over. So a bound in the long run needs requests that are no larger than a window; for any
size, no client waits longer than its bytes are worth.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.metrics.metric_config import MetricConfig
from odradek.metrics.rate import Rate
from odradek.metrics.sampled_stat import SampledStat
from odradek.metrics.simple_rate import SimpleRate
from odradek.metrics.windowed_sum import WindowedSum
from odradek.plugin.client_quota import ABSENT, DEFAULT, ClientQuotaEntity, ClientQuotaType
from odradek.quota.client_quota_manager import ClientQuotaManager
from odradek.quota.controller_mutation_quota_manager import ControllerMutationQuotaManager
from odradek.quota.quota_config import UNLIMITED, QuotaConfig
from odradek.quota.quota_levels import Part
from odradek.testing.clock import MockClock
from odradek.wire.api_error import ApiError
from support.examples import examples

QUOTA = 1000
WINDOWS_S = 10
"""The amount that a rate allows at once: all windows but one."""
ROUNDING_MS = 0.5
"""A throttle is rounded to a millisecond."""
DEFAULT_CLIENT = ClientQuotaEntity(client_id=DEFAULT)

bursts = st.lists(
    st.tuples(
        st.integers(1, 60),  # requests in a row
        st.floats(0, 1),  # size of each
        st.one_of(
            st.just(0), st.integers(0, 3), st.integers(0, 2000), st.integers(0, 15_000)
        ),  # ms after each
    ),
    min_size=1,
    max_size=12,
)


class WaitingClient:
    """A client that sends its requests and then waits for the throttle time of the answers."""

    def __init__(self) -> None:
        self.clock = MockClock()
        self.manager = ClientQuotaManager(ClientQuotaType.PRODUCE, QuotaConfig(), self.clock)
        self.manager.update_quota(DEFAULT_CLIENT, QUOTA)
        self.start_ms = self.clock.monotonic_ms()
        self.sent_bytes = 0.0
        self.waited_ms = 0
        self.requests = 0

    def send(self, size_bytes: float, pause_ms: int) -> None:
        throttle_ms = self.manager.record_and_throttle_ms("u", "c", size_bytes, self.clock.monotonic_ms())
        self.sent_bytes += size_bytes
        self.waited_ms += throttle_ms
        self.requests += 1
        self.clock.advance(throttle_ms)
        self.look()
        self.clock.advance(pause_ms)

    def look(self) -> None:
        """The property that must hold whenever the client may send."""

    @property
    def elapsed_s(self) -> float:
        return (self.clock.monotonic_ms() - self.start_ms) / 1000


class LimitedClient(WaitingClient):
    def look(self) -> None:
        granted_bytes = QUOTA * (self.elapsed_s + WINDOWS_S)
        assert self.sent_bytes <= granted_bytes + QUOTA * self.requests * ROUNDING_MS / 1000


class NeverChargedTwice(WaitingClient):
    def look(self) -> None:
        assert self.waited_ms <= self.sent_bytes / QUOTA * 1000 + self.requests * ROUNDING_MS


@settings(max_examples=examples(60))
@given(load=bursts)
def test_over_any_load_of_small_requests_the_rate_stays_at_the_quota(
    load: list[tuple[int, float, int]],
) -> None:
    client = LimitedClient()

    for requests, size, pause_ms in load:
        for _ in range(requests):
            client.send(size * QUOTA, pause_ms)


@settings(max_examples=examples(60))
@given(load=bursts, largest=st.sampled_from([100, 1000, 20_000, 1_000_000]))
def test_no_client_waits_longer_than_its_bytes_are_worth(
    load: list[tuple[int, float, int]], largest: int
) -> None:
    client = NeverChargedTwice()

    for requests, size, pause_ms in load:
        for _ in range(requests):
            client.send(size * largest, pause_ms)


@pytest.mark.parametrize("size_bytes", [20, 99, 500, 1000])
def test_a_steady_client_converges_to_its_quota(size_bytes: int) -> None:
    client = WaitingClient()
    while client.elapsed_s < WINDOWS_S * 2:
        client.send(size_bytes, 1)
    begin = client.elapsed_s, client.sent_bytes

    while client.elapsed_s < 620:
        client.send(size_bytes, 1)

    rate = (client.sent_bytes - begin[1]) / (client.elapsed_s - begin[0])
    assert rate == pytest.approx(QUOTA, rel=0.02)


mutations = st.lists(st.tuples(st.integers(1, 500), st.integers(0, 20_000)), min_size=1, max_size=40)


@settings(max_examples=examples(60))
@given(load=mutations)
def test_a_client_of_a_strict_quota_that_waits_is_never_refused_twice(load: list[tuple[int, int]]) -> None:
    rate, clock = 5.0, MockClock()
    manager = ControllerMutationQuotaManager(ClientQuotaType.CONTROLLER_MUTATION, QuotaConfig(), clock)
    manager.update_quota(DEFAULT_CLIENT, rate)
    start_ms, admitted, largest = clock.monotonic_ms(), 0, max(permits for permits, _ in load)

    for permits, pause_ms in load:
        quota = manager.quota_for("u", "c", strict=True)
        try:
            quota.record(permits)
        except ApiError:
            clock.advance(quota.throttle_ms(clock.monotonic_ms()) + 1)
            quota.record(permits)
        admitted += permits
        clock.advance(pause_ms)

        elapsed_s = (clock.monotonic_ms() - start_ms) / 1000
        assert admitted <= rate * (elapsed_s + QuotaConfig().samples) + largest


@settings(max_examples=examples(60))
@given(load=mutations)
def test_a_client_of_a_permissive_quota_that_waits_has_no_debt_left(load: list[tuple[int, int]]) -> None:
    clock = MockClock()
    manager = ControllerMutationQuotaManager(ClientQuotaType.CONTROLLER_MUTATION, QuotaConfig(), clock)
    manager.update_quota(DEFAULT_CLIENT, 5)

    for permits, pause_ms in load:
        quota = manager.quota_for("u", "c", strict=False)
        quota.record(permits)
        clock.advance(quota.throttle_ms(clock.monotonic_ms()) + 1)

        manager.quota_for("u", "c", strict=True).record(0)
        clock.advance(pause_ms)


class PlainSum(WindowedSum):
    """Recomputes all samples each time, as Kafka does."""

    __slots__ = ()

    record = SampledStat.record
    purge = SampledStat.purge
    oldest = SampledStat.oldest

    def measure(self, now_ms: int) -> float:
        return SampledStat.measure(self, now_ms)


@settings(max_examples=examples(100))
@given(
    steps=st.lists(
        st.tuples(st.integers(-5, 3000), st.integers(-50, 1000), st.sampled_from("rmwc")), max_size=80
    ),
    samples=st.integers(1, 4),
    kind=st.sampled_from([Rate, SimpleRate]),
)
def test_a_rate_with_cached_windows_measures_the_same(
    steps: list[tuple[int, int, str]], samples: int, kind: type[Rate]
) -> None:
    config = MetricConfig(samples=samples, time_window_ms=1000)
    rates = [kind(WindowedSum(config)), kind(PlainSum(config))]
    now_ms = MockClock().monotonic_ms()

    for step_ms, value, what in steps:
        now_ms += step_ms
        if what == "r":
            for rate in rates:
                rate.record(value, now_ms)
        elif what == "c":
            config = MetricConfig(samples=samples, time_window_ms=500 + abs(value))
            for rate in rates:
                rate.config = config
        seen = [(rate.window_size_ms(now_ms), rate.measure(now_ms)) for rate in rates if what != "w"]

        assert not seen or seen[0] == seen[1]


names = st.sampled_from(["a", "b"])
parts = st.one_of(st.just(ABSENT), st.just(DEFAULT), names)
entities = st.builds(lambda user, client_id: ClientQuotaEntity(user=user, client_id=client_id), parts, parts)


@settings(max_examples=examples(200))
@given(limits=st.dictionaries(entities, st.integers(1, 1000), max_size=8), user=names, client_id=names)
def test_the_most_specific_of_eight_entities_decides_whatever_is_configured(
    limits: dict[ClientQuotaEntity, int], user: str, client_id: str
) -> None:
    limits.pop(ClientQuotaEntity(), None)
    manager = ClientQuotaManager(ClientQuotaType.FETCH, QuotaConfig(), MockClock())
    for entity, value in limits.items():
        manager.update_quota(entity, value)
    order: list[tuple[Part, Part]] = [(u, c) for u in (user, DEFAULT) for c in (client_id, DEFAULT, ABSENT)]
    order += [(ABSENT, client_id), (ABSENT, DEFAULT)]

    found = manager.limit(user, client_id)

    each = (limits.get(ClientQuotaEntity(user=u, client_id=c)) for u, c in order)
    assert found == next((limit for limit in each if limit is not None), UNLIMITED)
