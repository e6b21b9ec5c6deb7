"""The keys of a forwarder's table that belong to the host: queue, batches, retries, time-outs."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.plugin.config import PluginConfig

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwarderSettings:
    """How one forwarder is driven.

    The default batch, 40 records and 1 MiB, is where joining bodies for OTLP stops paying off.
    """

    queue_max_bytes: int = 64 * MIB
    """Payload bytes that may wait or be on their way; the newest record is dropped beyond that."""
    queue_max_records: int = 10_000
    batch_max_bytes: int = MIB
    """A larger record travels alone."""
    batch_max_records: int = 40
    batch_max_age_ms: int = 1_000
    """A batch that is not full leaves when its oldest record has waited this long."""
    deliver_timeout_ms: int = 30_000
    """One call of ``start`` or ``deliver``; what takes longer is cancelled and counts as a failure."""
    retry_backoff_ms: int = 500
    """Wait before the first retry; doubled each time, 20 % jitter."""
    retry_backoff_max_ms: int = 30_000
    retry_max_attempts: int = 0
    """Retries of a batch that the far side asked for, then it is given up; 0 is no bound."""
    failure_max_attempts: int = 5
    """Calls of ``deliver`` for one batch that raised, then it is halved; a single record is given up."""


def read_settings(config: PluginConfig) -> ForwarderSettings:
    """Settings out of ``[plugins.<name>]``.

    Raises:
        ConfigError: A value is not a number or out of range.
    """
    default = ForwarderSettings()
    settings = ForwarderSettings(
        queue_max_bytes=config.integer("queue.max.bytes", default.queue_max_bytes, least=1),
        queue_max_records=config.integer("queue.max.records", default.queue_max_records, least=1),
        batch_max_bytes=config.integer("batch.max.bytes", default.batch_max_bytes, least=1),
        batch_max_records=config.integer("batch.max.records", default.batch_max_records, least=1),
        batch_max_age_ms=config.integer("batch.max.age.ms", default.batch_max_age_ms),
        deliver_timeout_ms=config.integer("deliver.timeout.ms", default.deliver_timeout_ms, least=1),
        retry_backoff_ms=config.integer("retry.backoff.ms", default.retry_backoff_ms, least=1),
        retry_backoff_max_ms=config.integer("retry.backoff.max.ms", default.retry_backoff_max_ms, least=1),
        retry_max_attempts=config.integer("retry.max.attempts", default.retry_max_attempts),
        failure_max_attempts=config.integer("failure.max.attempts", default.failure_max_attempts, least=1),
    )
    if settings.batch_max_bytes > settings.queue_max_bytes:
        most = settings.queue_max_bytes
        raise config.error("batch.max.bytes", f"expected at most queue.max.bytes ({most})")
    if settings.retry_backoff_ms > settings.retry_backoff_max_ms:
        most = settings.retry_backoff_max_ms
        raise config.error("retry.backoff.ms", f"expected at most retry.backoff.max.ms ({most})")
    return settings
