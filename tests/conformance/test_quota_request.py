"""Request quotas: the share of the host's time, after Kafka's ClientRequestQuotaManagerTest."""

from __future__ import annotations

import pytest

from odradek.plugin.client_quota import DEFAULT, ClientQuotaEntity, ClientQuotaType
from odradek.quota.client_request_quota_manager import ClientRequestQuotaManager
from odradek.quota.quota_config import QuotaConfig
from odradek.testing.clock import MockClock

CLIENT = ("ANONYMOUS", "test-client")


class BusyClient:
    """A client under a default quota of one percent."""

    def __init__(self) -> None:
        self.clock = MockClock()
        self.manager = ClientRequestQuotaManager(
            ClientQuotaType.REQUEST, QuotaConfig(), self.clock, timer=self.clock.timer
        )
        self.manager.update_quota(ClientQuotaEntity(client_id=DEFAULT), 1)

    def spend(self, spent_ms: float) -> int:
        """Record one request of this length; return the throttle time in ms."""
        spent_ns = round(spent_ms * 1_000_000)
        return self.manager.record_ns_and_throttle_ms(*CLIENT, spent_ns, self.clock.monotonic_ms())

    def spend_each_second(self, spent_ms: float, times: int) -> list[int]:
        throttles = []
        for _ in range(times):
            throttles.append(self.spend(spent_ms))
            self.clock.advance(1000)
        return throttles

    def measured(self) -> dict[str, float]:
        return {row.name.name: row.value for row in self.manager.measured(self.clock.monotonic_ms())}


@pytest.fixture
def client() -> BusyClient:
    return BusyClient()


def test_time_above_one_percent_is_throttled(client: BusyClient) -> None:
    quiet = client.spend_each_second(4, times=10)
    client.clock.advance(500)

    throttle_ms = client.spend(67.1)

    assert quiet == [0] * 10
    assert throttle_ms == 210
    assert client.measured()["request-time"] == pytest.approx(10.71 / 10.5)


def test_the_channel_leaves_the_queue_after_the_throttle(client: BusyClient) -> None:
    ended: list[str] = []
    client.manager.throttled(*CLIENT, 210, on_end=lambda: ended.append("end"))
    queued = (client.measured()["queue-size"], list(ended))

    client.clock.advance(210)

    assert queued == (1, [])
    assert (client.measured()["queue-size"], ended) == (0, ["end"])


def test_ten_seconds_after_a_burst_the_client_is_not_throttled(client: BusyClient) -> None:
    client.spend_each_second(4, times=10)
    client.clock.advance(500)
    client.spend(67.1)
    client.clock.advance(210)
    client.spend_each_second(4, times=11)

    throttle_ms = client.spend(0)

    assert throttle_ms == 0


@pytest.fixture
def after_the_spike(client: BusyClient) -> tuple[BusyClient, int]:
    client.spend_each_second(4, times=10)
    return client, client.spend(500)


def test_a_throttle_is_at_most_one_window(after_the_spike: tuple[BusyClient, int]) -> None:
    _, throttle_ms = after_the_spike

    assert throttle_ms == 1000


def test_a_spike_throttles_until_its_window_expires(after_the_spike: tuple[BusyClient, int]) -> None:
    client, _ = after_the_spike

    throttles = []
    for _ in range(11):
        client.clock.advance(1000)
        throttles.append(client.spend(0))

    assert throttles == [1000] * 10 + [0]


def test_exempt_time_is_measured_only_while_quotas_exist() -> None:
    manager = ClientRequestQuotaManager(ClientQuotaType.REQUEST, QuotaConfig(), clock := MockClock())
    manager.record_exempt_ns(1_000_000_000, clock.monotonic_ms())
    before = [row.name.name for row in manager.measured(clock.monotonic_ms())]

    manager.update_quota(ClientQuotaEntity(client_id=DEFAULT), 1)
    manager.record_exempt_ns(1_500_000_000, clock.monotonic_ms())

    rows = {row.name: row.value for row in manager.measured(clock.monotonic_ms())}
    assert before == ["queue-size"]
    assert {(name.name, name.group, name.tags): value for name, value in rows.items()} == {
        ("queue-size", "Request", ()): 0,
        ("exempt-request-time", "Request", ()): 5.0,
    }


def test_network_time_counts_but_does_not_throttle(client: BusyClient) -> None:
    client.manager.record_network_ns(*CLIENT, 200_000_000, client.clock.monotonic_ms())

    throttle_ms = client.spend(0)

    assert throttle_ms == 1000
    assert client.measured()["request-time"] == 2.0
