"""Where to export, and how: the plugin's table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from odradek.plugin import PluginConfig
from odradek_kafka.client_options import read_client_options
from odradek_kafka.topic_names import TopicTemplate, read_template

SERVER = re.compile(r"(\w+://)?(\[[0-9a-fA-F:]+\]|[^\s:/\[\]]+)(:[0-9]{1,5})?")
"""As librdkafka reads one of ``bootstrap.servers``."""
DEFAULT_TOPIC = "client_telemetry"


class Encoding(StrEnum):
    """Of a record's value; the names are those of the collector's kafkareceiver."""

    PROTO = "otlp_proto"
    JSON = "otlp_json"


class Key(StrEnum):
    """Of a record: what stays in order and in one partition."""

    CLIENT_INSTANCE_ID = "client_instance_id"
    CLIENT_ID = "client_id"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSettings:
    """One cluster and the topics there."""

    options: Mapping[str, str] = field(repr=False)
    """Of librdkafka, complete. May hold secrets."""
    topic: TopicTemplate = field(default_factory=lambda: TopicTemplate(DEFAULT_TOPIC))
    topic_max_count: int = 32
    """Topics that a label may make, ``other`` not counted."""
    topic_create: bool = True
    topic_partitions: int = -1
    """-1 leaves it to the broker (KIP-464), here and below."""
    topic_replication_factor: int = -1
    liveness_topic: str | None = None
    encoding: Encoding = Encoding.PROTO
    key: Key = Key.CLIENT_INSTANCE_ID
    deliver_timeout_ms: int = 30_000
    """The host cancels a call of ``deliver`` after that."""


def read_settings(config: PluginConfig) -> KafkaSettings:
    """The table; ``bootstrap.servers`` is there.

    Raises:
        ConfigError: A value makes no sense; names the key.
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


def servers(config: PluginConfig) -> str:
    """``host:port``, several with commas."""
    found = config.texts("bootstrap.servers")
    if not found or not all(SERVER.fullmatch(server) for server in found):
        raise config.error("bootstrap.servers", f"expected HOST:PORT,HOST:PORT, found {','.join(found)!r}")
    return ",".join(found)


def template(config: PluginConfig) -> TopicTemplate:
    try:
        return read_template(config.text("topic", DEFAULT_TOPIC) or "")
    except ValueError as error:
        raise config.error("topic", str(error)) from None


def liveness_topic(config: PluginConfig, topic: TopicTemplate) -> str | None:
    """A plain name that no push is written to."""
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
        raise config.error("liveness.topic", f"expected another topic than that of pushes, found {text!r}")
    return text


def broker_default(config: PluginConfig, key: str, most: int) -> int:
    """A number from 1, or -1."""
    number = config.integer(key, -1, least=-1, most=most)
    if number == 0:
        raise config.error(key, f"expected 1 to {most}, or -1 for the broker's default, found 0")
    return number
