"""Connection limits and replication rates that are changed at run time, on brokers and topics."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.log.log_config import LogConfig
from odradek.metadata.store import MetadataStore
from odradek.quota.connection_limits import ConnectionLimits
from odradek.testing.clock import MockClock
from odradek.waiting.steps import Pause
from odradek.wire.config_resource import ConfigOperation, ConfigSource, ResourceType
from odradek.wire.error_code import ErrorCode
from odradek.wire.limits import INT32_MAX
from odradek.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
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
from support.batches import batch_of
from support.broker import BrokerClient, make_broker
from support.data_requests import fetch_request

NODE, CLUSTER = "1", ""
OK = (ErrorCode.NONE, None)
OWN, COMMON, STATIC, DEFAULT = (
    ConfigSource.DYNAMIC_BROKER,
    ConfigSource.DYNAMIC_DEFAULT_BROKER,
    ConfigSource.STATIC_BROKER,
    ConfigSource.DEFAULT,
)
PLAINTEXT = "listener.name.plaintext.max.connections"
LEADER = "leader.replication.throttled.replicas"
FOLLOWER = "follower.replication.throttled.replicas"
REFUSED = "Invalid value org.apache.kafka.common.config.ConfigException:"
DYNAMIC = "for configuration Invalid dynamic configuration"
RATES = {
    "leader.replication.throttled.rate": "leader",
    "follower.replication.throttled.rate": "follower",
    "replica.alter.log.dirs.io.max.bytes.per.second": "alter_log_dirs",
}


def alter(
    broker: Broker,
    name: str,
    key: str,
    value: str | None,
    operation: ConfigOperation = ConfigOperation.SET,
    kind: ResourceType = ResourceType.BROKER,
) -> tuple[int, str | None]:
    """The error code and message; None deletes the key."""
    if value is None:
        operation = ConfigOperation.DELETE
    config = AlterableConfig(name=key, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    (answer,) = BrokerClient(broker).send(request).responses
    return answer.error_code, answer.error_message


def described(
    broker: Broker, name: str, kind: ResourceType = ResourceType.BROKER
) -> dict[str, DescribeConfigsResourceResult]:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (result,) = BrokerClient(broker).send(request).results
    return {row.name: row for row in result.configs}


def synonyms(row: DescribeConfigsResourceResult) -> list[tuple[str, str | None, int]]:
    return [(synonym.name, synonym.value, synonym.source) for synonym in row.synonyms]


@pytest.fixture
def broker() -> Broker:
    broker = make_broker()
    broker.connection_quotas.add_listener("PLAINTEXT")
    broker.connection_quotas.add_listener("INTERNAL")
    broker.topics.create("t", 2, {})
    return broker


@pytest.mark.parametrize("name", [NODE, CLUSTER])
def test_connection_limits_take_effect_at_once(broker: Broker, name: str) -> None:
    answers = [
        alter(broker, name, "max.connections", "7"),
        alter(broker, name, "max.connections.per.ip", " 5 "),
        alter(broker, name, "max.connections.per.ip.overrides", "127.0.0.1:3,10.0.0.1:4"),
        alter(broker, name, "max.connection.creation.rate", "9"),
        alter(broker, name, PLAINTEXT, "2"),
    ]

    quotas = broker.connection_quotas
    assert answers == [OK] * 5
    assert (quotas.limits.max_connections, quotas.limits.max_connections_per_ip) == (7, 5)
    assert quotas.per_ip_overrides == {"127.0.0.1": 3, "10.0.0.1": 4}
    assert quotas.limits.creation_rate == 9
    assert [quotas.listeners[each].max_connections for each in ("PLAINTEXT", "INTERNAL")] == [2, 7]


def limited() -> Broker:
    """A broker whose configuration file has a limit of connections."""
    return make_broker(connections=ConnectionLimits(max_connections=100))


def test_the_node_overrides_the_cluster_and_both_override_the_file() -> None:
    broker = limited()
    quotas = broker.connection_quotas
    found = []
    for name, value in ((CLUSTER, "10"), (NODE, "20"), (CLUSTER, None), (NODE, None)):
        alter(broker, name, "max.connections", value)
        row = described(broker, NODE)["max.connections"]
        found.append((quotas.limits.max_connections, row.value, row.config_source))

    assert found == [(10, "10", COMMON), (20, "20", OWN), (20, "20", OWN), (100, "100", STATIC)]


def test_all_synonyms_of_a_listener_limit_are_shown() -> None:
    broker = limited()
    alter(broker, CLUSTER, "max.connections", "10")
    alter(broker, NODE, PLAINTEXT, "5")

    row = described(broker, NODE)[PLAINTEXT]

    assert (row.value, row.config_source) == ("5", OWN)
    assert synonyms(row) == [
        (PLAINTEXT, "5", OWN),
        ("max.connections", "10", COMMON),
        ("max.connections", "100", STATIC),
        ("max.connections", str(INT32_MAX), DEFAULT),
    ]


def test_the_cluster_shows_its_own_limits(broker: Broker) -> None:
    rate = "leader.replication.throttled.rate"
    for key, value in (("max.connections", "6"), (PLAINTEXT, "7"), (rate, "8")):
        alter(broker, CLUSTER, key, value)

    rows = described(broker, CLUSTER)

    assert {name: (row.value, synonyms(row)) for name, row in rows.items()} == {
        "max.connections": ("6", [("max.connections", "6", COMMON)]),
        PLAINTEXT: ("7", [(PLAINTEXT, "7", COMMON), ("max.connections", "6", COMMON)]),
        rate: ("8", [(rate, "8", COMMON)]),
        "min.insync.replicas": ("1", [("min.insync.replicas", "1", COMMON)]),
    }


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "max.connections",
            "x",
            "Invalid value x for configuration max.connections: Not a number of type INT",
        ),
        (
            "max.connections",
            "-1",
            "Invalid value -1 for configuration max.connections: Value must be at least 0",
        ),
        (
            "max.connection.creation.rate",
            "2147483648",
            "Invalid value 2147483648 for configuration max.connection.creation.rate: "
            "Not a number of type INT",
        ),
        (
            PLAINTEXT,
            "0",
            f"{REFUSED} Invalid max.connections 0 for configuration Invalid dynamic configuration",
        ),
        (
            "listener.name.plaintext.max.connection.creation.rate",
            "0",
            f"{REFUSED} Invalid max.connection.creation.rate 0 {DYNAMIC}",
        ),
        (
            "leader.replication.throttled.rate",
            "9223372036854775808",
            "Invalid value 9223372036854775808 for configuration leader.replication.throttled.rate: "
            "Not a number of type LONG",
        ),
        (
            "max.connections.per.ip",
            "0",
            "requirement failed: max.connections.per.ip can be set to zero only if "
            "max.connections.per.ip.overrides property is set.",
        ),
        (
            "max.connections.per.ip.overrides",
            "localhost",
            "Invalid value localhost for configuration max.connections.per.ip.overrides: "
            "expected HOST:COUNT with commas, found 'localhost'",
        ),
        ("quota.window.num", "5", "Cannot update these configs dynamically: [quota.window.num]"),
    ],
)
def test_an_invalid_limit_is_refused_and_changes_nothing(
    broker: Broker, key: str, value: str, message: str
) -> None:
    before = broker.connection_quotas.limits

    answer = alter(broker, NODE, key, value)

    assert answer == (ErrorCode.INVALID_REQUEST, message)
    assert broker.connection_quotas.limits == before
    assert broker.metadata.resource(ResourceType.BROKER, NODE) == {}


def test_quota_windows_are_described() -> None:
    rows = described(make_broker(), NODE)

    assert (rows["quota.window.num"].value, rows["controller.quota.window.size.seconds"].value) == ("11", "1")
    assert rows["quota.window.num"].read_only


@pytest.mark.parametrize("name", [NODE, CLUSTER])
@pytest.mark.parametrize(("key", "manager"), RATES.items())
def test_replication_rates_take_effect_at_once(broker: Broker, name: str, key: str, manager: str) -> None:
    bounds = []
    for value in ("1000", "0", None):
        assert alter(broker, name, key, value) == OK
        bounds.append(getattr(broker.quotas, manager).bound)

    assert bounds == [1000, 0, None]
    assert key not in described(broker, NODE)


def test_a_configured_rate_is_described(broker: Broker) -> None:
    alter(broker, NODE, "leader.replication.throttled.rate", "1000")

    row = described(broker, NODE)["leader.replication.throttled.rate"]

    assert (row.value, row.config_source) == ("1000", OWN)


@pytest.mark.parametrize(
    ("text", "throttled"), [("*", [True, True]), ("0:1,1:2", [True, False]), ("0:2", [False, False])]
)
@pytest.mark.parametrize("key", [LEADER, FOLLOWER])
def test_a_topic_lists_its_throttled_replicas(
    broker: Broker, key: str, text: str, throttled: list[bool]
) -> None:
    manager = broker.quotas.leader if key == LEADER else broker.quotas.follower

    answer = alter(broker, "t", key, text, kind=ResourceType.TOPIC)
    marked = [manager.is_throttled("t", index) for index in (0, 1)]
    row = described(broker, "t", ResourceType.TOPIC)[key]
    alter(broker, "t", key, None, kind=ResourceType.TOPIC)

    assert answer == OK
    assert marked == throttled
    assert (row.value, synonyms(row)) == (text, [(key, text, ConfigSource.TOPIC)])
    assert not manager.is_throttled("t", 0)


def test_throttled_replicas_can_be_appended_and_subtracted(broker: Broker) -> None:
    for operation, value in (
        (ConfigOperation.SET, "0:1"),
        (ConfigOperation.APPEND, "1:1"),
        (ConfigOperation.SUBTRACT, "0:1"),
    ):
        alter(broker, "t", LEADER, value, operation, ResourceType.TOPIC)

    assert [broker.quotas.leader.is_throttled("t", index) for index in (0, 1)] == [False, True]


def test_malformed_throttled_replicas_are_refused(broker: Broker) -> None:
    answer = alter(broker, "t", LEADER, "0", kind=ResourceType.TOPIC)

    assert answer == (
        ErrorCode.INVALID_CONFIG,
        f"Invalid value [0] for configuration {LEADER}: {LEADER} must be the literal '*' or a list of "
        "replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
    )


def test_a_new_topic_can_be_throttled_and_a_deleted_one_is_forgotten(broker: Broker) -> None:
    topic = CreatableTopic(
        name="new",
        num_partitions=1,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=LEADER, value="*")],
    )

    (answer,) = BrokerClient(broker).send(CreateTopicsRequest(topics=[topic])).topics
    throttled = broker.quotas.leader.is_throttled("new", 0)
    created = broker.topics.named("new")
    assert created is not None
    broker.topics.delete(created)

    assert answer.error_code == ErrorCode.NONE
    assert (LEADER, "*") in [(config.name, config.value) for config in answer.configs or ()]
    assert throttled
    assert not broker.quotas.leader.marked


def test_all_limits_survive_a_restart(tmp_path: Path) -> None:
    metadata = MetadataStore(":memory:")
    before = make_broker(tmp_path, metadata=metadata)
    before.topics.create("t", 1, {FOLLOWER: "0:1"})
    alter(before, NODE, "max.connections", "7")
    alter(before, CLUSTER, "follower.replication.throttled.rate", "8")
    alter(before, CLUSTER, "log.retention.ms", "9")
    before.logs.close()

    after = make_broker(tmp_path, metadata=metadata)

    assert after.connection_quotas.limits.max_connections == 7
    assert after.quotas.follower.bound == 8
    assert after.quotas.follower.is_throttled("t", 0)
    assert after.topics.defaults.retention_ms == 9


def test_a_move_between_directories_respects_its_rate(tmp_path: Path) -> None:
    broker = make_broker(
        tmp_path / "one", more_log_dirs=[tmp_path / "two"], log_defaults=LogConfig(segment_bytes=1 << 20)
    )
    clock = broker.clock
    assert isinstance(clock, MockClock)
    log = broker.topics.create("t", 1, {}).partitions[0]
    for _ in range(40):
        log.append(batch_of(bytes(30_000)), clock.now_ms())
    alter(broker, NODE, "replica.alter.log.dirs.io.max.bytes.per.second", "100000")
    target = next(each for each in broker.logs.directories if each != log.directory.parent)
    move = broker.logs.move("t", 0, target, clock)
    assert move is not None

    started_ms = clock.monotonic_ms()
    for step in move.steps():
        if isinstance(step, Pause):
            clock.advance(step.wait_ms)

    took_s = (clock.monotonic_ms() - started_ms) / 1000
    assert log.directory.parent == target
    assert log.size_bytes > 1_200_000
    assert 10 < took_s < 14


def test_a_follower_above_the_rate_gets_no_throttled_partitions(broker: Broker) -> None:
    alter(broker, "t", LEADER, "0:1", kind=ResourceType.TOPIC)
    alter(broker, NODE, "leader.replication.throttled.rate", "10")
    for log in broker.topics.by_name["t"].partitions:
        log.append(batch_of(b"x" * 1000), broker.clock.now_ms())
    request = fetch_request("t", 0, 0, replica_id=2)

    sizes = []
    for _ in range(2):
        (topic,) = BrokerClient(broker).send(request, 12).responses
        sizes.append([len(partition.records or b"") > 0 for partition in topic.partitions])

    assert sizes == [[True, True], [False, True]]
