"""One batch, from its first call of ``deliver`` until each of its records is settled."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from odradek.delivery.delivery_ledger import DeliveryLedger
from odradek.delivery.forwarder_settings import ForwarderSettings
from odradek.plugin.protocols import Reject, Retry, TelemetryRecord

JITTER = 0.2
"""As in Kafka's ``CommonClientConfigs.RETRY_BACKOFF_JITTER``."""
MAX_ASKED_WAIT_MS = 300_000
"""A far side that asks for more is tried after this all the same."""


@dataclass(slots=True, eq=False)
class BatchDelivery:
    """Says after each attempt how long to wait for the next; over when ``records`` is empty."""

    records: list[TelemetryRecord]
    """Those not settled yet."""
    settings: ForwarderSettings
    ledger: DeliveryLedger
    random: Callable[[], float]
    """Uniform in [0, 1)."""
    retries: int = 0
    failures: int = 0

    def delivered(self) -> None:
        """The far side took them all."""
        self.ledger.deliver(self.settled())

    def retry(self, error: Retry) -> int:
        """The far side cannot now.

        Returns:
            Milliseconds to wait; 0 when the batch was given up.
        """
        self.took(error.delivered)
        self.retries += 1
        self.ledger.retries += 1
        self.ledger.last_error = str(error)
        most = self.settings.retry_max_attempts
        if most and self.retries > most:
            self.ledger.drop(self.settled(), "retry.max.attempts")
            return 0
        return asked_ms(error.after_s) or self.backoff_ms(self.retries)

    def failed(self, error: str) -> int:
        """``deliver`` raised what it should not, or took too long.

        Returns:
            Milliseconds to wait; 0 when the batch was given up.
        """
        self.failures += 1
        self.ledger.failures += 1
        self.ledger.last_error = error
        if self.failures >= self.settings.failure_max_attempts:
            self.ledger.drop(self.settled(), "failure.max.attempts")
            return 0
        return self.backoff_ms(self.failures)

    def reject(self, error: Reject) -> None:
        """The far side will never take the records that the error names, or none of them when it names none.

        Those that are left are to be delivered again at once: the batch got smaller, so this ends.
        """
        self.ledger.last_error = str(error)
        self.took(error.delivered)
        named = ids(error.records)
        left = [record for record in self.records if id(record) not in named]
        if len(left) == len(self.records):
            left = []
        gone = [record for record in self.records if id(record) in named] if left else self.records
        self.records = left
        self.ledger.reject(gone, str(error))

    def took(self, delivered: Iterable[TelemetryRecord]) -> None:
        """The far side took some of them, whatever became of the others."""
        taken = ids(delivered)
        if taken:
            self.ledger.deliver([record for record in self.records if id(record) in taken])
            self.records = [record for record in self.records if id(record) not in taken]

    def abandon(self, reason: str) -> None:
        """Nobody goes on with it."""
        self.ledger.drop(self.settled(), reason)

    def settled(self) -> list[TelemetryRecord]:
        """All that was left, which is none now."""
        records, self.records = self.records, []
        return records

    def backoff_ms(self, attempts: int) -> int:
        """Doubling from ``retry.backoff.ms`` to ``retry.backoff.max.ms``, with jitter; at least 1."""
        settings = self.settings
        doubled_ms = settings.retry_backoff_ms << min(attempts - 1, 30)
        capped_ms = min(doubled_ms, settings.retry_backoff_max_ms)
        return max(1, round(capped_ms * (1 - JITTER + 2 * JITTER * self.random())))


def ids(records: object) -> set[int]:
    """Of the records that a plugin names; of none when that is no sequence."""
    return {id(record) for record in records} if isinstance(records, Iterable) else set()


def asked_ms(after_s: object) -> int:
    """What a far side asked for, in milliseconds; 0 when it did not ask or what came is no such number."""
    if not isinstance(after_s, int | float) or not after_s > 0:
        return 0
    return max(1, round(min(after_s * 1000, MAX_ASKED_WAIT_MS)))
