from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from odradek.broker.broker_settings import BrokerSettings
from odradek.broker.configs.config_resources import LOGGERS
from odradek.broker.configs.topic_resource import KEYS as TOPIC_KEYS
from odradek.broker.dynamic_config import CERTIFICATE_KEYS, LOG_KEYS
from odradek.broker.throttled_replicas import THROTTLED_REPLICAS
from odradek.log.log_config import LOG_CONFIG_KEYS, LogConfig
from odradek.quota.connection_limits import CONNECTION_KEYS
from odradek.telemetry.telemetry_config import TelemetryConfig
from odradek.wire.config_resource import ConfigSource, ConfigType, ResourceType
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from support.broker import BrokerClient, make_broker

TOPIC, BROKER, SUBSCRIPTION, GROUP = (
    ResourceType.TOPIC,
    ResourceType.BROKER,
    ResourceType.CLIENT_METRICS,
    ResourceType.GROUP,
)


def describe(
    client: BrokerClient,
    kind: int,
    name: str,
    keys: list[str] | None = None,
    version: int = 4,
    **include: bool,
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    response = client.send(DescribeConfigsRequest(resources=[resource], **include), version)
    (result,) = response.results
    assert isinstance(result, DescribeConfigsResult)
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def by_name(result: DescribeConfigsResult) -> dict[str, DescribeConfigsResourceResult]:
    return {row.name: row for row in result.configs}


def subscribed(**properties: str) -> BrokerClient:
    broker = make_broker()
    broker.metadata.put_resource(
        SUBSCRIPTION, "sub-1", {key.replace("_", "."): value for key, value in properties.items()}
    )
    return BrokerClient(broker)


def synonyms(row: DescribeConfigsResourceResult) -> list[tuple[str, str | None, int]]:
    return [(synonym.name, synonym.value, synonym.source) for synonym in row.synonyms]


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_subscription_shows_its_keys_and_the_other_defaults(version: int) -> None:
    client = subscribed(metrics="a,b")

    result = describe(client, SUBSCRIPTION, "sub-1", version=version)

    rows = [
        (row.name, row.value, row.config_source, row.read_only, row.is_sensitive) for row in result.configs
    ]
    assert result.error_code == ErrorCode.NONE
    assert rows == [
        ("interval.ms", "300000", ConfigSource.DEFAULT, False, False),
        ("match", "", ConfigSource.DEFAULT, False, False),
        ("metrics", "a,b", ConfigSource.CLIENT_METRICS, False, False),
    ]


def test_synonyms_are_returned_on_request_and_for_set_keys_only() -> None:
    client = subscribed(interval_ms="1000")

    plain = by_name(describe(client, SUBSCRIPTION, "sub-1"))
    rich = by_name(describe(client, SUBSCRIPTION, "sub-1", include_synonyms=True))

    assert plain["interval.ms"].synonyms == []
    assert synonyms(rich["interval.ms"]) == [("interval.ms", "1000", ConfigSource.CLIENT_METRICS)]
    assert rich["metrics"].synonyms == []


def test_types_and_documentation_are_returned_from_version_3_on() -> None:
    client = subscribed()

    rows = by_name(describe(client, SUBSCRIPTION, "x", version=3, include_documentation=True))

    assert (rows["interval.ms"].config_type, rows["interval.ms"].documentation) == (
        ConfigType.INT,
        "Metrics push interval in milliseconds",
    )
    assert (rows["match"].config_type, rows["match"].documentation) == (
        ConfigType.LIST,
        "Client match criteria",
    )
    assert rows["metrics"].documentation == "Telemetry metric name prefix list"


def test_documentation_is_null_unless_requested() -> None:
    rows = by_name(describe(subscribed(), SUBSCRIPTION, "x"))

    assert {row.documentation for row in rows.values()} == {None}


@pytest.mark.parametrize(
    ("key", "stored", "shown"),
    [
        ("metrics", " a , b ", "a,b"),
        ("metrics", " ", ""),
        ("interval_ms", " 1000 ", "1000"),
        ("interval_ms", "+500", "500"),
        ("match", "client_id = x ", "client_id = x"),
    ],
)
def test_values_are_shown_as_parsed(key: str, stored: str, shown: str) -> None:
    client = subscribed(**{key: stored})

    row = by_name(describe(client, SUBSCRIPTION, "sub-1"))[key.replace("_", ".")]

    assert (row.value, row.config_source) == (shown, ConfigSource.CLIENT_METRICS)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["interval.ms"], ["interval.ms"]),
        (["metrics", "match"], ["match", "metrics"]),
        (["nonsense"], []),
        ([], ["interval.ms", "match", "metrics"]),
        (None, ["interval.ms", "match", "metrics"]),
    ],
)
def test_key_names_filter_the_answer(keys: list[str] | None, expected: list[str]) -> None:
    result = describe(subscribed(), SUBSCRIPTION, "sub-1", keys)

    assert [row.name for row in result.configs] == expected


def test_an_unknown_subscription_has_the_defaults() -> None:
    result = describe(subscribed(), SUBSCRIPTION, "never")

    assert result.error_code == ErrorCode.NONE
    assert {row.config_source for row in result.configs} == {ConfigSource.DEFAULT}


def test_a_subscription_needs_a_name() -> None:
    result = describe(subscribed(), SUBSCRIPTION, "")

    assert (result.error_code, result.configs) == (ErrorCode.INVALID_REQUEST, [])
    assert result.error_message == "Client metrics subscription name must not be empty"


@pytest.mark.parametrize("kind", [0, 1, 8, 99])
def test_a_type_that_cannot_be_described_is_an_invalid_request(kind: int) -> None:
    result = describe(subscribed(), kind, "x")

    assert (result.error_code, result.configs) == (ErrorCode.INVALID_REQUEST, [])


def test_each_resource_has_its_own_result_in_the_order_of_the_request() -> None:
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        for kind, name in [(TOPIC, "nowhere"), (SUBSCRIPTION, "x"), (SUBSCRIPTION, "y")]
    ]

    response = subscribed().send(DescribeConfigsRequest(resources=resources))

    assert [row.error_code for row in response.results] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
        ErrorCode.NONE,
    ]


def test_an_unknown_type_refuses_every_resource_as_in_kafka() -> None:
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        for kind, name in [(SUBSCRIPTION, "x"), (99, "y")]
    ]

    response = subscribed().send(DescribeConfigsRequest(resources=resources))

    assert [(row.resource_name, row.error_code) for row in response.results] == [
        ("x", ErrorCode.INVALID_REQUEST),
        ("y", ErrorCode.INVALID_REQUEST),
    ]


def test_a_repeated_resource_is_described_twice_as_in_kafka() -> None:
    resources = [
        DescribeConfigsResource(resource_type=SUBSCRIPTION, resource_name=name, configuration_keys=keys)
        for name, keys in [("x", ["match"]), ("y", None), ("x", ["metrics"])]
    ]

    response = subscribed().send(DescribeConfigsRequest(resources=resources))

    assert [row.resource_name for row in response.results] == ["x", "y", "x"]
    assert [[row.name for row in result.configs] for result in response.results[::2]] == [
        ["match"],
        ["metrics"],
    ]


def with_topic(
    log_defaults: LogConfig | None = None, properties: Mapping[str, str] = MappingProxyType({})
) -> BrokerClient:
    broker = make_broker(log_defaults=log_defaults)
    broker.topics.create("t", 1, properties)
    return BrokerClient(broker)


def test_a_topic_shows_every_key_of_its_logs() -> None:
    result = describe(with_topic(), TOPIC, "t")

    assert {row.name for row in result.configs} == LOG_CONFIG_KEYS | set(THROTTLED_REPLICAS)
    assert {row.name for row in result.configs if row.config_source != ConfigSource.DEFAULT} == {
        "min.insync.replicas"
    }
    assert not any(row.read_only for row in result.configs)


def test_the_defaults_shown_are_those_in_force() -> None:
    client = with_topic()
    shown = {row.name: row.value or "" for row in describe(client, TOPIC, "t").configs}

    config = client.broker.topics.config_of(shown)

    assert config == LogConfig()


def test_every_key_of_a_topic_is_documented_and_typed() -> None:
    rows = describe(with_topic(), TOPIC, "t", include_documentation=True).configs

    assert all(row.documentation for row in rows)
    assert all(row.config_type for row in rows)
    assert {row.name for row in rows} == TOPIC_KEYS.keys()


def test_a_topics_synonyms_go_from_the_topic_to_the_host_to_kafka() -> None:
    client = with_topic(LogConfig(segment_ms=5000), {"segment.ms": "1000"})

    row = by_name(describe(client, TOPIC, "t", include_synonyms=True))["segment.ms"]

    assert (row.value, row.config_source) == ("1000", ConfigSource.TOPIC)
    assert synonyms(row) == [
        ("segment.ms", "1000", ConfigSource.TOPIC),
        ("log.roll.ms", "5000", ConfigSource.STATIC_BROKER),
        ("log.roll.hours", "168", ConfigSource.DEFAULT),
    ]


def test_the_default_is_a_synonym_unless_the_brokers_key_is_null_by_default() -> None:
    rows = by_name(describe(with_topic(), TOPIC, "t", include_synonyms=True))

    assert synonyms(rows["cleanup.policy"]) == [("log.cleanup.policy", "delete", ConfigSource.DEFAULT)]
    assert synonyms(rows["max.message.bytes"]) == [("message.max.bytes", "1048588", ConfigSource.DEFAULT)]
    assert {name for name, row in rows.items() if not row.synonyms} == {
        "retention.ms",
        "segment.ms",
        "segment.jitter.ms",
        "flush.ms",
        "errors.deadletterqueue.group.enable",
        *THROTTLED_REPLICAS,
    }
    assert rows["retention.ms"].value == "604800000"


def test_a_hosts_own_default_is_shown_with_its_source() -> None:
    client = with_topic(LogConfig(segment_ms=5000))

    row = by_name(describe(client, TOPIC, "t"))["segment.ms"]

    assert (row.value, row.config_source) == ("5000", ConfigSource.STATIC_BROKER)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cleanup.policy", "compact,delete"),
        ("compression.type", "zstd"),
        ("compression.type", "uncompressed"),
        ("message.timestamp.type", "LogAppendTime"),
        ("preallocate", "true"),
        ("min.cleanable.dirty.ratio", "0.25"),
    ],
)
def test_a_topics_value_is_shown_as_it_was_set(key: str, value: str) -> None:
    row = by_name(describe(with_topic(properties={key: value}), TOPIC, "t"))[key]

    assert (row.value, row.config_source) == (value, ConfigSource.TOPIC)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_an_unknown_topic_is_refused(name: str, code: ErrorCode) -> None:
    result = describe(with_topic(), TOPIC, name)

    assert (result.error_code, result.configs) == (code, [])


def test_a_broker_shows_its_static_configuration() -> None:
    broker = make_broker(
        settings=BrokerSettings(node_id=7, num_partitions=3), telemetry=TelemetryConfig(telemetry_max_bytes=9)
    )

    rows = by_name(
        describe(BrokerClient(broker), BROKER, "7", include_synonyms=True, include_documentation=True)
    )

    facts = {name: (row.value, row.config_source) for name, row in rows.items()}
    assert facts["node.id"] == ("7", ConfigSource.STATIC_BROKER)
    assert facts["num.partitions"] == ("3", ConfigSource.STATIC_BROKER)
    assert facts["telemetry.max.bytes"] == ("9", ConfigSource.STATIC_BROKER)
    assert facts["auto.create.topics.enable"] == ("true", ConfigSource.DEFAULT)
    assert synonyms(rows["num.partitions"]) == [
        ("num.partitions", "3", ConfigSource.STATIC_BROKER),
        ("num.partitions", "1", ConfigSource.DEFAULT),
    ]
    assert all(row.documentation for row in rows.values())
    of_logs = {key for key, (_, each) in LOG_KEYS.items() if each.in_file}
    changeable = of_logs | CONNECTION_KEYS.keys() | CERTIFICATE_KEYS.keys()
    assert {name for name, row in rows.items() if not row.read_only} > changeable


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("7", "Unexpected broker id, expected 1 or empty string, but received 7"),
        ("x", "Broker id must be an integer, but it is: x"),
    ],
)
def test_another_broker_is_not_described(name: str, message: str) -> None:
    result = describe(BrokerClient(), BROKER, name)

    assert (result.error_code, result.error_message) == (ErrorCode.INVALID_REQUEST, message)


def test_all_brokers_have_the_key_that_kafka_sets_when_it_makes_a_cluster() -> None:
    result = describe(BrokerClient(), BROKER, "", include_synonyms=True)

    assert result.error_code == ErrorCode.NONE
    (row,) = result.configs
    assert synonyms(row) == [("min.insync.replicas", "1", ConfigSource.DYNAMIC_DEFAULT_BROKER)]


def test_why_loggers_are_not_described_is_said() -> None:
    result = describe(subscribed(), ResourceType.BROKER_LOGGER, "1")

    assert (result.error_code, result.error_message) == (ErrorCode.INVALID_REQUEST, LOGGERS)


def test_a_group_needs_a_name() -> None:
    result = describe(BrokerClient(), GROUP, "")

    assert result.error_code == ErrorCode.INVALID_REQUEST


def test_a_bug_is_an_error_for_every_resource(monkeypatch: pytest.MonkeyPatch) -> None:
    client: Any = subscribed()
    monkeypatch.setattr("odradek.broker.handlers.describe_configs.shown", None)

    result = describe(client, SUBSCRIPTION, "sub-1")

    assert (result.error_code, result.configs) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])
