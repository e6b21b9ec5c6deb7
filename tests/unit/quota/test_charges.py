"""The judgment of `support.charges`: pauses change nothing, but a quota that is a tenth off is noticed."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from odradek.plugin.client_quota import ClientQuotaEntity, ClientQuotaType
from odradek.quota.client_quota_manager import ClientQuotaManager
from odradek.quota.quota_config import QuotaConfig
from odradek.testing.clock import MockClock
from support.charges import Charges, watched

QUOTA = 1_000_000
BATCH = 100_000
REQUEST_MS = 3
END_MS = 40_000
PAUSE_MS = 5_000
KINDS = pytest.mark.parametrize("is_charged", [True, False], ids=["producer", "consumer"])


@dataclass(slots=True)
class GreedyClient:
    """Asks again as soon as it may, except in pauses.

    A producer is charged also for a request after which it is throttled; a consumer is not, and gets nothing.
    """

    is_charged: bool
    quota: float = QUOTA
    seed: int = 0
    seconds_to_pause: float = 0
    """The mean time from one pause to the next one; 0 for no pauses."""

    def run(self) -> Charges:
        manager = ClientQuotaManager(ClientQuotaType.PRODUCE, QuotaConfig(), MockClock())
        manager.update_quota(ClientQuotaEntity(client_id="a"), self.quota)
        chance, now_ms, throttled_ms = random.Random(self.seed), 1_000, 0
        pause_ms = now_ms + self.next_pause_ms(chance)
        with watched(manager, QUOTA, user="u", client_id="a") as charges:
            while throttled_ms < END_MS:
                throttle_ms = manager.record_and_throttle_ms("u", "a", BATCH, now_ms)
                if throttle_ms and not self.is_charged:
                    manager.unrecord("u", "a", BATCH, now_ms)
                throttled_ms += throttle_ms
                now_ms += max(throttle_ms, REQUEST_MS)
                if now_ms > pause_ms:
                    now_ms = max(now_ms, int(pause_ms) + PAUSE_MS)
                    pause_ms = now_ms + self.next_pause_ms(chance)
        return charges

    def next_pause_ms(self, chance: random.Random) -> float:
        return 1000 * self.seconds_to_pause * chance.uniform(0.2, 1.8) if self.seconds_to_pause else 1e9


@KINDS
@pytest.mark.parametrize("seconds_to_pause", [0, 5, 10, 20, 40])
def test_a_client_that_stands_still_has_used_its_quota(seconds_to_pause: float, is_charged: bool) -> None:
    for seed in range(20):
        charges = GreedyClient(is_charged, seed=seed, seconds_to_pause=seconds_to_pause).run()

        assert charges.wrong_ms == []
        assert charges.progress.lag_s() == 0
        assert charges.progress.rates().hold_to(QUOTA), (seed, charges.progress.rates())


@KINDS
@pytest.mark.parametrize("factor", [0.9, 0.99, 1.01, 1.1])
def test_a_quota_that_is_a_little_off_is_noticed(factor: float, is_charged: bool) -> None:
    charges = GreedyClient(is_charged, factor * QUOTA).run()

    assert charges.wrong_ms


@KINDS
@pytest.mark.parametrize("factor", [0.8, 1.2])
def test_a_rate_that_is_off_is_noticed(factor: float, is_charged: bool) -> None:
    charges = GreedyClient(is_charged, factor * QUOTA).run()

    assert not charges.progress.rates().hold_to(QUOTA)
