"""Settings of the transaction coordinator (TransactionStateManagerConfig.java)."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.settings.kinds import INT, Whole
from odradek.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionConfig:
    """Times of the transaction coordinator, in milliseconds."""

    # fmt: off
    transaction_max_timeout_ms: int = setting(
        "transaction.max.timeout.ms", Whole(INT, 1), 900_000,
        "Longest transaction timeout that a producer may ask for.", unit="ms",
    )
    transactional_id_expiration_ms: int = setting(
        "transactional.id.expiration.ms", Whole(INT, 1), 604_800_000,
        "A transactional id without an open transaction is forgotten after this time.", unit="ms",
    )
    max_ids: int = setting(
        "transactional.ids.max", Whole(INT, 1), 50_000,
        "Most transactional ids; one that is not used is forgotten after `transactional.id.expiration.ms`.",
        unit="ids",
    )
    max_partitions: int = setting(
        "transaction.partitions.max", Whole(INT, 1), 1_000_000,
        "Most partitions of all open transactions together.", unit="partitions",
    )
    abort_timed_out_interval_ms: int = setting(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms", Whole(INT, 1), 10_000,
        "How often the host looks for transactions that exceeded their timeout.", unit="ms",
    )
    remove_expired_interval_ms: int = setting(
        "transaction.remove.expired.transaction.cleanup.interval.ms", Whole(INT, 1), 3_600_000,
        "How often the host looks for expired transactional ids.", unit="ms",
    )
    # fmt: on
