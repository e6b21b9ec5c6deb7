"""The keys of a forwarder's table that belong to the host: queue, batches, retries, timeouts."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.plugin.config import ConfigError
from odradek.settings.kinds import LONG, Whole
from odradek.settings.setting import setting

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwarderSettings:
    """How one forwarder is driven.

    The default batch, 40 records and 1 MiB, is where joining bodies for OTLP stops paying off.
    """

    # fmt: off
    queue_max_bytes: int = setting(
        "queue.max.bytes", Whole(LONG, 1), 64 * MIB,
        "Payloads that wait or are on their way; the newest is dropped beyond it.", unit="bytes",
    )
    queue_max_records: int = setting(
        "queue.max.records", Whole(LONG, 1), 10_000,
        "The same in pushes; both hold with `telemetry.durability=memory` only.", unit="pushes",
    )
    batch_max_bytes: int = setting(
        "batch.max.bytes", Whole(LONG, 1), MIB,
        "Payload bytes of a batch; a larger push travels alone.", unit="bytes",
    )
    batch_max_records: int = setting(
        "batch.max.records", Whole(LONG, 1), 40, "Pushes of a batch.", unit="pushes"
    )
    batch_max_age_ms: int = setting(
        "batch.max.age.ms", Whole(LONG), 1_000,
        "A batch leaves when its oldest push has waited this long.", unit="ms",
    )
    deliver_timeout_ms: int = setting(
        "deliver.timeout.ms", Whole(LONG, 1), 30_000,
        "Time for one attempt; a longer one is cancelled, counts as a failure and is repeated.", unit="ms",
    )
    retry_backoff_ms: int = setting(
        "retry.backoff.ms", Whole(LONG, 1), 500,
        "Wait before the first retry, doubled each time, with 20 % jitter.", unit="ms",
    )
    retry_backoff_max_ms: int = setting(
        "retry.backoff.max.ms", Whole(LONG, 1), 30_000, "Longest wait that the host chooses.", unit="ms"
    )
    retry_max_attempts: int = setting(
        "retry.max.attempts", Whole(LONG), 0,
        "Retries that the destination asked for before a batch is given up; 0 is no limit.", unit="attempts",
    )
    failure_max_attempts: int = setting(
        "failure.max.attempts", Whole(LONG, 1), 5,
        "Failed attempts before a batch is halved; a single push is given up then.", unit="attempts",
    )
    # fmt: on

    def check(self) -> None:
        """Whether the values go together.

        Raises:
            ConfigError: They do not.
        """
        if self.batch_max_bytes > self.queue_max_bytes:
            raise ConfigError("batch.max.bytes", f"expected at most queue.max.bytes ({self.queue_max_bytes})")
        if self.retry_backoff_ms > self.retry_backoff_max_ms:
            most_ms = self.retry_backoff_max_ms
            raise ConfigError("retry.backoff.ms", f"expected at most retry.backoff.max.ms ({most_ms})")
