"""The settings of the writer of the telemetry topic, read from the table ``telemetry`` inside the plugin's
table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from confluent_kafka import Producer

from odradek.plugin import PluginConfig
from odradek.settings import TEXT, Flag, declare, read_settings
from odradek_kafka import kafka_settings
from odradek_kafka.client_options import (
    DEFAULTS,
    OURS,
    ClientKind,
    given_options,
    try_options,
    without_token_file,
)
from odradek_kafka.kafka_settings import PARTITIONS, REPLICATION, servers

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

    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """All options of librdkafka but the time-out. May hold secrets."""
    liveness_topic: None = None
    # fmt: off
    bootstrap_servers: str | None = declare(
        SERVERS, kafka_settings.SERVERS, None, "The cluster.", unset="none: the plugin does not write",
    )
    command_config: str | None = declare(
        "telemetry.command.config", TEXT, None,
        "File with `security.protocol`, `sasl.*` and `ssl.*` as Java clients have them, such as that of "
        "`gateway.upstream.command.config`; what is below `telemetry.client.` wins.", unset="none",
    )
    topic_create: bool = declare(
        "telemetry.topic.create", Flag(), True,
        "Whether the topic (`telemetry.topic.name` of the host) is created if it is missing.",
    )
    topic_partitions: int = declare(
        "telemetry.topic.partitions", PARTITIONS, -1,
        "Partitions of the created topic; -1 is the broker's default.", unit="partitions",
    )
    topic_replication_factor: int = declare(
        "telemetry.topic.replication.factor", REPLICATION, -1,
        "Its replication factor; -1 is the broker's default.", unit="replicas",
    )
    # fmt: on


def read_writer_settings(config: PluginConfig) -> WriterSettings:
    """Read the table, which has ``telemetry.bootstrap.servers``.

    Raises:
        ConfigError: A value is invalid; names the key.
    """
    found = read_settings(WriterSettings, config)
    return replace(found, options=read_writer_options(config, servers(config, SERVERS)))


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
