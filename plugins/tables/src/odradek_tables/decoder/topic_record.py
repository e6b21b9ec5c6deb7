"""A record of the topic. Every planner of Spark imports it, so nothing else is imported here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Header = tuple[str, bytes | None]


class TopicRecord(NamedTuple):
    """One record, as a Kafka client returns it."""

    partition: int
    offset: int
    timestamp_ms: int
    """The record's timestamp, epoch milliseconds."""
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header]
    timestamp_type: int = 0
    """0 if the producer set the timestamp, 1 if the broker did, -1 without a timestamp."""
