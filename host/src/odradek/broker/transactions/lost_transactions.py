"""Abort the transactions that the coordinator has lost with its metadata.

Nothing else would ever end them, and ``read_committed`` consumers would stop at them.
"""

from __future__ import annotations

import logging

from odradek.log.control_batch import TransactionMarker
from odradek.log.log_manager import LogManager
from odradek.metadata.store import TRANSACTIONS_LOST, MetadataStore

log = logging.getLogger(__name__)


def abort_lost(metadata: MetadataStore, logs: LogManager, now_ms: int) -> None:
    """After a recovery of the metadata, abort the transactions that are open in the logs, once.

    Raises:
        ApiError: KAFKA_STORAGE_ERROR; the next start tries again.
    """
    if not metadata.value(TRANSACTIONS_LOST):
        return
    for each in logs:
        for producer_id, epoch in each.producers.open_transactions():
            log.warning(
                "aborting a transaction whose coordinator state is lost",
                extra={"log": each.name, "producer_id": producer_id},
            )
            each.append_marker(TransactionMarker(producer_id, epoch, committed=False), now_ms)
    metadata.put_value(TRANSACTIONS_LOST, "")
