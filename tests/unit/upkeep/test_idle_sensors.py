from __future__ import annotations

from odradek.plugin.client_quota import DEFAULT, ClientQuotaEntity
from odradek.quota.quota_managers import QuotaConfigs, QuotaManagers
from odradek.testing.clock import MockClock
from odradek.upkeep.idle_sensors import SENSORS_PER_TURN, forget_idle

HOUR_MS = 3_600_000
CLIENTS = 3 * SENSORS_PER_TURN


def test_many_idle_clients_are_forgotten_a_few_at_a_time() -> None:
    clock = MockClock()
    quotas = QuotaManagers(QuotaConfigs(), clock, timer=clock.timer)
    quotas.apply(ClientQuotaEntity(client_id=DEFAULT), {"request_percentage": 100})
    for number in range(CLIENTS):
        quotas.request.record_without_throttle("u", str(number), 1, clock.monotonic_ms())
    clock.advance(HOUR_MS + 1)

    forget_idle(quotas, clock, clock.timer)
    after_a_turn = quotas.sensors
    clock.advance(1000)

    assert after_a_turn == 2 * CLIENTS - SENSORS_PER_TURN
    assert quotas.sensors == 0


def test_idle_clients_are_looked_for_every_thirty_seconds() -> None:
    clock = MockClock()
    quotas = QuotaManagers(QuotaConfigs(), clock, timer=clock.timer)
    quotas.apply(ClientQuotaEntity(client_id=DEFAULT), {"request_percentage": 100})

    forget_idle(quotas, clock, clock.timer)
    quotas.request.record_without_throttle("u", "c", 1, clock.monotonic_ms())
    clock.advance(HOUR_MS)
    after_an_hour = quotas.sensors
    clock.advance(30_000)

    assert after_an_hour == 2
    assert quotas.sensors == 0
    assert len(clock.timer) == 1
