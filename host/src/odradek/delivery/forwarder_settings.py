"""The keys of a forwarder's table that belong to the host: queue, batches, retries, timeouts."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.delivery.log_cursor import MAX_MALFORMED
from odradek.plugin.config import ConfigError
from odradek.settings.kinds import LONG, Whole
from odradek.settings.setting import setting

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwarderSettings:
    """The queue, batches and retries of one forwarder.

    Joining OTLP bodies into batches larger than the default, 40 records and 1 MiB, gains nothing.
    """

    # fmt: off
    queue_max_bytes: int = setting(
        "queue.max.bytes", Whole(LONG, 1), 64 * MIB,
        "Payload bytes that may be queued or in flight; further pushes are dropped. Used only with "
        "`telemetry.durability=memory`.", unit="bytes",
    )
    queue_max_records: int = setting(
        "queue.max.records", Whole(LONG, 1), 10_000,
        "Pushes that may be queued or in flight; further ones are dropped. Used only with "
        "`telemetry.durability=memory`.", unit="pushes",
    )
    batch_max_bytes: int = setting(
        "batch.max.bytes", Whole(LONG, 1), MIB,
        "Payload bytes per batch; a larger push is sent alone.", unit="bytes",
    )
    batch_max_records: int = setting(
        "batch.max.records", Whole(LONG, 1), 40,
        "Pushes per batch; those of one record of a topic stay together.", unit="pushes",
    )
    batch_max_age_ms: int = setting(
        "batch.max.age.ms", Whole(LONG), 1_000,
        "A batch is sent when its oldest push has waited this long.", unit="ms",
    )
    deliver_timeout_ms: int = setting(
        "deliver.timeout.ms", Whole(LONG, 1), 30_000,
        "Time limit of one attempt; a longer attempt is cancelled, counted as a failure and repeated.",
        unit="ms",
    )
    retry_backoff_ms: int = setting(
        "retry.backoff.ms", Whole(LONG, 1), 500,
        "Wait before the first retry; it doubles with each further retry, with 20 % jitter.", unit="ms",
    )
    retry_backoff_max_ms: int = setting(
        "retry.backoff.max.ms", Whole(LONG, 1), 30_000,
        "Longest wait before a retry, unless the destination asks for a longer one.", unit="ms",
    )
    retry_max_attempts: int = setting(
        "retry.max.attempts", Whole(LONG), 0,
        "Retries that the destination may ask for before a batch is given up; 0 is no limit.",
        unit="attempts",
    )
    failure_max_attempts: int = setting(
        "failure.max.attempts", Whole(LONG, 1), 5,
        "Failed attempts before a batch is split in half; a batch of one push is given up instead.",
        unit="attempts",
    )
    malformed_max_records: int = setting(
        "malformed.max.records", Whole(LONG, 1), MAX_MALFORMED,
        "Records of one batch that are no pushes and become dead letters; further ones are only counted.",
        unit="records",
    )
    # fmt: on

    def check(self) -> None:
        """Check that the values are consistent.

        Raises:
            ConfigError: They are not.
        """
        if self.batch_max_bytes > self.queue_max_bytes:
            raise ConfigError("batch.max.bytes", f"expected at most queue.max.bytes ({self.queue_max_bytes})")
        if self.retry_backoff_ms > self.retry_backoff_max_ms:
            most_ms = self.retry_backoff_max_ms
            raise ConfigError("retry.backoff.ms", f"expected at most retry.backoff.max.ms ({most_ms})")
