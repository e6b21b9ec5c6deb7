"""Participants of transactions: the logs of partitions and the offsets of groups."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from odradek.broker.topics import Topics
from odradek.group.group_offsets import GroupOffsets
from odradek.log.control_batch import TransactionMarker
from odradek.transaction.transaction_metadata import TopicPartition
from odradek.waiting.clock import Clock
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

log = logging.getLogger(__name__)

OFFSETS_TOPIC = "__consumer_offsets"
OFFSETS_PARTITIONS = 50
"""``offsets.topic.num.partitions``. The topic does not exist; its partitions represent groups."""
FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)


def offsets_partition(group_id: str) -> TopicPartition:
    """The partition that represents a group, by Kafka's rule (``GroupCoordinatorService.partitionFor``)."""
    code = 0
    units = group_id.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(units), 2):
        code = code * 31 + int.from_bytes(units[position : position + 2]) & 0xFFFFFFFF
    return OFFSETS_TOPIC, (code & 0x7FFFFFFF) % OFFSETS_PARTITIONS


@dataclass(frozen=True, slots=True)
class Participants:
    """Implements `odradek.transaction.transaction_log.TransactionParticipants` on this host."""

    topics: Topics
    offsets: GroupOffsets
    clock: Clock

    def write_marker(
        self, partition: TopicPartition, producer_id: int, producer_epoch: int, committed: bool
    ) -> None:
        """Append a transaction marker; skip partitions of deleted topics and partitions that represent
        groups.
        """
        name, index = partition
        topic = None if name == OFFSETS_TOPIC else self.topics.named(name)
        partition_log = None if topic is None else topic.partition(index)
        if partition_log is None:
            return
        try:
            partition_log.append_marker(
                TransactionMarker(producer_id, producer_epoch, committed), self.clock.now_ms()
            )
        except ApiError as error:
            if error.code not in FENCED:
                raise
            log.warning(
                "late transaction marker ignored", extra={"log": partition_log.name, "problem": str(error)}
            )

    def complete_offsets(self, producer_id: int, committed: bool) -> None:
        """Commit or drop this producer's pending offsets in every group that has some.

        Raises:
            ApiError: COORDINATOR_NOT_AVAILABLE: the offsets cannot be stored now.
        """
        groups = [
            group_id
            for group_id, producers in self.offsets.open_transactions.items()
            if producer_id in producers
        ]
        for group_id in groups:
            self.offsets.complete(producer_id, group_id, committed)
