"""The settings of the writer of the telemetry topic, read from the table ``telemetry`` inside the plugin's
table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from confluent_kafka import Producer

from odradek.plugin import PluginConfig
from odradek_kafka.client_options import (
    DEFAULTS,
    OURS,
    ClientKind,
    given_options,
    try_options,
    without_token_file,
)
from odradek_kafka.kafka_settings import broker_default, servers

SERVERS = "telemetry.bootstrap.servers"
OF_HOST = "belongs to the host, as telemetry.acknowledge.timeout.ms"
WRITER = ClientKind(
    "telemetry.client.",
    {
        **DEFAULTS,
        "client.id": "odradek-kafka-telemetry",
        # A push waits for its answer: after an outage, connect within a second.
        "reconnect.backoff.max.ms": "1000",
    },
    {
        **OURS,
        "bootstrap.servers": "belongs to the table telemetry, as telemetry.bootstrap.servers",
        "metadata.broker.list": "belongs to the table telemetry, as telemetry.bootstrap.servers",
        "acks": "a push is answered when all replicas in sync have it",
        "request.required.acks": "a push is answered when all replicas in sync have it",
        "enable.idempotence": "a retry must not write a push twice",
        "delivery.timeout.ms": OF_HOST,
        "message.timeout.ms": OF_HOST,
    },
    Producer,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterSettings:
    """The cluster of the telemetry topic."""

    options: Mapping[str, str] = field(repr=False)
    """All options of librdkafka but the time-out. May hold secrets."""
    topic_create: bool = True
    topic_partitions: int = -1
    """-1 is the broker's default, here and for the replication factor."""
    topic_replication_factor: int = -1
    liveness_topic: None = None


def read_writer_settings(config: PluginConfig) -> WriterSettings:
    """Read the table, which has ``telemetry.bootstrap.servers``.

    Raises:
        ConfigError: A value is invalid; names the key.
    """
    return WriterSettings(
        options=read_writer_options(config, servers(config, SERVERS)),
        topic_create=config.boolean("telemetry.topic.create", default=True),
        topic_partitions=broker_default(config, "telemetry.topic.partitions", 10_000),
        topic_replication_factor=broker_default(config, "telemetry.topic.replication.factor", 32_767),
    )


def read_writer_options(config: PluginConfig, bootstrap: str) -> dict[str, str]:
    """The options of the producer.

    Raises:
        ConfigError: An option is invalid; names it.
    """
    given = given_options(config, WRITER)
    options = {**WRITER.defaults, **given, "bootstrap.servers": bootstrap, "acks": "all"}
    table = PluginConfig(config.path + ".telemetry.client", given)
    try_options(config, WRITER, without_token_file(table, options))
    return options
