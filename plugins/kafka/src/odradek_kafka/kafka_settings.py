"""The settings of the exporter, read from the plugin's table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from odradek.plugin import ConfigError, PluginConfig
from odradek.settings import INT, TEXT, Choice, Flag, Special, Whole, declare
from odradek.settings import read_settings as read_declared
from odradek_kafka.client_options import read_client_options
from odradek_kafka.topic_names import TopicTemplate, read_template

SERVER = re.compile(r"(\w+://)?(\[[0-9a-fA-F:]+\]|[^\s:/\[\]]+)(:[0-9]{1,5})?")
"""One of ``bootstrap.servers``, in librdkafka's syntax."""
DEFAULT_TOPIC = "client_telemetry"


class Encoding(StrEnum):
    """Encoding of a record's value; the names are those of the collector's kafkareceiver."""

    PROTO = "otlp_proto"
    JSON = "otlp_json"


class Key(StrEnum):
    """Key of a record: records with the same key stay in order and in one partition."""

    CLIENT_INSTANCE_ID = "client_instance_id"
    CLIENT_ID = "client_id"
    NONE = "none"


def servers(config: PluginConfig, key: str = "bootstrap.servers") -> str:
    """Read the addresses of a cluster: ``host:port``, several with commas."""
    found = config.texts(key)
    if not found or not all(SERVER.fullmatch(server) for server in found):
        raise config.error(key, f"expected HOST:PORT,HOST:PORT, found {','.join(found)!r}")
    return ",".join(found)


def template(config: PluginConfig, key: str = "topic") -> TopicTemplate:
    """Read the name of a topic, with a label in it or without."""
    try:
        return read_template(config.text(key, DEFAULT_TOPIC) or "")
    except ValueError as error:
        raise config.error(key, str(error)) from None


def liveness_topic(config: PluginConfig, key: str) -> str:
    """Read the name of the liveness topic, which has no label in it."""
    found = template(config, key)
    if found.label is not None:
        raise config.error(key, f"expected a topic name, found {config.text(key)!r}")
    return config.text(key) or ""


@dataclass(frozen=True, slots=True)
class BrokerDefault:
    """Reads a number from 1 to ``most``, or -1 for the broker's default (KIP-464)."""

    most: int

    def __call__(self, config: PluginConfig, key: str) -> int:
        number = config.integer(key, -1, least=-1, most=self.most)
        if number == 0:
            raise config.error(key, f"expected 1 to {self.most}, or -1 for the broker's default, found 0")
        return number


SERVERS: Final = Special(shape="`HOST:PORT`, several with commas", read=servers)
PARTITIONS: Final = Special(shape="integer, 1 to 10000, or -1", read=BrokerDefault(10_000))
REPLICATION: Final = Special(shape="integer, 1 to 32767, or -1", read=BrokerDefault(32_767))


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSettings:
    """One cluster and its topics."""

    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """All options of librdkafka. May hold secrets."""
    deliver_timeout_ms: int = 30_000
    """The host cancels a call of ``deliver`` after this time."""
    # fmt: off
    bootstrap_servers: str | None = declare(
        "bootstrap.servers", SERVERS, None,
        "The cluster; may be the host's own listener.", unset="none: the plugin is inactive",
    )
    command_config: str | None = declare(
        "command.config", TEXT, None,
        "File with `security.protocol`, `sasl.*` and `ssl.*` as Java clients have them, such as that of "
        "`gateway.upstream.command.config`; what is below `client.` wins.", unset="none",
    )
    topic: TopicTemplate = declare(
        "topic", Special(shape="text", read=template), TopicTemplate(DEFAULT_TOPIC),
        "A name, or a name with one label in it, see below.", unset=f"`{DEFAULT_TOPIC}`",
    )
    topic_max_count: int = declare(
        "topic.max.count", Whole(INT, 1, 1_000), 32,
        "Limit of topics that label values create; further values share one more topic, named with `other` "
        "instead of the label.", unit="topics",
    )
    topic_create: bool = declare(
        "topic.create", Flag(), True,
        "Whether missing topics are created; if the cluster forbids it, create them yourself.",
    )
    topic_partitions: int = declare(
        "topic.partitions", PARTITIONS, -1, "Partitions of created topics; -1 is the broker's default.",
        unit="partitions",
    )
    topic_replication_factor: int = declare(
        "topic.replication.factor", REPLICATION, -1,
        "Replication factor of created topics; -1 is the broker's default.", unit="replicas",
    )
    liveness_topic: str | None = declare(
        "liveness.topic", Special(shape="text", read=liveness_topic), None,
        "A compacted topic with one record per client instance, see below.", unset="none",
    )
    encoding: Encoding = declare(
        "encoding", Choice({each.value: each for each in Encoding}), Encoding.PROTO,
        "A serialized MetricsData, unchanged, or OTLP/JSON.",
    )
    key: Key = declare(
        "key", Choice({each.value: each for each in Key}), Key.CLIENT_INSTANCE_ID,
        "The key of a record: 22 characters as Kafka prints the id, the client id, or none.",
    )
    # fmt: on

    def check(self) -> None:
        """Refuse a liveness topic that pushes go to.

        Raises:
            ConfigError: They may.
        """
        text = self.liveness_topic
        if text is not None and self.topic.can_be(text):
            raise ConfigError("liveness.topic", f"expected a topic that no push goes to, found {text!r}")


def read_settings(config: PluginConfig) -> KafkaSettings:
    """Read the table, which has ``bootstrap.servers``.

    Raises:
        ConfigError: A value is invalid; names the key.
    """
    found = read_declared(KafkaSettings, config)
    deliver_timeout_ms = config.integer("deliver.timeout.ms", found.deliver_timeout_ms, least=1)
    options = read_client_options(config, servers(config), deliver_timeout_ms)
    return replace(found, deliver_timeout_ms=deliver_timeout_ms, options=options)
