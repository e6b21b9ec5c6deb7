"""The settings of the exporter, read from the plugin's table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from odradek.plugin import PluginConfig
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


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSettings:
    """One cluster and its topics."""

    options: Mapping[str, str] = field(repr=False)
    """All options of librdkafka. May hold secrets."""
    topic: TopicTemplate = field(default_factory=lambda: TopicTemplate(DEFAULT_TOPIC))
    topic_max_count: int = 32
    """Limit of topics that values of the label create, besides the one for ``other``."""
    topic_create: bool = True
    topic_partitions: int = -1
    """-1 is the broker's default (KIP-464), here and for the replication factor."""
    topic_replication_factor: int = -1
    liveness_topic: str | None = None
    encoding: Encoding = Encoding.PROTO
    key: Key = Key.CLIENT_INSTANCE_ID
    deliver_timeout_ms: int = 30_000
    """The host cancels a call of ``deliver`` after this time."""


def read_settings(config: PluginConfig) -> KafkaSettings:
    """Read the table, which has ``bootstrap.servers``.

    Raises:
        ConfigError: A value is invalid; names the key.
    """
    deliver_timeout_ms = config.integer("deliver.timeout.ms", 30_000, least=1)
    topic = template(config)
    return KafkaSettings(
        topic=topic,
        topic_max_count=config.integer("topic.max.count", 32, least=1, most=1000),
        topic_create=config.boolean("topic.create", default=True),
        topic_partitions=broker_default(config, "topic.partitions", 10_000),
        topic_replication_factor=broker_default(config, "topic.replication.factor", 32_767),
        liveness_topic=liveness_topic(config, topic),
        encoding=Encoding(config.choice("encoding", Encoding.PROTO, list(Encoding))),
        key=Key(config.choice("key", Key.CLIENT_INSTANCE_ID, list(Key))),
        deliver_timeout_ms=deliver_timeout_ms,
        options=read_client_options(config, servers(config), deliver_timeout_ms),
    )


def servers(config: PluginConfig, key: str = "bootstrap.servers") -> str:
    """Read the addresses of a cluster: ``host:port``, several with commas."""
    found = config.texts(key)
    if not found or not all(SERVER.fullmatch(server) for server in found):
        raise config.error(key, f"expected HOST:PORT,HOST:PORT, found {','.join(found)!r}")
    return ",".join(found)


def template(config: PluginConfig) -> TopicTemplate:
    try:
        return read_template(config.text("topic", DEFAULT_TOPIC) or "")
    except ValueError as error:
        raise config.error("topic", str(error)) from None


def liveness_topic(config: PluginConfig, topic: TopicTemplate) -> str | None:
    """Read the name of the liveness topic, which must differ from all topics of pushes."""
    text = config.text("liveness.topic")
    if text is None:
        return None
    try:
        found = read_template(text)
    except ValueError as error:
        raise config.error("liveness.topic", str(error)) from None
    if found.label is not None:
        raise config.error("liveness.topic", f"expected a topic name, found {text!r}")
    if topic.can_be(text):
        raise config.error("liveness.topic", f"expected a topic that no push goes to, found {text!r}")
    return text


def broker_default(config: PluginConfig, key: str, most: int) -> int:
    """Read a number from 1 to ``most``, or -1."""
    number = config.integer(key, -1, least=-1, most=most)
    if number == 0:
        raise config.error(key, f"expected 1 to {most}, or -1 for the broker's default, found 0")
    return number
