"""Exports client metrics to topics of a Kafka cluster, or of the host itself, and brings them in again.

It can also be the place where a host keeps them.
"""

from __future__ import annotations

from odradek.plugin import Forwarder, PluginConfig, Source, TopicWriter, hookimpl
from odradek.temporality import read_totals


@hookimpl
def odradek_forwarder(config: PluginConfig) -> Forwarder | None:
    """Read the table; None if it has no ``bootstrap.servers``.

    Raises:
        ConfigError: A key has an invalid value, or librdkafka refuses a client option; the error names it.
    """
    if config.text("bootstrap.servers") is None:
        return None
    # Imported here, so that a host with an installed but unconfigured plugin does not pay for them.
    from odradek_kafka.kafka_forwarder import KafkaForwarder
    from odradek_kafka.kafka_settings import read_settings

    totals = read_totals(config)
    forwarder = KafkaForwarder(read_settings(config))
    if totals is None:
        return forwarder
    from odradek.temporality import CumulativeForwarder

    return CumulativeForwarder(forwarder, totals)


@hookimpl
def odradek_source(config: PluginConfig) -> Source | None:
    """Read the table; None if it has no ``source.bootstrap.servers``.

    Raises:
        ConfigError: A key has an invalid value, or librdkafka refuses a client option; the error names it.
    """
    if config.text("source.bootstrap.servers") is None:
        return None
    from odradek_kafka.kafka_source import KafkaSource
    from odradek_kafka.source_settings import read_source_settings

    return KafkaSource(read_source_settings(config))


@hookimpl
def odradek_topic_writer(config: PluginConfig) -> TopicWriter | None:
    """Read the table; None if it has no ``telemetry.bootstrap.servers``.

    Raises:
        ConfigError: A key has an invalid value, or librdkafka refuses a client option; the error names it.
    """
    if config.text("telemetry.bootstrap.servers") is None:
        return None
    from odradek_kafka.kafka_topic_writer import KafkaTopicWriter
    from odradek_kafka.writer_settings import read_writer_settings

    return KafkaTopicWriter(read_writer_settings(config))
