"""The settings of the source, read from the table ``source`` inside the plugin's table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from confluent_kafka import Consumer

from odradek.plugin import PluginConfig
from odradek.settings import INT, TEXT, Choice, Special, Whole, declare, read_settings
from odradek.topic import TopicFormat
from odradek_kafka.client_options import ClientKind, given_options, try_options, without_token_file
from odradek_kafka.kafka_settings import DEFAULT_TOPIC, servers, template
from odradek_kafka.kafka_settings import SERVERS as ADDRESSES
from odradek_kafka.topic_names import LEGAL_NAME

SERVERS = "source.bootstrap.servers"
WRITER_SERVERS = "telemetry.bootstrap.servers"
TELEMETRY_TOPIC = "__client_telemetry"
DEFAULT_GROUP = "odradek.source"
DEFAULTS: Mapping[str, str] = {
    "client.id": "odradek-kafka-source",
    # A source that reads its own host would receive its own metrics as pushes.
    "enable.metrics.push": "false",
    "auto.offset.reset": "earliest",
    # Memory for records that were read ahead, in KiB; librdkafka's default is 64 MiB.
    "queued.max.messages.kbytes": "16384",
    # For the metric of the lag.
    "statistics.interval.ms": "1000",
}
OURS = {
    "bootstrap.servers": "belongs to the table source, as source.bootstrap.servers",
    "metadata.broker.list": "belongs to the table source, as source.bootstrap.servers",
    "group.id": "belongs to the table source, as source.group.id",
    "enable.auto.commit": "the plugin commits what is stored",
    "enable.auto.offset.store": "the plugin commits what is stored",
}


def consumer(options: Mapping[str, str], **rest: object) -> None:
    """Create a consumer for a check of its options, and close it."""
    Consumer({"group.id": DEFAULT_GROUP, **options}, **rest).close()


CONSUMER = ClientKind("source.client.", DEFAULTS, OURS, consumer)


def topics(config: PluginConfig, key: str = "source.topics") -> tuple[str, ...]:
    """Read the names of the topics; ``__client_telemetry`` of a host is one too."""
    found = config.texts(key, [DEFAULT_TOPIC])
    bad = [name for name in found if not LEGAL_NAME.fullmatch(name) or name in (".", "..")]
    if bad or not found:
        raise config.error(key, f"expected names of topics, found {','.join(bad or found)!r}")
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """The topics of one cluster, and how they are read."""

    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """All options of librdkafka. May hold secrets."""
    formats: Mapping[str, TopicFormat] = field(default_factory=dict)
    """The formats of topics that do not have the default one."""
    # fmt: off
    bootstrap_servers: str | None = declare(
        SERVERS, ADDRESSES, None, "The cluster.", unset="none: nothing is read",
    )
    command_config: str | None = declare(
        "source.command.config", TEXT, None,
        "File with `security.protocol`, `sasl.*` and `ssl.*` as Java clients have them, such as that of "
        "`gateway.upstream.command.config`; what is below `source.client.` wins.", unset="none",
    )
    topics: tuple[str, ...] = declare(
        "source.topics", Special(shape="list", read=topics), (DEFAULT_TOPIC,),
        "Names of topics; `__client_telemetry` of another host is one too.",
    )
    group_id: str = declare(
        "source.group.id", TEXT, DEFAULT_GROUP, "Hosts with the same group share the partitions.",
    )
    batch_max_records: int = declare(
        "source.batch.max.records", Whole(INT, 1, 10_000), 500,
        "Records that are stored, then committed, together.", unit="records",
    )
    default_format: TopicFormat = declare(
        "source.format", Choice({each.value: each for each in TopicFormat}), TopicFormat.ODRADEK,
        "The format of the topics: `odradek`, the records above; the others, see below.",
    )
    interval_ms: int = declare(
        "source.interval.ms", Whole(INT, 1), 60_000,
        "Stands for the push interval, which OTLP does not tell; the time after which silence counts depends "
        "on it.", unit="ms",
    )
    # fmt: on

    def format_of(self, topic: str) -> TopicFormat:
        """The format of a topic's records."""
        return self.formats.get(topic, self.default_format)


def read_source_settings(config: PluginConfig) -> SourceSettings:
    """Read the table, which has ``source.bootstrap.servers``.

    Raises:
        ConfigError: A value is invalid; names the key.
    """
    bootstrap = servers(config, SERVERS)
    read = read_settings(SourceSettings, config)
    options = read_consumer_options(config, bootstrap, read.group_id or DEFAULT_GROUP)
    found = replace(read, formats=formats(config), options=options)
    refuse_circle(config, bootstrap, found.topics)
    return found


def read_consumer_options(config: PluginConfig, bootstrap: str, group_id: str) -> dict[str, str]:
    """The complete options of the consumer.

    Raises:
        ConfigError: An option is invalid; names it.
    """
    given = given_options(config, CONSUMER)
    own = {
        "bootstrap.servers": bootstrap,
        "group.id": group_id,
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
    }
    options = {**DEFAULTS, **given, **own}
    table = PluginConfig(config.path + ".source.client", given)
    try_options(config, CONSUMER, without_token_file(table, options))
    return options


def formats(config: PluginConfig) -> dict[str, TopicFormat]:
    """Read the formats of single topics.

    Raises:
        ConfigError: A format does not exist, or a topic is not read.
    """
    read = topics(config)
    found = config.table("source.formats")
    for topic, name in found.items():
        key = f"source.formats.{topic}"
        if topic not in read:
            raise config.error(key, f"expected one of source.topics, which are {', '.join(read)}")
        if name not in list(TopicFormat):
            raise config.error(key, f"expected one of {', '.join(TopicFormat)}, found {name!r}")
    return {topic: TopicFormat(name) for topic, name in found.items()}


def refuse_circle(config: PluginConfig, bootstrap: str, found: tuple[str, ...]) -> None:
    """Refuse to read a topic that the plugin writes: each record would come back.

    Raises:
        ConfigError: The exporter or the writer, and the source, have a server and a topic in common.
    """
    read = set(bootstrap.split(","))
    own = config.text(WRITER_SERVERS)
    if own is not None and TELEMETRY_TOPIC in found and not read.isdisjoint(own.split(",")):
        problem = f"the host writes {TELEMETRY_TOPIC} of {WRITER_SERVERS}, so its records would return"
        raise config.error("source.topics", problem)
    if config.text("bootstrap.servers") is None:
        return
    if set(servers(config).split(",")).isdisjoint(read):
        return
    exported = template(config)
    for name in found:
        if exported.can_be(name):
            raise config.error("source.topics", f"the plugin exports to {name}, so its records would return")
