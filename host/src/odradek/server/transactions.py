"""The transaction coordinator of a host: its share of the configuration, and its making."""

from __future__ import annotations

from odradek.broker.topics import Topics
from odradek.broker.transactions.transaction_participants import Participants
from odradek.clock import Clock, Timer
from odradek.group.group_offsets import GroupOffsets
from odradek.plugin.config import PluginConfig
from odradek.server.upkeep.storage import Storage
from odradek.transaction.transaction_config import TransactionConfig
from odradek.transaction.transaction_coordinator import TransactionCoordinator

INT32_MAX = 2**31 - 1


def read_transactions(top: PluginConfig) -> TransactionConfig:
    """Kafka's keys for transactions, with its defaults."""
    return TransactionConfig(
        transaction_max_timeout_ms=top.integer("transaction.max.timeout.ms", 900_000, 1, INT32_MAX),
        transactional_id_expiration_ms=top.integer(
            "transactional.id.expiration.ms", 604_800_000, 1, INT32_MAX
        ),
        abort_timed_out_interval_ms=top.integer(
            "transaction.abort.timed.out.transaction.cleanup.interval.ms", 10_000, 1, INT32_MAX
        ),
        remove_expired_interval_ms=top.integer(
            "transaction.remove.expired.transaction.cleanup.interval.ms", 3_600_000, 1, INT32_MAX
        ),
    )


def make_transactions(
    config: TransactionConfig,
    clock: Clock,
    timer: Timer,
    storage: Storage,
    topics: Topics,
    offsets: GroupOffsets,
) -> TransactionCoordinator:
    """A coordinator that has not been started."""
    return TransactionCoordinator(
        config=config,
        clock=clock,
        timer=timer,
        store=storage.transactions,
        participants=Participants(topics, offsets, clock),
        new_producer_id=storage.metadata.allocate_producer_id,
    )
