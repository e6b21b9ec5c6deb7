"""Tools that describe the cluster; the expectations hold for Apache Kafka 4.4.0 too, but for features."""

from __future__ import annotations

import json
import re

import pytest

from integration.java.console_tools import MAIN_CLASSES, ConsoleTools
from integration.java.jvm import Jvm

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
RANGE = re.compile(r"\t(?P<api>\w+)\((?P<key>\d+)\): (?P<range>[^\[]+) \[usable: (?P<usable>\d+)\]")
OF_CLIENTS = {
    "Produce": "0 to 13",
    "Fetch": "4 to 18",
    "ListOffsets": "1 to 11",
    "Metadata": "0 to 13",
    "OffsetCommit": "2 to 10",
    "OffsetFetch": "1 to 10",
    "FindCoordinator": "0 to 6",
    "JoinGroup": "0 to 9",
    "Heartbeat": "0 to 4",
    "LeaveGroup": "0 to 5",
    "SyncGroup": "0 to 5",
    "InitProducerId": "0 to 5",
    "AddPartitionsToTxn": "0 to 5",
    "AddOffsetsToTxn": "0 to 4",
    "EndTxn": "0 to 5",
    "TxnOffsetCommit": "0 to 6",
    "ConsumerGroupHeartbeat": "0 to 1",
}
"""The ranges that Apache Kafka 4.4.0 shows for the APIs of producers and consumers."""


def test_kafka_broker_api_versions_shows_kafkas_ranges(tools: ConsoleTools) -> None:
    lines = tools.succeed("kafka-broker-api-versions")

    assert re.match(rf"{re.escape(tools.bootstrap)} \(id: 1 rack: null isFenced: false\) -> \(", lines[0])
    shown = {match["api"]: match["range"] for line in lines if (match := RANGE.match(line))}
    assert {api: shown.get(api) for api in OF_CLIENTS} == OF_CLIENTS
    unknown = [line for line in lines if "UNKNOWN" in line]
    assert [line.split(":")[0].strip() for line in unknown] == ["UNKNOWN(93)"]  # to this tool, Kafka 4.3's


def test_kafka_features_shows_finalized_levels(tools: ConsoleTools) -> None:
    lines = tools.succeed("kafka-features", "describe")

    levels = {line.split()[1]: line.split("FinalizedVersionLevel: ")[1].split()[0] for line in lines}
    assert levels == {
        "eligible.leader.replicas.version": "0",
        "group.version": "1",
        "kraft.version": "0",
        "metadata.version": "UNKNOWN",  # level 33: the tool is that of Kafka 4.3
        "share.version": "2",
        "streams.version": "1",
        "transaction.version": "2",
    }


def test_kafka_features_lowers_a_feature_and_takes_it_back(tools: ConsoleTools) -> None:
    tools.succeed("kafka-features", "downgrade", "--feature", "streams.version=0")
    lowered = tools.succeed("kafka-features", "describe")
    tools.succeed("kafka-features", "upgrade", "--feature", "streams.version=1")

    (row,) = (line.split() for line in lowered if "streams.version" in line)
    assert row[row.index("FinalizedVersionLevel:") + 1] == "0"


def test_kafka_metadata_quorum_shows_one_leader_and_no_followers(tools: ConsoleTools) -> None:
    status = tools.succeed("kafka-metadata-quorum", "describe", "--status")
    replication = tools.succeed("kafka-metadata-quorum", "describe", "--replication")

    values = dict(line.split(":", 1) for line in status)
    assert values["LeaderId"].strip() == "1"
    assert values["MaxFollowerLag"].strip() == "0"
    assert [voter["id"] for voter in json.loads(values["CurrentVoters"])] == [1]
    assert values["CurrentObservers"].strip() == "[]"
    assert replication[0].split()[:2] == ["NodeId", "DirectoryId"]
    assert [(line.split()[0], line.split()[-1]) for line in replication[1:]] == [("1", "Leader")]


def test_kafka_cluster_shows_its_id_and_endpoints(jvm: Jvm, tools: ConsoleTools) -> None:
    main_class, server = MAIN_CLASSES["kafka-cluster"], ("--bootstrap-server", tools.bootstrap)

    identity = jvm.run(main_class, "cluster-id", *server)
    endpoints = jvm.run(main_class, "list-endpoints", *server)

    assert re.fullmatch(r"Cluster ID: \S{22}\n", identity.out), identity.said
    host, _, port = tools.bootstrap.partition(":")
    assert endpoints.out.splitlines()[1].split() == ["1", host, port, "null", "unfenced", "broker"]


def test_kafka_log_dirs_shows_sizes(tools: ConsoleTools) -> None:
    tools.create_topic("sized", 2)
    tools.produce_lines("sized", ["a" * 1000])

    shown = tools.succeed("kafka-log-dirs", "--describe", "--topic-list", "sized", "--broker-list", "1")

    brokers = json.loads(shown[-1])["brokers"]
    assert [broker["broker"] for broker in brokers] == [1]
    partitions = [row for directory in brokers[0]["logDirs"] for row in directory["partitions"]]
    assert sorted(row["partition"] for row in partitions) == ["sized-0", "sized-1"]
    assert sum(row["size"] for row in partitions) > 1000
    assert all(row["offsetLag"] == 0 and not row["isFuture"] for row in partitions)
    assert all(directory["error"] is None for directory in brokers[0]["logDirs"])


@pytest.mark.parametrize("kind", ["preferred", "unclean"])
def test_kafka_leader_election_reports_the_leader_as_elected(tools: ConsoleTools, kind: str) -> None:
    topic = f"led-{kind}"
    tools.create_topic(topic)

    elected = tools.succeed(
        "kafka-leader-election", "--election-type", kind, "--topic", topic, "--partition", "0"
    )

    assert elected == [f"Valid replica already elected for partitions {topic}-0"]


def test_kafka_leader_election_accepts_all_partitions(tools: ConsoleTools) -> None:
    tools.create_topic("led-with-all", 3)

    every = ("--election-type", "preferred", "--all-topic-partitions")

    assert tools.succeed("kafka-leader-election", *every) == []
