"""Requests to produce to one topic and to fetch from it."""

from __future__ import annotations

from typing import Any

from odradek.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def produce_request(
    topic: str, *batches: bytes, topic_id: bytes = bytes(16), index: int = 0, **fields: Any
) -> ProduceRequest:
    """A batch for each partition, from ``index`` on. The answer comes when they are stored."""
    rows = [PartitionProduceData(index=number, records=batch) for number, batch in enumerate(batches, index)]
    data = TopicProduceData(name=topic, topic_id=topic_id, partition_data=rows)
    return ProduceRequest(**{"acks": -1, "timeout_ms": 5_000, "topic_data": [data], **fields})


def fetch_request(
    topic: str, *offsets: int, topic_id: bytes = bytes(16), most: int = 1 << 20, **fields: Any
) -> FetchRequest:
    """The records of each partition from its offset on; by default of partition 0 from the start, at once.

    Args:
        topic: The name.
        offsets: One for each partition.
        topic_id: The id, for the versions that have no name.
        most: The bytes of each partition, and of the answer.
        fields: More fields of the request.
    """
    rows = [
        FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=most)
        for number, offset in enumerate(offsets or [0])
    ]
    wanted = FetchTopic(topic=topic, topic_id=topic_id, partitions=rows)
    return FetchRequest(**{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": most, "topics": [wanted], **fields})
