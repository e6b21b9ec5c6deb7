"""BROKER configurations that change while the host runs."""

from __future__ import annotations

import pytest

from odradek.broker.broker import Broker
from odradek.broker.configs.broker_resource import WITHOUT_LISTENER
from odradek.broker.configs.config_resources import LOGGERS
from odradek.broker.dynamic_config import CERTIFICATE_KEYS, LOG_KEYS
from odradek.log.log_config import LogConfig
from odradek.metadata.store import MetadataStore
from odradek.meters.metrics_settings import MetricsPushSettings
from odradek.programs.config import HostConfig, load_config
from odradek.quota.connection_limits import CONNECTION_KEYS
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ConfigOperation, ConfigSource, ResourceType
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from odradek.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from support.batches import NOW_MS, batch_of
from support.broker import BrokerClient, make_broker

TOPIC, BROKER = ResourceType.TOPIC, ResourceType.BROKER
NODE, CLUSTER = "1", ""
SET, DELETE = ConfigOperation.SET, ConfigOperation.DELETE
OWN, COMMON, STATIC, DEFAULT = (
    ConfigSource.DYNAMIC_BROKER,
    ConfigSource.DYNAMIC_DEFAULT_BROKER,
    ConfigSource.STATIC_BROKER,
    ConfigSource.DEFAULT,
)

REPORTER = "org.apache.kafka.common.metrics.JmxReporter"
KEYS_OF_ROOMS = {
    "errors.deadletterqueue.auto.create.topics.enable",
    "errors.deadletterqueue.topic.name.prefix",
    "group.consumer.assignment.interval.ms",
    "group.share.assignment.interval.ms",
    "group.streams.assignment.interval.ms",
    "log.cleaner.backoff.ms",
    "log.cleaner.dedupe.buffer.size",
    "producer.id.expiration.ms",
}


def alter(
    broker: Broker,
    name: str,
    key: str,
    value: str | None,
    operation: int = SET,
    kind: int = BROKER,
    validate_only: bool = False,
) -> tuple[int, str | None]:
    """The error code and message of the answer."""
    config = AlterableConfig(name=key, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    (answer,) = BrokerClient(broker).send(request).responses
    return answer.error_code, answer.error_message


def described(
    broker: Broker, kind: int, name: str, keys: list[str] | None = None
) -> dict[str, DescribeConfigsResourceResult]:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (result,) = BrokerClient(broker).send(request).results
    assert result.error_code == 0
    return {row.name: row for row in result.configs}


def synonyms(row: DescribeConfigsResourceResult) -> list[tuple[str, str | None, int]]:
    return [(synonym.name, synonym.value, synonym.source) for synonym in row.synonyms]


@pytest.fixture
def broker() -> Broker:
    broker = make_broker(log_defaults=LogConfig(max_message_bytes=9_000))
    broker.topics.create("t", 2, {})
    return broker


def config(broker: Broker) -> LogConfig:
    """The configuration that the topic's logs use."""
    topic = broker.topics.by_name["t"]
    (found,) = {log.config for log in topic.partitions} | {topic.config}
    return found


@pytest.mark.parametrize("name", [NODE, CLUSTER])
def test_a_change_applies_to_existing_logs_at_once(broker: Broker, name: str) -> None:
    answer = alter(broker, name, "log.retention.ms", "77")

    assert answer == (0, None)
    assert config(broker).retention_ms == 77


def test_the_next_append_uses_the_change(broker: Broker) -> None:
    alter(broker, NODE, "message.max.bytes", "50")

    with pytest.raises(ApiError) as refusal:
        broker.topics.log("t", 0).append(batch_of(b"x" * 60), now_ms=NOW_MS)

    assert refusal.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_a_new_topic_uses_the_change(broker: Broker) -> None:
    alter(broker, CLUSTER, "log.segment.bytes", "2000000")

    topic = broker.topics.create("new", 1, {})

    assert topic.partitions[0].config.segment_bytes == 2_000_000


def test_the_node_overrides_the_cluster_and_the_topic_overrides_both(broker: Broker) -> None:
    alter(broker, CLUSTER, "message.max.bytes", "1000")
    alter(broker, NODE, "message.max.bytes", "2000")
    of_brokers = config(broker).max_message_bytes
    alter(broker, "t", "max.message.bytes", "3000", kind=TOPIC)

    row = described(broker, TOPIC, "t")["max.message.bytes"]

    assert (of_brokers, config(broker).max_message_bytes, row.value) == (2000, 3000, "3000")
    assert synonyms(row) == [
        ("max.message.bytes", "3000", ConfigSource.TOPIC),
        ("message.max.bytes", "2000", OWN),
        ("message.max.bytes", "1000", COMMON),
        ("message.max.bytes", "9000", STATIC),
        ("message.max.bytes", "1048588", DEFAULT),
    ]


def test_deleting_a_key_restores_the_weaker_one(broker: Broker) -> None:
    alter(broker, CLUSTER, "message.max.bytes", "1000")
    alter(broker, NODE, "message.max.bytes", "2000")

    found = []
    for name in (NODE, CLUSTER):
        alter(broker, name, "message.max.bytes", None, DELETE)
        found.append((config(broker).max_message_bytes, described(broker, BROKER, NODE)["message.max.bytes"]))

    assert [(size, row.value, row.config_source) for size, row in found] == [
        (1000, "1000", COMMON),
        (9000, "9000", STATIC),
    ]


def test_the_cluster_shows_only_its_own_keys(broker: Broker) -> None:
    alter(broker, CLUSTER, "log.retention.ms", " 1000 ")
    alter(broker, NODE, "log.roll.ms", "5")

    rows = described(broker, BROKER, CLUSTER)

    assert [(row.name, row.value, row.config_source, row.read_only) for row in rows.values()] == [
        ("log.retention.ms", " 1000 ", COMMON, False),
        ("min.insync.replicas", "1", COMMON, False),
    ]
    assert synonyms(rows["log.retention.ms"]) == [("log.retention.ms", " 1000 ", COMMON)]


def test_a_key_with_a_synonym_in_hours_is_null_until_it_is_set(broker: Broker) -> None:
    before = described(broker, BROKER, NODE)["log.retention.ms"]
    alter(broker, NODE, "log.retention.ms", "5")

    after = described(broker, BROKER, NODE)["log.retention.ms"]

    assert (before.value, before.config_source, before.synonyms) == (None, DEFAULT, [])
    assert synonyms(after) == [("log.retention.ms", "5", OWN), ("log.retention.hours", "168", DEFAULT)]


def test_a_change_survives_a_restart() -> None:
    store = MetadataStore(":memory:")
    first = make_broker(metadata=store)
    first.topics.create("t", 1, {})
    alter(first, NODE, "log.retention.ms", "77")
    first.logs.close()

    again = make_broker(metadata=store)

    assert config(again).retention_ms == 77
    assert described(again, BROKER, NODE)["log.retention.ms"].config_source == OWN


@pytest.mark.parametrize("name", [NODE, CLUSTER])
@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("num.partitions", "3", "Cannot update these configs dynamically: [num.partitions]"),
        ("broker.rack", "a", "Cannot update these configs dynamically: [broker.rack]"),
        ("broker.id", "2", "Cannot update these configs dynamically: [broker.id]"),
        (
            "listener.name.tls.ssl.client.auth",
            "none",
            "Cannot update these configs dynamically: [listener.name.tls.ssl.client.auth]",
        ),
        ("ssl.keystore.location", "a", f"{WITHOUT_LISTENER}: [ssl.keystore.location]"),
        ("num.io.threads", "0", "Invalid value 0 for configuration num.io.threads: Value must be at least 1"),
        (
            "sasl.login.refresh.window.jitter",
            "x",
            "Invalid value x for configuration sasl.login.refresh.window.jitter: Not a number of type DOUBLE",
        ),
        (
            "log.segment.bytes",
            "1",
            "Invalid value 1 for configuration log.segment.bytes: Value must be at least 1048576",
        ),
        (
            "log.segment.bytes",
            "many",
            "Invalid value many for configuration log.segment.bytes: Not a number of type INT",
        ),
    ],
)
def test_an_invalid_change_changes_nothing(
    broker: Broker, name: str, key: str, value: str, words: str
) -> None:
    before = config(broker)

    answer = alter(broker, name, key, value)

    assert answer == (ErrorCode.INVALID_REQUEST, words)
    assert config(broker) == before
    assert broker.metadata.resource(BROKER, name) == {}


@pytest.mark.parametrize("name", ["01", " 1", "2", "-1"])
def test_an_unknown_node_is_refused(broker: Broker, name: str) -> None:
    code, words = alter(broker, name, "log.retention.ms", "7")

    assert (code, words) == (
        ErrorCode.INVALID_REQUEST,
        f"Unexpected broker id, expected 1, but received {name}",
    )


def test_validate_only_changes_nothing(broker: Broker) -> None:
    answer = alter(broker, NODE, "log.retention.ms", "7", validate_only=True)

    assert answer == (0, None)
    assert config(broker).retention_ms != 7


def test_a_topic_in_conflict_with_a_change_keeps_its_values(broker: Broker) -> None:
    alter(broker, "t", "max.compaction.lag.ms", "5", kind=TOPIC)

    answer = alter(broker, NODE, "log.cleaner.min.compaction.lag.ms", "50")

    assert answer == (0, None)
    assert (config(broker).min_compaction_lag_ms, config(broker).max_compaction_lag_ms) == (0, 5)


def test_each_key_of_a_topic_has_a_default_that_can_be_set(broker: Broker) -> None:
    rows = described(broker, BROKER, NODE)

    assert {name for name, row in rows.items() if not row.read_only} == (
        {key for key, (_, each) in LOG_KEYS.items() if each.in_file}
        | CERTIFICATE_KEYS.keys()
        | CONNECTION_KEYS.keys()
        | KEYS_OF_ROOMS
    )


def test_a_value_of_the_file_that_equals_the_default_is_the_files() -> None:
    broker = make_broker(given=frozenset({"num.partitions", "message.max.bytes"}))

    rows = described(broker, BROKER, NODE)

    assert synonyms(rows["num.partitions"]) == [
        ("num.partitions", "1", STATIC),
        ("num.partitions", "1", DEFAULT),
    ]
    assert synonyms(rows["message.max.bytes"]) == [
        ("message.max.bytes", "1048588", STATIC),
        ("message.max.bytes", "1048588", DEFAULT),
    ]
    assert rows["node.id"].config_source == DEFAULT


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("socket.request.max.bytes", "104857600"),
        ("listeners", "PLAINTEXT://127.0.0.1:9092"),
        ("connections.max.idle.ms", "600000"),
        ("data.dir", "odradek-data"),
        ("advertised.listeners", None),
        ("log.dirs", ""),
        ("telemetry.durability", "log"),
    ],
)
def test_every_setting_in_force_is_shown(broker: Broker, key: str, value: str | None) -> None:
    row = described(broker, BROKER, NODE)[key]

    assert (row.value, row.config_source, row.read_only) == (value, DEFAULT, True)


def test_a_secret_is_not_shown() -> None:
    config = HostConfig(metrics_push=MetricsPushSettings(headers={"authorization": "secret"}))
    broker = make_broker()
    broker.config.start = config.start_values

    row = described(broker, BROKER, NODE)["metrics.otlp.headers"]

    assert (row.value, row.is_sensitive, row.config_source) == (None, True, STATIC)
    assert {synonym.value for synonym in row.synonyms} == {None}


@pytest.mark.parametrize(
    ("key", "default"),
    [("broker.rack", None), ("metric.reporters", REPORTER), ("broker.heartbeat.interval.ms", "2000")],
)
def test_a_key_of_kafka_alone_is_described_where_it_is_asked_for(
    broker: Broker, key: str, default: str | None
) -> None:
    rows = described(broker, BROKER, NODE, [key, "no.such.key"])

    assert [(row.name, row.value, row.config_source, row.read_only) for row in rows.values()] == [
        (key, default, DEFAULT, True)
    ]
    assert key not in described(broker, BROKER, NODE)


def test_hours_hold_where_milliseconds_are_not_set() -> None:
    config = load_config(None, ["log.retention.hours=2"])
    broker = make_broker(log_defaults=config.log_defaults, given=config.given)
    broker.config.start = config.start_values
    broker.topics.create("t", 1, {})

    of_broker, of_topic = described(broker, BROKER, NODE), described(broker, TOPIC, "t")

    assert (of_broker["log.retention.ms"].value, of_topic["retention.ms"].value) == (None, "7200000")
    assert (of_topic["retention.ms"].config_source, of_topic["retention.ms"].synonyms) == (DEFAULT, [])
    assert synonyms(of_broker["log.retention.hours"]) == [
        ("log.retention.hours", "2", STATIC),
        ("log.retention.hours", "168", DEFAULT),
    ]


def test_loggers_are_refused_in_words_that_say_why(broker: Broker) -> None:
    answer = alter(broker, NODE, "root", "DEBUG", kind=ResourceType.BROKER_LOGGER)

    assert answer == (ErrorCode.INVALID_REQUEST, LOGGERS)
