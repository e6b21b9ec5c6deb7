"""The charges under one quota of a host in this process, and the throttle times that follow from them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from unittest import mock

from odradek.metrics.rate import Rate
from odradek.metrics.sensor import Sensor
from odradek.metrics.windowed_sum import WindowedSum
from odradek.quota.client_quota_manager import ClientQuotaManager
from odradek.quota.connection_rates import ConnectionRates
from odradek.quota.quota_config import QuotaConfig
from support.progress import Progress

ROUNDING_MS = 2


class Charges:
    """Everything that was charged under one quota.

    Pauses of the client, of the host or of the machine change when a charge is recorded, but not the throttle
    time that a quota gives for the charges until then. So the two can be compared to the millisecond.
    """

    def __init__(self, config: QuotaConfig, quota: float, most_ms: float = math.inf) -> None:
        self.quota = quota
        self.most_ms = most_ms
        """The longest throttle time."""
        self.recorded = Rate(WindowedSum(config.windows))
        self.progress = Progress()
        """The amounts and throttle times by the clock of the host."""
        self.wrong_ms: list[tuple[int, float]] = []
        """Throttle times that the client was told, and others that it should have been told."""

    def raised_to(self, quota: float) -> None:
        """Continue with another quota; the measurement begins again."""
        self.quota, self.progress = quota, Progress()

    def add(self, value: float, now_ms: int, throttle_ms: int | None = None) -> None:
        """Add a charge and its throttle time; None for a charge that is taken back."""
        self.recorded.record(value, now_ms)
        self.progress.arrived(value, now_ms / 1000)
        if throttle_ms is None:
            return
        self.progress.throttled(throttle_ms / 1000, now_ms / 1000)
        elapsed_ms = self.recorded.window_size_ms(now_ms)
        used_ms = self.recorded.measure(now_ms) * elapsed_ms / self.quota
        expected_ms = min(max(used_ms - elapsed_ms, 0), self.most_ms)
        if abs(throttle_ms - expected_ms) > ROUNDING_MS:
            self.wrong_ms.append((throttle_ms, expected_ms))


@contextlib.contextmanager
def watched(
    manager: ClientQuotaManager, quota: float, *, user: str = "ANONYMOUS", client_id: str | None = None
) -> Iterator[Charges]:
    """The charges of a user, with this client id if one is given, until the end of the block."""
    charges = Charges(manager.config, quota)
    record, unrecord = manager.record_and_throttle_ms, manager.unrecord

    def is_watched(of_user: str, of_client: str | None) -> bool:
        return of_user == user and client_id in (None, of_client)

    def recorded(of_user: str, of_client: str | None, value: float, now_ms: int) -> int:
        throttle_ms = record(of_user, of_client, value, now_ms)
        if is_watched(of_user, of_client):
            charges.add(value, now_ms, throttle_ms)
        return throttle_ms

    def unrecorded(of_user: str, of_client: str | None, value: float, now_ms: int) -> None:
        unrecord(of_user, of_client, value, now_ms)
        if is_watched(of_user, of_client):
            charges.add(-value, now_ms)

    with (
        mock.patch.object(manager, "record_and_throttle_ms", recorded),
        mock.patch.object(manager, "unrecord", unrecorded),
    ):
        yield charges


@contextlib.contextmanager
def watched_connections(rates: ConnectionRates, quota: float, subject: str = "") -> Iterator[Charges]:
    """The connections of a listener or of an address, by default of the broker, until the end of the block.

    A connection that is refused because of its address is not counted.
    """
    charges = Charges(rates.config, quota, 1000 * rates.config.window_size_s)
    name = "-".join(filter(None, ("Connection-Accept-Rate", subject)))
    decide = rates.throttle_ms

    def decided(sensor: Sensor, now_ms: int) -> int:
        throttle_ms = decide(sensor, now_ms)
        if sensor.name == name:
            charges.add(1, now_ms, throttle_ms)
            if throttle_ms and subject not in ("", *rates.listeners):
                charges.add(-1, now_ms)
        return throttle_ms

    with mock.patch.object(rates, "throttle_ms", decided):
        yield charges
