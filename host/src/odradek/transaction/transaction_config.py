"""Configuration of the transaction coordinator, in Kafka's keys (TransactionStateManagerConfig.java)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionConfig:
    """Times of the coordinator, all in milliseconds."""

    transaction_max_timeout_ms: int = 900_000
    """The longest time-out a producer may ask for."""
    transactional_id_expiration_ms: int = 604_800_000
    """An id without a transaction is forgotten after that."""
    abort_timed_out_interval_ms: int = 10_000
    """``transaction.abort.timed.out.transaction.cleanup.interval.ms``."""
    remove_expired_interval_ms: int = 3_600_000
    """``transaction.remove.expired.transaction.cleanup.interval.ms``."""
