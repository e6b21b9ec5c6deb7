"""Keys of brokers that are stored and have no effect, and those of other rooms that have one."""

from __future__ import annotations

import pytest

from odradek.broker.broker import Broker
from odradek.broker.configs.broker_resource import MAX_KEYS, WITHOUT_BROKER
from odradek.broker.kafka_keys import DOCUMENTATION
from odradek.log.producer_ids import ProducerIdConfig
from odradek.metadata.store import MetadataStore
from odradek.wire.config_resource import ConfigOperation, ConfigSource, ConfigType, ResourceType
from odradek.wire.error_code import ErrorCode
from support.broker import make_broker
from unit.broker.test_broker_resource import alter, described

BROKER, NODE, CLUSTER = ResourceType.BROKER, "1", ""
OWN, COMMON, DEFAULT = (
    ConfigSource.DYNAMIC_BROKER,
    ConfigSource.DYNAMIC_DEFAULT_BROKER,
    ConfigSource.DEFAULT,
)
INTERVAL = "group.consumer.assignment.interval.ms"


@pytest.fixture
def broker() -> Broker:
    return make_broker()


@pytest.mark.parametrize("name", [NODE, CLUSTER])
@pytest.mark.parametrize("key", ["no.such.key", "num.io.threads", "listener.name.a.num.network.threads"])
def test_a_key_without_effect_is_stored_and_deleted(broker: Broker, key: str, name: str) -> None:
    stored = alter(broker, name, key, "5"), broker.metadata.resource(BROKER, name)
    deleted = alter(broker, name, key, None, ConfigOperation.DELETE), broker.metadata.resource(BROKER, name)

    assert stored == ((0, None), {key: "5"})
    assert deleted == ((0, None), {})


@pytest.mark.parametrize("key", ["ssl.provider", "listener.name.a.num.io.threads", "listener.name.a.other"])
def test_keys_of_one_broker_need_its_id(broker: Broker, key: str) -> None:
    answers = [alter(broker, name, key, "5") for name in (NODE, CLUSTER)]

    assert answers == [(0, None), (ErrorCode.INVALID_REQUEST, f"{WITHOUT_BROKER}: [{key}]")]


def test_a_key_of_kafka_is_described_with_all_its_values(broker: Broker) -> None:
    alter(broker, NODE, "num.io.threads", " 9 ")
    alter(broker, CLUSTER, "num.io.threads", "4")

    row = described(broker, BROKER, NODE)["num.io.threads"]

    assert (row.value, row.config_source, row.read_only, row.config_type) == ("9", OWN, False, ConfigType.INT)
    assert [(each.value, each.source) for each in row.synonyms] == [
        (" 9 ", OWN),
        ("4", COMMON),
        ("8", DEFAULT),
    ]


@pytest.mark.parametrize(
    ("key", "of_type", "read_only"),
    [("no.such.key", ConfigType.UNKNOWN, True), ("sasl.jaas.config", ConfigType.PASSWORD, False)],
)
def test_what_may_be_a_secret_is_hidden(
    broker: Broker, key: str, of_type: ConfigType, read_only: bool
) -> None:
    alter(broker, NODE, key, "secret")

    row = described(broker, BROKER, NODE)[key]

    assert (row.value, row.is_sensitive, row.config_type, row.read_only) == (None, True, of_type, read_only)
    assert {each.value for each in row.synonyms} == {None}


def test_the_documentation_of_a_key_of_kafka_says_that_it_has_no_effect(broker: Broker) -> None:
    assert "no effect" in DOCUMENTATION
    assert broker.config.entry("num.io.threads").key.documentation == DOCUMENTATION


@pytest.mark.parametrize(
    ("operation", "key", "words"),
    [
        (ConfigOperation.APPEND, "no.such.key", "Unknown config name: no.such.key"),
        (
            ConfigOperation.SUBTRACT,
            "num.io.threads",
            "Config value subtract is not allowed for config key: num.io.threads",
        ),
    ],
)
def test_only_a_list_can_be_appended_to(broker: Broker, operation: int, key: str, words: str) -> None:
    assert alter(broker, NODE, key, "5", operation) == (ErrorCode.INVALID_CONFIG, words)


@pytest.mark.parametrize(
    ("key", "code"),
    [("internal.metadata.log.segment.bytes", ErrorCode.INVALID_REQUEST), ("internal.of.somebody", 0)],
)
def test_internal_keys_of_kafka_are_read_at_the_start_and_others_are_unknown(
    broker: Broker, key: str, code: int
) -> None:
    assert alter(broker, NODE, key, "8388608")[0] == code


def test_the_id_of_the_node_is_checked_before_its_keys(broker: Broker) -> None:
    code, _ = alter(broker, "x", "no.such.key", "5", ConfigOperation.APPEND)

    assert code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("key", ["max.connections", "max.connection.creation.rate"])
def test_a_limit_of_no_connection_is_refused(broker: Broker, key: str) -> None:
    code, _ = alter(broker, NODE, key, "0")

    assert code == ErrorCode.INVALID_REQUEST


def test_unknown_keys_are_limited_in_number_and_length(broker: Broker) -> None:
    broker.metadata.put_resource(BROKER, NODE, {f"key-{number}": "" for number in range(MAX_KEYS)})

    answers = [
        alter(broker, NODE, "one.more", "5"),
        alter(broker, NODE, "key-1", "5"),
        alter(broker, CLUSTER, "k" * (broker.names.most + 1), "5"),
    ]

    assert [code for code, _ in answers] == [ErrorCode.POLICY_VIOLATION, 0, ErrorCode.POLICY_VIOLATION]


def test_settings_of_rooms_change_at_run_time_and_survive_a_restart() -> None:
    store = MetadataStore(":memory:")
    broker = make_broker(metadata=store)
    alter(broker, NODE, "producer.id.expiration.ms", "70000")
    alter(broker, CLUSTER, INTERVAL, "7")
    broker.logs.close()

    again = make_broker(metadata=store)

    for each in (broker, again):
        assert each.logs.producer_ids.config.expiration_ms == 70_000
        assert each.groups.config.consumer_assignment_interval_ms == 7
    alter(again, NODE, "producer.id.expiration.ms", None, ConfigOperation.DELETE)
    assert again.logs.producer_ids.config == ProducerIdConfig()


def test_a_groups_own_value_comes_before_a_changed_one(broker: Broker) -> None:
    alter(broker, "g", "consumer.assignment.interval.ms", "5", kind=ResourceType.GROUP)

    alter(broker, NODE, INTERVAL, "7")

    assert broker.groups.own_configs["g"].consumer_assignment_interval_ms == 5
    rows = described(broker, ResourceType.GROUP, "other")
    assert rows["consumer.assignment.interval.ms"].value == "7"


def test_a_value_outside_the_limits_of_its_room_is_refused(broker: Broker) -> None:
    code, _ = alter(broker, NODE, INTERVAL, "15001")

    assert code == ErrorCode.INVALID_REQUEST
    assert broker.groups.config.consumer_assignment_interval_ms == 1_000
