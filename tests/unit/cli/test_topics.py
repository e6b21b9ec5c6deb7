from __future__ import annotations

import pytest

from odradek.cli.main import run
from odradek.client import command_config
from odradek.client.errors import ConnectFailed
from odradek.client.resources import ConfigEntry, ConfigResource, NewPartitions, NewTopic
from odradek.wire.config_resource import ConfigSource, ConfigType, ResourceType
from support.fake_admin import FakeAdmin, partition, topic

Capture = pytest.CaptureFixture[str]
TOPIC_ID = "wQmE7j8XSgSY0lqxJVGb0A"


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> FakeAdmin:
    fake = FakeAdmin(
        topics={
            "pay.ments": topic("pay.ments"),
            "orders": topic("orders", partition(0), partition(1)),
            "__consumer_offsets": topic("__consumer_offsets", is_internal=True),
        }
    )
    monkeypatch.setattr(command_config, "AdminClient", fake.client)
    return fake


def tool(*arguments: str) -> int:
    return run(["topics", "--bootstrap-server", "h:1", *arguments])


def entry(name: str, value: str, source: ConfigSource) -> ConfigEntry:
    return ConfigEntry(
        name=name, value=value, source=source, type=ConfigType.LONG, read_only=False, sensitive=False
    )


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ((), "__consumer_offsets\norders\npay.ments\n"),
        (("--exclude-internal",), "orders\npay.ments\n"),
        (("--topic", "ord.*"), "orders\n"),
        (("--topic", "ord"), "\n"),
        (("--topic", '"orders, pay.*"'), "orders\npay.ments\n"),
        (("--topic", "nothing"), "\n"),
    ],
)
def test_list_prints_the_names_that_match(
    admin: FakeAdmin, capsys: Capture, arguments: tuple[str, ...], names: str
) -> None:
    status = tool("--list", *arguments)

    assert (status, capsys.readouterr().out) == (0, names)


def test_describe_prints_the_same_as_kafka_topics(admin: FakeAdmin, capsys: Capture) -> None:
    raw = bytes.fromhex("c10984ee3f174a0498d25ab125519bd0")
    admin.topics["orders"] = topic("orders", partition(0), partition(1), topic_id=raw)
    admin.configs[ConfigResource(ResourceType.TOPIC, "orders")] = [
        entry("min.insync.replicas", "1", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        entry("cleanup.policy", "delete", ConfigSource.TOPIC),
        entry("segment.ms", "7", ConfigSource.DEFAULT),
    ]

    status = tool("--describe", "--topic", "orders")

    assert status == 0
    assert capsys.readouterr().out == (
        f"Topic: orders\tTopicId: {TOPIC_ID}\tPartitionCount: 2\tReplicationFactor: 1\t"
        "Configs: cleanup.policy=delete,min.insync.replicas=1\n"
        "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: \n"
        "\tTopic: orders\tPartition: 1\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: \n"
    )


def test_describe_marks_values_an_older_broker_does_not_return(admin: FakeAdmin, capsys: Capture) -> None:
    row = partition(0, leader=None, eligible_leader_replicas=None, last_known_eligible=None)
    admin.topics["old"] = topic("old", row)

    status = tool("--describe", "--topic", "old")

    assert status == 0
    assert capsys.readouterr().out.splitlines() == [
        "Topic: old\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: ",
        "\tTopic: old\tPartition: 0\tLeader: none\tReplicas: 1\tIsr: 1\tElr: N/A\tLastKnownElr: N/A",
    ]


@pytest.mark.parametrize(
    ("option", "shown"),
    [
        ("--unavailable-partitions", [1, 2]),
        ("--under-replicated-partitions", [3]),
        ("--under-min-isr-partitions", [1, 3]),
        ("--at-min-isr-partitions", [0, 1, 2]),
    ],
)
def test_describe_can_show_only_partitions_in_trouble(
    admin: FakeAdmin, capsys: Capture, option: str, shown: list[int]
) -> None:
    pair = {"replicas": [1, 2], "in_sync": [1, 2]}
    admin.topics["t"] = topic(
        "t",
        partition(0, **pair),
        partition(1, **pair, leader=None),
        partition(2, **pair, leader=2),
        partition(3, replicas=[1, 2], in_sync=[1]),
    )
    admin.configs[ConfigResource(ResourceType.TOPIC, "t")] = [
        entry("min.insync.replicas", "2", ConfigSource.TOPIC)
    ]

    status = tool("--describe", "--topic", "t", option)

    lines = capsys.readouterr().out.splitlines()
    assert status == 0
    assert [int(line.split("Partition: ")[1].split("\t")[0]) for line in lines] == shown


def test_describe_can_show_only_topics_with_overridden_configs(admin: FakeAdmin, capsys: Capture) -> None:
    admin.configs[ConfigResource(ResourceType.TOPIC, "orders")] = [
        entry("segment.ms", "7", ConfigSource.TOPIC)
    ]

    status = tool("--describe", "--topics-with-overrides")

    assert status == 0
    assert capsys.readouterr().out == (
        "Topic: orders\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: segment.ms=7\n"
    )


def test_a_topic_can_be_described_by_its_id(admin: FakeAdmin, capsys: Capture) -> None:
    raw = bytes.fromhex("c10984ee3f174a0498d25ab125519bd0")
    admin.topics["named"] = topic("named", topic_id=raw)

    status = tool("--describe", "--topic-id", TOPIC_ID)

    assert status == 0
    assert capsys.readouterr().out.startswith("Topic: named\t")


def test_create_sends_all_options(admin: FakeAdmin, capsys: Capture) -> None:
    status = tool(
        "--create",
        "--topic",
        "new",
        "--partitions",
        "3",
        "--replication-factor",
        "1",
        "--config",
        "retention.ms = 5",
        "--config",
        "x=a=b",
    )

    assert status == 0
    assert capsys.readouterr().out == "Created topic new.\n"
    assert admin.done == [
        NewTopic(name="new", partitions=3, replication_factor=1, configs={"retention.ms": "5", "x": "a=b"})
    ]


def test_create_leaves_missing_options_to_the_broker(admin: FakeAdmin) -> None:
    status = tool("--create", "--topic", "new")

    assert status == 0
    assert admin.done == [NewTopic(name="new", partitions=-1, replication_factor=-1)]


def test_create_accepts_an_assignment(admin: FakeAdmin) -> None:
    status = tool("--create", "--topic", "new", "--replica-assignment", "1:2,2:1")

    assert status == 0
    assert admin.done == [NewTopic(name="new", assignments=[[1, 2], [2, 1]])]


@pytest.mark.parametrize("name", ["a.b", "a_b"])
def test_create_warns_of_names_that_collide_in_metrics(admin: FakeAdmin, capsys: Capture, name: str) -> None:
    status = tool("--create", "--topic", name)

    first, last = capsys.readouterr().out.splitlines()
    assert status == 0
    assert first.startswith("WARNING: ")
    assert last == f"Created topic {name}."


def test_an_existing_topic_is_an_error_without_if_not_exists(admin: FakeAdmin, capsys: Capture) -> None:
    refused = tool("--create", "--topic", "orders")
    error = capsys.readouterr()
    content = tool("--create", "--topic", "orders", "--if-not-exists")

    assert (refused, content) == (1, 0)
    assert error.err == "Error while executing topic command : orders: TOPIC_ALREADY_EXISTS\n"
    assert error.out == capsys.readouterr().out == ""


def test_alter_adds_partitions_to_every_match(admin: FakeAdmin, capsys: Capture) -> None:
    status = tool("--alter", "--topic", "orders|pay.*", "--partitions", "5")

    assert (status, capsys.readouterr().out) == (0, "")
    assert admin.done == [{"orders": NewPartitions(5), "pay.ments": NewPartitions(5)}]


def test_alter_assigns_new_partitions_from_the_whole_list(admin: FakeAdmin) -> None:
    status = tool("--alter", "--topic", "orders", "--partitions", "4", "--replica-assignment", "1,1,2,3")

    assert status == 0
    assert admin.done == [{"orders": NewPartitions(4, [[2], [3]])}]


def test_delete_deletes_every_match(admin: FakeAdmin) -> None:
    status = tool("--delete", "--topic", "orders|pay.*")

    assert status == 0
    assert admin.done == [["orders", "pay.ments"]]


@pytest.mark.parametrize(
    "action", [("--describe",), ("--delete",), ("--alter", "--partitions", "2")], ids=lambda row: row[0]
)
def test_an_unknown_topic_is_an_error_without_if_exists(
    admin: FakeAdmin, capsys: Capture, action: tuple[str, ...]
) -> None:
    refused = tool(*action, "--topic", "nope")
    error = capsys.readouterr().err
    content = tool(*action, "--topic", "nope", "--if-exists")

    assert (refused, content) == (1, 0)
    assert error == "Error while executing topic command : Topic 'nope' does not exist as expected\n"
    assert [row for row in admin.done if row] == []


def test_an_unknown_topic_id_is_an_error_without_if_exists(admin: FakeAdmin, capsys: Capture) -> None:
    refused = tool("--describe", "--topic-id", TOPIC_ID)
    error = capsys.readouterr().err
    content = tool("--describe", "--topic-id", TOPIC_ID, "--if-exists")

    assert (refused, content) == (1, 0)
    assert error == f"Error while executing topic command : TopicId '{TOPIC_ID}' does not exist as expected\n"


def test_an_unreachable_broker_is_one_line_and_status_1(admin: FakeAdmin, capsys: Capture) -> None:
    admin.failure = ConnectFailed("h:1: connection refused")

    status = tool("--list")

    assert status == 1
    assert capsys.readouterr().err == "Error while executing topic command : h:1: connection refused\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "exactly one action: --list, --describe, --create, --alter or --delete"),
        (("--list", "--describe"), "exactly one action"),
        (("--create",), "option --topic is missing with --create"),
        (("--delete",), "option --topic is missing with --delete"),
        (("--alter", "--topic", "t"), "option --partitions is missing with --alter"),
        (("--alter", "--topic", "t", "--config", "a=b"), "--config can't be used with --alter"),
        (("--describe", "--partitions", "1"), "option --partitions can't be used with --describe"),
        (("--alter", "--topic", "t", "--partitions", "2", "--replication-factor", "1"), "can't be used"),
        (("--list", "--if-exists"), "option --if-exists can't be used with --list"),
        (("--delete", "--topic", "t", "--if-not-exists"), "option --if-not-exists can't be used with"),
        (("--create", "--topic", "t", "--exclude-internal"), "option --exclude-internal can't be used"),
        (("--list", "--unavailable-partitions"), "option --unavailable-partitions can't be used"),
        (
            ("--describe", "--topics-with-overrides", "--at-min-isr-partitions"),
            "option --topics-with-overrides can't be used with --at-min-isr-partitions",
        ),
        (
            ("--create", "--topic", "t", "--replica-assignment", "1", "--partitions", "1"),
            "option --replica-assignment can't be used with --partitions",
        ),
        (("--create", "--topic", "t", "--partitions", "0"), "--partitions"),
        (("--create", "--topic", "t", "--config", "nonsense"), "expected key=value, found 'nonsense'"),
        (("--create", "--topic", "t", "--config", "=1"), "expected key=value, found '=1'"),
        (("--create", "--topic", "t", "--replica-assignment", "1,x"), "expected 1:2,2:3, found '1,x'"),
        (("--create", "--topic", "t", "--replica-assignment", "1:1"), "a partition lists a broker twice"),
        (
            ("--create", "--topic", "t", "--replica-assignment", "1:2,3"),
            "expected the same number of brokers per partition",
        ),
        (("--list", "--topic", "["), "'[' is not a regular expression"),
        (("--describe", "--topic-id", "short"), "option --topic-id: not a base64url uuid: short"),
    ],
)
def test_a_bad_command_line_is_one_line_and_status_2(
    admin: FakeAdmin, capsys: Capture, arguments: tuple[str, ...], message: str
) -> None:
    status = tool(*arguments)

    streams = capsys.readouterr()
    assert status == 2
    assert message in streams.err
    assert streams.err.startswith("odradek topics: ")
    assert (streams.err.count("\n"), streams.out) == (1, "")
    assert admin.done == []
