"""The telemetry topic of a host, filled by a plain producer."""

from __future__ import annotations

import random
from collections.abc import Iterable

from confluent_kafka import Producer
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from spark_payloads import TIME_NS, topic_record

from odradek_spark.source.options import ReadOptions, read_options
from odradek_tables.decoder.topic_record import TopicRecord

TOPIC = "telemetry"


def payload(number: int, points: int = 3) -> bytes:
    """Gauges whose values identify their push."""
    data = MetricsData()
    metrics = data.resource_metrics.add().scope_metrics.add().metrics
    for index in range(points):
        point = metrics.add(name=f"org.apache.kafka.producer.metric.{index}").gauge.data_points.add()
        point.time_unix_nano = TIME_NS + number
        point.as_double = number + index / 10
    return data.SerializeToString()


def records(count: int, first: int = 0, partitions: int = 1) -> list[TopicRecord]:
    """Pushes of a few clients, spread over the partitions."""
    return [
        topic_record(payload(number), partition=number % partitions, client=1 + number % 5)
        for number in range(first, first + count)
    ]


def fill(bootstrap: str, found: Iterable[TopicRecord], topic: str = TOPIC, **client: str) -> None:
    """Write records into an existing topic; ``client`` is more options of librdkafka."""
    ours = {"bootstrap.servers": bootstrap, "enable.metrics.push": False, "linger.ms": 5}
    producer = Producer(ours | client)
    for each in found:
        producer.produce(topic, each.value, each.key, partition=each.partition, headers=[*each.headers])
    assert producer.flush(20) == 0
    producer.close()


def options(bootstrap: str, **more: str) -> ReadOptions:
    """The options of a reader of the topic."""
    return read_options({"kafka.bootstrap.servers": bootstrap, "subscribe": TOPIC, **more})


def random_order(found: list[TopicRecord], seed: int) -> list[TopicRecord]:
    """The same records, shuffled."""
    return random.Random(seed).sample(found, len(found))
