"""The telemetry topic of a program that has stopped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from odradek.plugin import TelemetryRecord
from odradek.topic import decode_record
from support.hosts import running_host

TOPIC = "__client_telemetry"


def read_back(directory: Path) -> Iterator[TelemetryRecord]:
    """All records of the telemetry topic in a data directory."""
    import kafka

    with running_host(directory) as host:
        consumer = kafka.KafkaConsumer(bootstrap_servers=host.bootstrap, auto_offset_reset="earliest")
        partitions = consumer.partitions_for_topic(TOPIC)
        assert partitions
        topic = [kafka.TopicPartition(TOPIC, index) for index in sorted(partitions)]
        consumer.assign(topic)
        ends: dict[Any, int] = consumer.end_offsets(topic)
        while any(consumer.position(each) < ends[each] for each in topic):
            for records in consumer.poll(10_000).values():
                for record in records:
                    yield decode_record(record.key, record.value, record.headers)
        consumer.close()
