"""One batch, from its first call of ``deliver`` until each of its records is settled."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from odradek.delivery.delivery_ledger import DeliveryLedger
from odradek.delivery.forwarder_settings import ForwarderSettings
from odradek.plugin.protocols import Reject, Retry, TelemetryRecord

JITTER = 0.2
"""As in Kafka's ``CommonClientConfigs.RETRY_BACKOFF_JITTER``."""
MAX_ASKED_WAIT_MS = 300_000
"""The longest wait, even if the destination asks for more."""
DROPPED = "dropped"
"""The outcome of records that are given up and not in a log."""


class BatchDelivery:
    """Decides after each attempt how long to wait for the next one. Over when ``records`` is empty.

    A batch that is refused without saying which record is to blame is halved, and each half is tried on its
    own, until the record is alone. Order is kept among those that are delivered.
    """

    def __init__(
        self,
        records: Sequence[TelemetryRecord],
        settings: ForwarderSettings,
        ledger: DeliveryLedger,
        random: Callable[[], float],
        told: Callable[[Sequence[TelemetryRecord], str, str], None] = lambda records, reason, then: None,
        buries: bool = False,
    ) -> None:
        """Begin.

        Args:
            records: The records, in order.
            settings: The settings of the forwarder.
            ledger: Counts each record once.
            random: Uniform in [0, 1).
            told: Called with records that are given up, why, and what becomes of them.
            buries: Whether records that are given up wait in ``lost`` until the caller calls `buried`.
        """
        self.pieces = deque([list(records)] if records else [])
        """The records that are not settled yet; the first is delivered first."""
        self.lost: deque[tuple[list[TelemetryRecord], str]] = deque()
        """Records that were given up, and why. They are settled once they are dead letters."""
        self.settings = settings
        self.ledger = ledger
        self.random = random
        self.told = told
        self.buries = buries
        self.retries = 0
        self.failures = 0

    @property
    def records(self) -> list[TelemetryRecord]:
        """The records that are not settled, in order; those that were given up first."""
        parts = [*(records for records, _ in self.lost), *self.pieces]
        return [record for part in parts for record in part]

    def piece(self) -> list[TelemetryRecord]:
        """The records to deliver next; empty if none are left."""
        return list(self.pieces[0]) if self.pieces else []

    def delivered(self) -> None:
        """The destination took every record of the piece."""
        if self.pieces:
            self.ledger.deliver(self.pieces.popleft())
        self.retries = self.failures = 0

    def retry(self, error: Retry) -> int:
        """The destination cannot take the piece now.

        Returns:
            Milliseconds to wait; 0 when the piece was given up.
        """
        left = self.took(error.delivered)
        self.retries += 1
        self.ledger.retries += 1
        self.ledger.last_error = text_of(error)
        most = self.settings.retry_max_attempts
        if left and most and self.retries > most:
            self.give_up("retry.max.attempts")
            return 0
        return asked_ms(error.after_s) or backoff_ms(self.settings, self.retries, self.random)

    def timed_out(self, error: str) -> int:
        """``deliver`` took too long. The records may or may not have arrived, so they are tried again.

        Returns:
            Milliseconds to wait.
        """
        self.failures += 1
        self.ledger.failures += 1
        self.ledger.last_error = error
        return backoff_ms(self.settings, self.failures, self.random)

    def failed(self, error: str) -> int:
        """``deliver`` raised an unexpected exception.

        Returns:
            Milliseconds to wait; 0 when the piece was given up.
        """
        wait_ms = self.timed_out(error)
        if self.failures < self.settings.failure_max_attempts or self.halved():
            return wait_ms
        self.give_up("failure.max.attempts")
        return 0

    def reject(self, error: Reject) -> None:
        """The destination will never take the records that the error names, or one of the piece if it names
        none.

        The rest is delivered again at once. This ends, because the piece gets smaller each time.
        """
        self.ledger.last_error = reason = text_of(error)
        if not self.took(error.delivered):
            return
        named = ids(error.records)
        piece = self.pieces[0] if self.pieces else []
        gone = [record for record in piece if id(record) in named]
        if not gone:
            if not self.halved():
                self.lose(piece, reason)
            return
        self.replace([record for record in piece if id(record) not in named])
        self.lose(gone, reason)

    def took(self, delivered: Iterable[TelemetryRecord]) -> bool:
        """The destination took some records of the piece. Returns whether others remain."""
        taken = ids(delivered)
        if not taken or not self.pieces:
            return bool(self.pieces)
        piece = self.pieces[0]
        left = [record for record in piece if id(record) not in taken]
        self.ledger.deliver([record for record in piece if id(record) in taken])
        self.replace(left)
        return bool(left)

    def halved(self) -> bool:
        """Divide the piece, unless it is a single record."""
        if not self.pieces:
            return False
        piece = self.pieces[0]
        middle = (len(piece) + 1) // 2
        if middle == len(piece):
            return False
        self.pieces[0] = piece[middle:]
        self.pieces.appendleft(piece[:middle])
        return True

    def replace(self, left: list[TelemetryRecord]) -> None:
        """Go on with a smaller piece."""
        self.pieces.popleft()
        if left:
            self.pieces.appendleft(left)

    def give_up(self, reason: str) -> None:
        """End the piece; the next one starts with all its attempts."""
        self.retries = self.failures = 0
        piece = self.pieces[0] if self.pieces else []
        if self.buries:
            self.lose(piece, reason)
        elif piece:
            self.told(piece, reason, DROPPED)
            self.ledger.drop(self.pieces.popleft(), reason)

    def lose(self, records: list[TelemetryRecord], reason: str) -> None:
        """Give up records."""
        if self.pieces and self.pieces[0] is records:
            self.pieces.popleft()
        if not records:
            return
        self.told(records, reason, "become dead letters" if self.buries else DROPPED)
        if self.buries:
            self.lost.append((records, reason))
        else:
            self.ledger.reject(records, reason)

    def buried(self) -> None:
        """The first of ``lost`` have become dead letters."""
        self.ledger.reject(*self.lost.popleft())

    def abandon(self, reason: str) -> list[TelemetryRecord]:
        """Count what is left as dropped, because nothing will deliver it, and return it."""
        records = self.records
        self.pieces.clear()
        self.lost.clear()
        self.ledger.drop(records, reason)
        return records


def backoff_ms(settings: ForwarderSettings, attempts: int, random: Callable[[], float]) -> int:
    """Doubling from ``retry.backoff.ms`` to ``retry.backoff.max.ms``, with jitter; at least 1.

    Args:
        settings: The settings of the forwarder.
        attempts: Failed attempts, from 1.
        random: Uniform in [0, 1).
    """
    doubled_ms = settings.retry_backoff_ms << min(attempts - 1, 30)
    capped_ms = min(doubled_ms, settings.retry_backoff_max_ms)
    return max(1, round(capped_ms * (1 - JITTER + 2 * JITTER * random())))


def text_of(error: Exception) -> str:
    """The message of an exception; its type if it cannot be printed."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001  plugins' exceptions are plugins' code
        return type(error).__name__


def ids(records: object) -> set[int]:
    """The indexes of the records that a plugin names; none if that is not a sequence."""
    return {id(record) for record in records} if isinstance(records, Iterable) else set()


def asked_ms(after_s: object) -> int:
    """The wait that a destination asked for, in ms; 0 if it did not ask or gave no valid number."""
    if not isinstance(after_s, int | float) or not after_s > 0:
        return 0
    return max(1, round(min(after_s * 1000, MAX_ASKED_WAIT_MS)))
