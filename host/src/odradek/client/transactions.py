"""A producer whose batches appear together or not at all.

It uses the first version of Kafka's transactions (KIP-98), which all brokers know. A producer with the same
transactional id ends the transactions of an older one, which cannot commit any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from odradek.client.admin import AdminClient
from odradek.client.coordinators import Coordinated, KeyType
from odradek.client.errors import ClientError, RequestFailed, check
from odradek.client.leaders import Partition, by_topic, partition_text
from odradek.client.producer import ALL, Producer
from odradek.client.retries import Retries
from odradek.wire.compression import Codec
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from odradek.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.wire.record import Record

LAST_CLIENT_VERSION: Final = 3
"""Of AddPartitionsToTxn: later ones are for brokers."""
LAST_FIRST_PROTOCOL_VERSION: Final = 4
"""Of EndTxn and InitProducerId: later ones use the second protocol of transactions (KIP-890)."""
FIRST_PAUSE_S: Final = 0.005
LONGEST_PAUSE_S: Final = 0.02
"""Pauses while the coordinator ends the previous transaction. The longest is that of Kafka's producer."""
TIMEOUT_MS: Final = 60_000
"""The coordinator aborts a transaction that is open for longer. Kafka's default."""
FENCED: Final = (
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
)
"""Another producer has the transactional id now."""
Value = TypeVar("Value")


class TransactionalProducer(Producer):
    """Appends batches in transactions. After an error of `commit`, make another one.

    Args:
        admin: The client whose connections are used. It closes them.
        transactional_id: The id. A producer that had it before is fenced.
        codec: Compression of the batches.
    """

    transactional_id: str

    def __init__(self, admin: AdminClient, transactional_id: str, codec: Codec = Codec.NONE) -> None:
        self.transactional_id = transactional_id
        self.coordinator = Coordinated(admin.cluster, transactional_id, KeyType.TRANSACTION)
        self.patient = Retries(
            admin.retries.timeout_s, first_pause_s=FIRST_PAUSE_S, longest_pause_s=LONGEST_PAUSE_S
        )
        super().__init__(admin, ALL, codec)

    def new_identity(self) -> tuple[int, int]:
        """The producer id of the transactional id, and its next epoch."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=TIMEOUT_MS
        )
        response: InitProducerIdResponse = self.asked(
            lambda: self.coordinator.send(request, most_version=LAST_FIRST_PROTOCOL_VERSION)
        )
        check(response.error_code, subject=self.transactional_id)
        return response.producer_id, response.producer_epoch

    def commit(self, parts: Sequence[Mapping[Partition, Sequence[Record]]]) -> None:
        """Append records in one transaction.

        Args:
            parts: At least one. Each has one batch of a partition, in the order of the partition.

        Raises:
            RequestFailed: The transaction was refused, or no broker answered in time. It may be open, or
                committed.
        """
        partitions = dict.fromkeys(partition for part in parts for partition in part)
        self.patient.settle(lambda: self.add(partitions))
        for part in parts:
            self.send(part)
        self.patient.settle(self.end)

    def add(self, partitions: Iterable[Partition]) -> None:
        """Begin a transaction of these partitions."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=indexes)
                for topic, indexes in by_topic(partitions).items()
            ],
        )
        response: AddPartitionsToTxnResponse = self.asked(
            lambda: self.coordinator.send(request, most_version=LAST_CLIENT_VERSION)
        )
        for topic in response.results_by_topic_v3_and_below:
            for row in topic.results_by_partition:
                if row.partition_error_code == ErrorCode.NOT_COORDINATOR:
                    self.coordinator.node = None
                check(row.partition_error_code, subject=partition_text((topic.name, row.partition_index)))

    def end(self) -> None:
        """Commit the open transaction."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            committed=True,
        )
        response: EndTxnResponse = self.asked(
            lambda: self.coordinator.send(request, most_version=LAST_FIRST_PROTOCOL_VERSION)
        )
        check(response.error_code, subject=self.transactional_id)

    def asked(self, ask: Callable[[], Value]) -> Value:
        """Return the answer. A broken connection is a temporary refusal, as in Kafka."""
        try:
            return ask()
        except RequestFailed:
            raise
        except ClientError as error:
            raise RequestFailed(ErrorCode.NETWORK_EXCEPTION, str(error)) from error
