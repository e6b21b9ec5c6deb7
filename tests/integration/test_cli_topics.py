"""``odradek topics`` against a host, over the network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.client.admin import AdminClient
from odradek.client.elections import ElectionType
from odradek.client.resources import NewTopic
from odradek.wire.error_code import ErrorCode
from support.hosts import ThreadedHost, running_host
from support.tools import Done, Tool, command_line


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHost]:
    """One host for all tests of this file, which use different topics."""
    with running_host(tmp_path_factory.mktemp("topics") / "data") as started:
        yield started


@pytest.fixture
def tool(host: ThreadedHost, capsys: pytest.CaptureFixture[str]) -> Tool:
    return command_line(host.bootstrap, "topics", capsys)


def test_a_topic_is_created_changed_and_deleted(tool: Tool) -> None:
    created = tool("--create", "--topic", "life", "--partitions", "2", "--config", "retention.ms=1000")
    described = tool("--describe", "--topic", "life")
    altered = tool("--alter", "--topic", "life", "--partitions", "3")
    grown = tool("--describe", "--topic", "life")
    deleted = tool("--delete", "--topic", "life")
    listed = tool("--list", "--topic", "life")

    assert created == Done(0, ["Created topic life."], [])
    heading, *rows = described.out
    assert re.fullmatch(
        r"Topic: life\tTopicId: [-\w]{22}\tPartitionCount: 2\tReplicationFactor: 1\t"
        r"Configs: min.insync.replicas=1,retention.ms=1000",
        heading,
    )
    assert rows == [
        f"\tTopic: life\tPartition: {index}\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: "
        for index in (0, 1)
    ]
    assert altered == deleted == Done(0, [], [])
    assert "PartitionCount: 3" in grown.out[0]
    assert len(grown.out) == 4
    assert listed == Done(0, [""], [])


def test_expressions_select_topics(tool: Tool) -> None:
    for name in ("exp-1", "exp-2", "exp-10"):
        tool("--create", "--topic", name)

    listed = tool("--list", "--topic", "exp-1.*")
    deleted = tool("--delete", "--topic", "exp-1, exp-2")
    left = tool("--list", "--topic", "exp-.*")

    assert listed.out == ["exp-1", "exp-10"]
    assert deleted.status == 0
    assert left.out == ["exp-10"]


def test_a_topic_is_found_by_its_id(tool: Tool) -> None:
    tool("--create", "--topic", "by-id")
    topic_id = tool("--describe", "--topic", "by-id").out[0].split("TopicId: ")[1].split("\t")[0]

    found = tool("--describe", "--topic-id", topic_id)

    assert found.out == tool("--describe", "--topic", "by-id").out


def test_many_partitions_are_described_page_by_page(tool: Tool) -> None:
    tool("--create", "--topic", "wide", "--partitions", "25")
    tool("--create", "--topic", "wide-too", "--partitions", "5")

    described = tool("--describe", "--topic", "wide.*", "--partition-size-limit-per-response", "4")

    shown = [line.split("\t")[1:3] for line in described.out if line.startswith("\t")]
    assert shown == [["Topic: wide", f"Partition: {index}"] for index in range(25)] + [
        ["Topic: wide-too", f"Partition: {index}"] for index in range(5)
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--create", "--topic", "there"), "there: TOPIC_ALREADY_EXISTS: Topic 'there' already exists."),
        (("--create", "--topic", "bad/name"), "bad/name: INVALID_TOPIC_EXCEPTION: Topic name is invalid"),
        (("--create", "--topic", "x", "--config", "no.such=1"), "x: INVALID_CONFIG: Unknown topic config"),
        (("--create", "--topic", "x", "--replication-factor", "3"), "x: INVALID_REPLICATION_FACTOR: "),
        (("--alter", "--topic", "there", "--partitions", "1"), "there: INVALID_PARTITIONS: "),
        (("--delete", "--topic", "nowhere"), "Topic 'nowhere' does not exist as expected"),
    ],
)
def test_a_refusal_is_one_line_and_status_1(tool: Tool, arguments: tuple[str, ...], words: str) -> None:
    tool("--create", "--topic", "there", "--partitions", "2", "--if-not-exists")

    done = tool(*arguments)

    assert (done.status, done.out) == (1, [])
    (line,) = done.err
    assert line.startswith(f"Error while executing topic command : {words}")


def test_an_unreachable_host_is_one_line_and_status_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_host(tmp_path / "data") as stopped:
        gone = stopped.bootstrap

    done = command_line(gone, "topics", capsys)("--list")

    assert done == Done(1, [], [f"Error while executing topic command : {gone}: connection refused"])


def test_the_client_can_do_more_than_the_command_line(host: ThreadedHost) -> None:
    with AdminClient(host.bootstrap, timeout_s=10) as admin:
        admin.create_topics([NewTopic(name="beside", partitions=1)])

        left = admin.delete_records({("beside", 0): 0})
        directories = admin.describe_log_dirs()
        elected = admin.elect_leaders(ElectionType.PREFERRED, [("beside", 0), ("nowhere", 0)])

    ((broker, (directory,)),) = directories.items()
    assert left == {("beside", 0): 0}
    assert (broker, directory.error) == (1, None)
    assert directory.replicas["beside", 0].size_bytes == 0
    assert {at: outcome and outcome.code for at, outcome in elected.items()} == {
        ("beside", 0): ErrorCode.ELECTION_NOT_NEEDED,
        ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
