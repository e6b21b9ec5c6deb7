"""Bandwidth quotas of clients, after Kafka's ClientQuotaManagerTest."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from odradek.plugin.client_quota import DEFAULT, ClientQuotaEntity, ClientQuotaType
from odradek.quota.client_quota_manager import ClientQuotaManager
from odradek.quota.quota_config import UNBOUNDED, UNLIMITED, QuotaConfig
from odradek.quota.quota_levels import QuotaTypes
from odradek.testing.clock import MockClock
from support.tenant_quotas import TenantQuotas

Entity = ClientQuotaEntity
P1, P2, UNKNOWN = ("User1", "p1"), ("User2", "p2"), ("User3", "unknown")
LEVELS: dict[str, Callable[[str, str], ClientQuotaEntity]] = {
    "client-id": lambda user, client_id: Entity(client_id=client_id),
    "user": lambda user, client_id: Entity(user=user),
    "user and client-id": lambda user, client_id: Entity(user=user, client_id=client_id),
}
DEFAULTS = {
    "client-id": Entity(client_id=DEFAULT),
    "user": Entity(user=DEFAULT),
    "user and client-id": Entity(user=DEFAULT, client_id=DEFAULT),
}


class LimitedClients:
    """A quota manager on a mock clock, and the clients that it limits."""

    def __init__(self, samples: int = 11, quota_type: ClientQuotaType = ClientQuotaType.PRODUCE) -> None:
        self.clock = MockClock()
        self.manager = ClientQuotaManager(
            quota_type, QuotaConfig(samples=samples), self.clock, timer=self.clock.timer
        )

    def record(self, user: str, client_id: str, value: float, times: int = 1) -> int:
        """Record this many requests; return the last throttle time in ms."""
        throttles = [
            self.manager.record_and_throttle_ms(user, client_id, value, self.clock.monotonic_ms())
            for _ in range(times)
        ]
        return throttles[-1]

    def measured(self, name: str, client_id: str = "client1") -> float:
        rows = {
            (row.name.name, dict(row.name.tags).get("client-id")): row.value
            for row in self.manager.measured(self.clock.monotonic_ms())
        }
        return rows[name, None if name == "queue-size" else client_id]


@pytest.fixture
def clients() -> LimitedClients:
    return LimitedClients()


@pytest.fixture(params=LEVELS)
def levels(request: pytest.FixtureRequest, clients: LimitedClients) -> tuple[LimitedClients, str]:
    level = str(request.param)
    clients.manager.update_quota(LEVELS[level](*P1), 2000)
    clients.manager.update_quota(LEVELS[level](*P2), 4000)
    return clients, level


def test_each_level_has_its_own_limits(levels: tuple[LimitedClients, str]) -> None:
    clients, _ = levels

    limits = [clients.manager.limit(*client) for client in (P1, P2, UNKNOWN)]

    assert limits == [2000, 4000, UNLIMITED]


def test_usage_above_the_limit_is_throttled_for_the_excess(levels: tuple[LimitedClients, str]) -> None:
    clients, _ = levels

    throttle_ms = clients.record(*P1, 2500, times=11)

    assert throttle_ms == 3750


def test_a_higher_limit_takes_effect_at_once(levels: tuple[LimitedClients, str]) -> None:
    clients, level = levels
    clients.record(*P1, 2500, times=11)

    clients.manager.update_quota(LEVELS[level](*P1), 3000)

    assert clients.manager.limit(*P1) == 3000
    assert clients.record(*P1, 0) == 0


def test_a_lower_limit_counts_earlier_usage(levels: tuple[LimitedClients, str]) -> None:
    clients, level = levels
    clients.record(*P1, 2500, times=11)

    clients.manager.update_quota(LEVELS[level](*P1), 500)

    assert clients.record(*P1, 0) == 45_000


def test_the_default_applies_after_a_limit_is_removed(levels: tuple[LimitedClients, str]) -> None:
    clients, level = levels
    clients.record(*P1, 2500, times=11)

    clients.manager.update_quota(LEVELS[level](*P1), None)
    clients.manager.update_quota(DEFAULTS[level], 4000)

    assert clients.manager.limit(*P1) == 4000
    assert clients.record(*P1, 1000, times=11) == 0
    assert clients.measured("byte-rate", "" if level == "user" else "p1") == 3850


def test_a_fetch_may_use_all_windows_but_one() -> None:
    clients = LimitedClients(samples=4, quota_type=ClientQuotaType.FETCH)
    before = clients.manager.max_value_in_quota_window("userA", "client1")

    clients.manager.update_quota(Entity(user=DEFAULT), 10)

    assert before == UNBOUNDED
    assert clients.manager.max_value_in_quota_window("userA", "client1") == 30


@pytest.mark.parametrize(
    "entity",
    [Entity(user=DEFAULT), Entity(user="userA"), Entity(user="userA", client_id="client1")],
    ids=["default user", "user", "user and client-id"],
)
def test_setting_and_removing_a_quota_restores_the_first_state(
    clients: LimitedClients, entity: Entity
) -> None:
    manager, seen = clients.manager, []
    for value in (None, 10, None):
        manager.update_quota(entity, value)
        throttled = clients.record("userA", "client1", 1000, times=11) > 0
        limit = manager.limit("userA", "client1")
        seen.append((throttled, limit, manager.max_value_in_quota_window("userA", "client1")))

    free = (False, UNLIMITED, UNBOUNDED)
    assert seen == [free, (True, 10, 100), free]


def violated() -> tuple[LimitedClients, list[int]]:
    """Ten quiet seconds, then one request that exceeds the quota in a half-used window."""
    clients = LimitedClients()
    clients.manager.update_quota(Entity(client_id=DEFAULT), 500)
    throttles = []
    for _ in range(10):
        throttles.append(clients.record("ANONYMOUS", "client1", 400))
        clients.clock.advance(1000)
    clients.clock.advance(500)
    return clients, [*throttles, clients.record("ANONYMOUS", "client1", 2300)]


def test_a_violation_in_a_half_used_window() -> None:
    clients, throttles = violated()

    rate = clients.measured("byte-rate")

    assert throttles == [0] * 10 + [2100]
    assert rate == 600


def test_a_throttled_channel_is_in_the_queue_until_its_time_is_over() -> None:
    clients, _ = violated()
    ended: list[str] = []

    clients.manager.throttled("ANONYMOUS", "client1", 2100, on_end=lambda: ended.append("end"))

    assert (clients.measured("queue-size"), clients.measured("throttle-time"), ended) == (1, 2100, [])
    clients.clock.advance(2100)
    assert (clients.measured("queue-size"), ended) == (0, ["end"])


def test_a_client_that_waited_may_be_throttled_again_once_quiet_windows_expire() -> None:
    clients, _ = violated()
    clients.clock.advance(2100)

    throttle_ms = clients.record("ANONYMOUS", "client1", 0)

    assert throttle_ms == 400


@pytest.mark.parametrize(("windows", "granted"), [(1, 1.0), (5, 1.0), (11, 22 / 13), (15, 1.2), (20, 1.0)])
def test_expired_windows_forgive_requests_larger_than_the_whole_quota(
    clients: LimitedClients, windows: int, granted: float
) -> None:
    clients.manager.update_quota(Entity(client_id=DEFAULT), 500)
    begin_ms, sent = clients.clock.monotonic_ms(), 0

    while clients.clock.monotonic_ms() < begin_ms + 3_600_000:
        clients.clock.advance(max(1, clients.record("ANONYMOUS", "client1", 500 * windows)))
        sent += 500 * windows

    rate = sent * 1000 / (clients.clock.monotonic_ms() - begin_ms)
    assert rate == pytest.approx(500 * granted, rel=0.01)


def test_ten_seconds_after_a_burst_the_client_is_not_throttled() -> None:
    clients, _ = violated()
    clients.clock.advance(2100)
    for _ in range(10):
        clients.record("ANONYMOUS", "client1", 400)
        clients.clock.advance(1000)

    throttle_ms = clients.record("ANONYMOUS", "client1", 0)

    assert throttle_ms == 0


@pytest.mark.parametrize(
    "removed",
    [
        pytest.param(["ProduceThrottleTime-:client1"], id="throttle sensor"),
        pytest.param(["Produce-:client1", "ProduceThrottleTime-:client1"], id="both sensors"),
    ],
)
def test_removed_sensors_are_created_again(clients: LimitedClients, removed: list[str]) -> None:
    clients.manager.update_quota(Entity(client_id=DEFAULT), 500)
    clients.record("ANONYMOUS", "client1", 100)
    for name in removed:
        clients.manager.metrics.remove(name)

    throttle_ms = clients.record("ANONYMOUS", "client1", 10_000)

    assert throttle_ms > 0
    assert {"Produce-:client1", "ProduceThrottleTime-:client1"} <= clients.manager.metrics.sensors.keys()


def test_a_client_id_is_not_sanitized_in_sensor_names(clients: LimitedClients) -> None:
    clients.manager.update_quota(Entity(client_id=DEFAULT), 500)

    clients.record("ANONYMOUS", "client@#$%", 100)

    assert list(clients.manager.metrics.sensors) == ["Produce-:client@#$%", "ProduceThrottleTime-:client@#$%"]


def test_a_level_is_enabled_while_an_entity_of_it_has_a_quota(clients: LimitedClients) -> None:
    client, user, both = QuotaTypes.CLIENT_ID, QuotaTypes.USER, QuotaTypes.USER_CLIENT_ID
    steps = [
        (Entity(client_id="client1"), 10, client),
        (Entity(client_id="client1"), 20, client),
        (Entity(client_id="client2"), 10, client),
        (Entity(user="userA"), 10, client | user),
        (Entity(user="userB"), 10, client | user),
        (Entity(user="userA", client_id="client1"), 10, client | user | both),
        (Entity(client_id="client1"), None, client | user | both),
        (Entity(client_id="client1"), None, client | user | both),
        (Entity(client_id="client2"), None, user | both),
        (Entity(user="userA"), None, user | both),
        (Entity(user="userB"), None, both),
        (Entity(user="userA", client_id="client1"), None, QuotaTypes.NO_QUOTAS),
        (Entity(user="userA", client_id="client1"), None, QuotaTypes.NO_QUOTAS),
    ]

    seen = []
    for entity, value, _ in steps:
        clients.manager.update_quota(entity, value)
        seen.append((clients.manager.levels.enabled, clients.manager.is_enabled))

    assert seen == [(expected, expected != 0) for _, _, expected in steps]


def test_with_a_callback_quotas_are_always_enabled() -> None:
    manager = ClientQuotaManager(ClientQuotaType.PRODUCE, QuotaConfig(), MockClock(), TenantQuotas({}))

    seen = [manager.is_enabled]
    for value in (10, None):
        manager.update_quota(Entity(user="userA"), value)
        seen.append(manager.is_enabled)

    assert seen == [True] * 3


USER_CLIENT_DEFAULT = Entity(user=DEFAULT, client_id=DEFAULT)
PRECEDENCE: list[tuple[str, str, float, float, bool] | tuple[Entity, float | None]] = [
    (Entity(user=DEFAULT), 1000),
    (Entity(client_id=DEFAULT), 2000),
    (USER_CLIENT_DEFAULT, 3000),
    (Entity(user="userA"), 4000),
    (Entity(user="userA", client_id="client1"), 5000),
    (Entity(user="userB"), 6000),
    (Entity(user="userB", client_id="client1"), 7000),
    (Entity(user="userB", client_id=DEFAULT), 8000),
    (Entity(user="userC"), 10_000),
    (Entity(client_id="client1"), 9000),
    ("userA", "client1", 5000, 4500, False),
    ("userA", "client2", 4000, 4500, True),
    ("userA", "client3", 4000, 0, True),
    ("userA", "client1", 5000, 0, False),
    ("userB", "client1", 7000, 8000, True),
    ("userB", "client2", 8000, 7000, False),
    ("userB", "client3", 8000, 7000, False),
    ("userD", "client1", 3000, 3500, True),
    ("userD", "client2", 3000, 2500, False),
    ("userE", "client1", 3000, 2500, False),
    (USER_CLIENT_DEFAULT, None),
    ("userD", "client1", 1000, 0, False),
    ("userE", "client4", 1000, 1500, True),
    ("userF", "client4", 1000, 800, False),
    ("userF", "client5", 1000, 800, True),
    (Entity(user=DEFAULT), None),
    ("userF", "client4", 2000, 0, False),
    ("userF", "client5", 2000, 0, False),
    ("userF", "client5", 2000, 2500, True),
    ("userG", "client5", 2000, 0, True),
    (Entity(user="userA"), 8000),
    (Entity(user="userA", client_id="client1"), 10_000),
    ("userA", "client2", 8000, 0, False),
    ("userA", "client2", 8000, 4500, True),
    ("userA", "client1", 10_000, 0, False),
    ("userA", "client1", 10_000, 6000, True),
    (Entity(user="userA", client_id="client1"), None),
    ("userA", "client6", 8000, 0, True),
    (Entity(user="userA", client_id="client6"), 11_000),
    ("userA", "client6", 11_000, 8500, False),
    (Entity(user="userA", client_id=DEFAULT), 12_000),
    (Entity(user="userA", client_id="client6"), None),
    ("userA", "client6", 12_000, 4000, True),
]
"""Either an entity and its new quota, or a client, its limit, the value it records eleven times, and whether
that throttles it.
"""


def test_the_most_specific_of_eight_entities_decides(clients: LimitedClients) -> None:
    seen, expected = [], []
    for step in PRECEDENCE:
        if len(step) == 2:
            clients.manager.update_quota(*step)
            continue
        user, client_id, limit, value, throttled = step
        was_throttled = clients.record(user, client_id, value, times=11) > 0
        seen.append((user, client_id, clients.manager.limit(user, client_id), was_throttled))
        expected.append((user, client_id, limit, throttled))

    assert len(expected) == 25
    assert seen == expected
