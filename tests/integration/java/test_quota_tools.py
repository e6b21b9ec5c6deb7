"""kafka-configs.sh and kafka-topics.sh with quotas, against the host; Apache Kafka 4.3.1 meets the same
expectations.
"""

from __future__ import annotations

import re

import pytest

from integration.java.console_tools import ConsoleTools
from odradek.client.admin import AdminClient
from odradek.client.connection import Connection
from odradek.client.quotas import ANY
from odradek.plugin.client_quota import ClientQuotaEntity
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

CONFIGS, TOPICS = "kafka-configs", "kafka-topics"


def entity(*parts: tuple[str, str | None]) -> list[str]:
    """Types and names as the tool expects them; None is the default."""
    found: list[str] = []
    for kind, name in parts:
        found += ["--entity-type", kind]
        found += ["--entity-default"] if name is None else ["--entity-name", name]
    return found


ENTITIES = [
    pytest.param(
        [("users", "alice")], "producer_byte_rate=1024", "user alice", "user-principal 'alice'", id="user"
    ),
    pytest.param(
        [("users", None)],
        "consumer_byte_rate=2048,request_percentage=12.5",
        None,
        "the default user-principal",
        id="default-user",
    ),
    pytest.param(
        [("clients", "c 1")], "controller_mutation_rate=5", "client c 1", "client-id 'c 1'", id="client"
    ),
    pytest.param(
        [("clients", None)], "request_percentage=0.5", None, "the default client-id", id="default-client"
    ),
    pytest.param(
        [("users", "bob"), ("clients", "c2")],
        "producer_byte_rate=10485760",
        "user bob",
        "user-principal 'bob', client-id 'c2'",
        id="user-and-client",
    ),
    pytest.param(
        [("users", "bob"), ("clients", None)],
        "producer_byte_rate=4096",
        "user bob",
        "user-principal 'bob', the default client-id",
        id="user-and-default-client",
    ),
    pytest.param(
        [("ips", "10.1.2.3")], "connection_creation_rate=50", "ip 10.1.2.3", "ip '10.1.2.3'", id="ip"
    ),
    pytest.param([("ips", None)], "connection_creation_rate=99", None, "the default ip", id="default-ip"),
]


def values(text: str) -> dict[str, float]:
    return {key: float(value) for key, value in re.findall(r"([a-z_]+)=([0-9.E]+)", text)}


@pytest.mark.parametrize(("parts", "added", "updated", "described"), ENTITIES)
def test_kafka_configs_sets_describes_and_deletes(
    tools: ConsoleTools, parts: list[tuple[str, str | None]], added: str, updated: str | None, described: str
) -> None:
    who = entity(*parts)
    set_lines = tools.succeed(CONFIGS, "--alter", *who, "--add-config", added)

    shown = tools.succeed(CONFIGS, "--describe", *who)
    keys = ",".join(values(added))
    tools.succeed(CONFIGS, "--alter", *who, "--delete-config", keys)
    left = tools.succeed(CONFIGS, "--describe", *who)

    done = f"config for {updated}" if updated else f"default config for {parts[0][0]} in the cluster"
    assert set_lines == [f"Completed updating {done}."]
    (line,) = [line for line in shown if line.startswith("Quota configs")]
    assert line.startswith(f"Quota configs for {described} are ")
    assert values(line) == values(added)
    assert [line for line in left if line.startswith("Quota configs")] == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--entity-type users --entity-name u --add-config producer_byte_rate=0", "must be greater than 0"),
        (
            "--entity-type users --entity-name u --add-config producer_byte_rate=1.5",
            "producer_byte_rate cannot be a fractional value.",
        ),
        (
            "--entity-type users --entity-name u --delete-config producer_byte_rate",
            "Invalid config(s): producer_byte_rate",
        ),
        (
            "--entity-type brokers --entity-default --add-config max.connections=-1",
            "Value must be at least 0",
        ),
        (
            "--entity-type brokers --entity-name 1 --add-config quota.window.num=5",
            "Cannot update these configs dynamically",
        ),
    ],
)
def test_kafka_configs_prints_the_reason_of_a_refusal(
    tools: ConsoleTools, options: str, message: str
) -> None:
    finished = tools.run(CONFIGS, "--alter", *options.split())

    assert finished.status == 1
    assert message in finished.said


def test_kafka_configs_limits_connections_of_brokers(tools: ConsoleTools) -> None:
    wanted = (
        "max.connections=500,max.connection.creation.rate=400,listener.name.plaintext.max.connections=300"
    )
    brokers = ("--entity-type", "brokers", "--entity-default")
    node = ("--entity-type", "brokers", "--entity-name", "1")

    tools.succeed(CONFIGS, "--alter", *brokers, "--add-config", wanted)
    tools.succeed(CONFIGS, "--alter", *node, "--add-config", "max.connections=450")
    common, own = tools.succeed(CONFIGS, "--describe", *brokers), tools.succeed(CONFIGS, "--describe", *node)
    keys = ",".join(item.partition("=")[0] for item in wanted.split(","))
    tools.succeed(CONFIGS, "--alter", *brokers, "--delete-config", keys)
    tools.succeed(CONFIGS, "--alter", *node, "--delete-config", "max.connections")

    # Kafka 4.3.1 sets min.insync.replicas on all brokers of a new cluster
    expected = sorted([*wanted.split(","), "min.insync.replicas=1"])
    assert [line.split()[0] for line in common[1:]] == expected
    assert [line for line in own if line.startswith("  max.connections=")] == [
        "  max.connections=450 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:max.connections=450, "
        "DYNAMIC_DEFAULT_BROKER_CONFIG:max.connections=500, DEFAULT_CONFIG:max.connections=2147483647}"
    ]
    left = tools.succeed(CONFIGS, "--describe", *brokers)
    assert [line.split()[0] for line in left[1:]] == ["min.insync.replicas=1"]


def test_kafka_configs_throttles_replicas(tools: ConsoleTools) -> None:
    tools.create_topic("throttled", 2)
    topic = ("--entity-type", "topics", "--entity-name", "throttled")
    wanted = "leader.replication.throttled.replicas=[0:1,1:1],follower.replication.throttled.replicas=*"

    tools.succeed(CONFIGS, "--alter", *topic, "--add-config", wanted)
    tools.succeed(
        CONFIGS,
        *("--alter", "--entity-type", "brokers", "--entity-name", "1"),
        *("--add-config", "leader.replication.throttled.rate=1000000"),
    )

    lines = tools.succeed(CONFIGS, "--describe", *topic)
    assert [line.split()[0] for line in lines[1:]] == [
        "follower.replication.throttled.replicas=*",
        "leader.replication.throttled.replicas=0:1,1:1",
    ]


@pytest.fixture
def slow_user(tools: ConsoleTools) -> ClientQuotaEntity:
    """ANONYMOUS may create 5 partitions per second, and 55 at once."""
    anonymous = ClientQuotaEntity(user="ANONYMOUS")
    with AdminClient(tools.bootstrap) as admin:
        admin.alter_client_quotas({anonymous: {"controller_mutation_rate": 5}})
    return anonymous


def test_kafka_topics_does_not_retry_after_a_refusal(
    tools: ConsoleTools, slow_user: ClientQuotaEntity
) -> None:
    """The first 500 partitions overdraw the budget, which is allowed; the next one is refused, and the tool
    reports it without trying again.
    """
    try:
        first = tools.run(TOPICS, "--create", "--topic", "many", "--partitions", "500")
        second = tools.run(TOPICS, "--create", "--topic", "one-too-many", "--partitions", "1")
    finally:
        lift(tools, slow_user)

    assert first.status == 0, first.said
    assert "Created topic many." in first.out
    assert second.status == 1
    assert "ThrottlingQuotaExceededException: The throttling quota has been exceeded." in second.said


def test_requests_of_old_versions_are_throttled_but_not_refused(
    tools: ConsoleTools, slow_user: ClientQuotaEntity
) -> None:
    host, _, port = tools.bootstrap.rpartition(":")
    answers: list[CreateTopicsResponse] = []
    try:
        # each on its own connection, which is not read while it is throttled
        for name, version in (("old-1", 5), ("old-2", 5), ("new-1", 6)):
            topic = CreatableTopic(name=name, num_partitions=100, replication_factor=1)
            with Connection(host, int(port)) as connection:
                request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
                answers.append(connection.send(request, most_version=version))
    finally:
        lift(tools, slow_user)

    codes = [answer.topics[0].error_code for answer in answers]
    throttles_ms = [answer.throttle_time_ms for answer in answers]
    assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    assert all(throttle_ms > 0 for throttle_ms in throttles_ms)
    assert throttles_ms[0] < throttles_ms[1]


def lift(tools: ConsoleTools, user: ClientQuotaEntity) -> None:
    """Remove the quota."""
    with AdminClient(tools.bootstrap) as admin:
        admin.alter_client_quotas({user: {"controller_mutation_rate": None}})


def test_another_client_sees_the_quotas_set_by_a_tool(tools: ConsoleTools) -> None:
    tools.succeed(CONFIGS, "--alter", "--user", "carol", "--add-config", "request_percentage=200")

    with AdminClient(tools.bootstrap) as admin:
        found = admin.describe_client_quotas({"user": ANY}, strict=True)

    assert found[ClientQuotaEntity(user="carol")] == {"request_percentage": 200}
