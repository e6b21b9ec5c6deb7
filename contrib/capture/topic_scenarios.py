"""Scenarios of the APIs about topics: creating, growing, describing and deleting them, and what a cluster of
one node says about leaders and reassignments."""

from __future__ import annotations

import time
from typing import Any

from contrib.capture.golden import Recorder, Scenario
from contrib.capture.host_requests import request

from odradek.wire.codec import decode
from odradek.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from odradek.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from odradek.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from odradek.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)

APPLY_S = 0.5
"""A topic reaches the broker through the metadata log, after the response."""
TIMEOUT_MS = 10_000
NOBODY = b"\1" * 16
"""An id that no topic has."""
DYNAMIC_IDS = "dynamic: the ids of topics"


def new(name: str, partitions: int = 1, factor: int = -1, **configs: str | None) -> CreatableTopic:
    """A topic to create; ``retention_ms`` stands for retention.ms."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ],
    )


def assigned(
    name: str, *replicas: tuple[int, list[int]], partitions: int = -1, factor: int = -1
) -> CreatableTopic:
    """A topic whose replicas are given: partition and brokers."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=ids) for index, ids in replicas
        ],
    )


def create(
    say: Recorder, label: str, *topics: CreatableTopic, version: int = 7, **fields: Any
) -> dict[str, bytes]:
    """Ask for topics; their ids by name."""
    message = CreateTopicsRequest(topics=list(topics), timeout_ms=TIMEOUT_MS, **fields)
    body = say.ask(label, request(message, version))
    time.sleep(APPLY_S)
    answer = decode(CreateTopicsResponse, version, body, 1 if version >= 5 else 0)
    return {topic.name: topic.topic_id for topic in answer.topics}


def delete(say: Recorder, label: str, *states: DeleteTopicState) -> None:
    say.ask(label, request(DeleteTopicsRequest(topics=list(states), timeout_ms=TIMEOUT_MS), 6))
    time.sleep(APPLY_S)


def delete_all(say: Recorder, *names: str) -> None:
    """Leave nothing for the next file."""
    delete(say, "delete what was created", *(DeleteTopicState(name=name) for name in names))


def created(say: Recorder) -> None:
    say.note(DYNAMIC_IDS)
    create(say, "a topic", new("made", 3))
    create(say, "without numbers", new("default", -1))
    create(say, "with an assignment", assigned("assigned", (0, [1]), (1, [1])))
    create(say, "with configuration", new("configured", retention_ms="1000", cleanup_policy="compact,delete"))
    create(say, "validateOnly", new("checked", 2), validate_only=True)
    create(say, "two, one of them bad", new("good"), new("a b"))
    delete_all(say, "made", "default", "assigned", "configured", "good")


def create_refused(say: Recorder) -> None:
    say.note(DYNAMIC_IDS)
    create(say, "a topic", new("there.is"))
    create(say, "again", new("there.is"))
    for name in ("", ".", "..", "a b", "\u00e4", "__cluster_metadata"):
        create(say, f"name {name!r}", new(name))
    create(say, "a name that collides", new("there_is"))
    create(say, "a name twice", new("twice"), new("twice"))
    for count in (0, -2, 20_000):
        create(say, f"{count} partitions", new("count", count))
    for factor in (0, 2, -3):
        create(say, f"factor {factor}", new("factor", 1, factor))
    for label, topic in {
        "both": assigned("as", (0, [1]), partitions=2),
        "factor too": assigned("as", (0, [1]), factor=1),
        "another broker": assigned("as", (0, [2])),
        "from 1 on": assigned("as", (1, [1])),
        "no replicas": assigned("as", (0, [])),
        "the same replica twice": assigned("as", (0, [1, 1])),
        "a partition twice": assigned("as", (0, [1]), (0, [1])),
        "a hole": assigned("as", (0, [1]), (2, [1])),
    }.items():
        create(say, f"assignment: {label}", topic)
    create(say, "validateOnly", new("a b"), new("there.is"), validate_only=True)
    delete_all(say, "there.is")


def create_config_refused(say: Recorder) -> None:
    for key, value in (
        ("nope", "1"),
        ("retention.ms", "abc"),
        ("retention.ms", "-2"),
        ("retention.ms", None),
        ("segment.bytes", "10"),
        ("segment.ms", "0"),
        ("cleanup.policy", "foo"),
        ("min.cleanable.dirty.ratio", "2"),
        ("preallocate", "maybe"),
        ("message.timestamp.type", "x"),
        ("compression.type", "x"),
        ("compression.lz4.level", "99"),
        ("compression.gzip.level", "0"),
        ("max.message.bytes", "-1"),
    ):
        topic = new("config")
        topic.configs = [CreatableTopicConfig(name=key, value=value)]
        create(say, f"{key}={value!r}", topic)
    create(say, "lags that cross", new("config", min_compaction_lag_ms="10", max_compaction_lag_ms="5"))


def deleted(say: Recorder) -> None:
    say.note(DYNAMIC_IDS)
    ids = create(say, "topics", new("a"), new("b"), new("c"), new("d"))
    delete(say, "a name", DeleteTopicState(name="a"))
    delete(say, "an id", DeleteTopicState(topic_id=ids["b"]))
    delete(say, "a name that is unknown", DeleteTopicState(name="nope"))
    delete(say, "an id that is unknown", DeleteTopicState(topic_id=NOBODY))
    delete(say, "neither", DeleteTopicState())
    delete(say, "both", DeleteTopicState(name="c", topic_id=NOBODY))
    delete(say, "a name twice", DeleteTopicState(name="c"), DeleteTopicState(name="c"))
    delete(say, "an id twice", DeleteTopicState(topic_id=NOBODY), DeleteTopicState(topic_id=NOBODY))
    delete(say, "by name and by id", DeleteTopicState(name="c"), DeleteTopicState(topic_id=ids["c"]))
    delete(say, "a good one beside a bad one", DeleteTopicState(name="d"), DeleteTopicState(name="nope"))
    old = DeleteTopicsRequest(topic_names=["c", "c", "nope"], timeout_ms=TIMEOUT_MS)
    say.ask("a name twice, version 5", request(old, 5))
    delete_all(say, "c")


def growing(name: str, count: int, *brokers: list[int] | None) -> CreatePartitionsTopic:
    """A topic with a number of partitions; None for no assignment."""
    assignments = [CreatePartitionsAssignment(broker_ids=ids) for ids in brokers if ids is not None]
    return CreatePartitionsTopic(name=name, count=count, assignments=None if None in brokers else assignments)


def grown(say: Recorder) -> None:
    def grow(label: str, *topics: CreatePartitionsTopic, validate_only: bool = False) -> None:
        message = CreatePartitionsRequest(
            topics=list(topics), timeout_ms=TIMEOUT_MS, validate_only=validate_only
        )
        say.ask(label, request(message, 3))
        time.sleep(APPLY_S)

    say.note(DYNAMIC_IDS)
    create(say, "a topic", new("grow", 3))
    grow("an unknown topic", growing("nope", 3, None))
    for count in (3, 2, 0, -1):
        grow(f"to {count}", growing("grow", count, None))
    grow("no assignments", growing("grow", 4))
    grow("too many assignments", growing("grow", 4, [1], [1]))
    grow("another broker", growing("grow", 4, [2]))
    grow("the same replica twice", growing("grow", 4, [1, 1]))
    grow("no replicas", growing("grow", 4, []))
    grow("twice", growing("grow", 4, None), growing("grow", 5, None))
    grow("validateOnly", growing("grow", 4, None), validate_only=True)
    grow("to 4 with an assignment", growing("grow", 4, [1]))
    grow("to 6", growing("grow", 6, None))
    grow("no topics")
    say.ask("describe", request(DescribeTopicPartitionsRequest(topics=[TopicRequest(name="grow")]), 0))
    delete_all(say, "grow")


def described(say: Recorder) -> None:
    def ask(label: str, *names: str, cursor: tuple[str, int] | None = None, limit: int = 2000) -> None:
        message = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=cursor and Cursor(topic_name=cursor[0], partition_index=cursor[1]),
        )
        say.ask(label, request(message, 0))

    say.note(DYNAMIC_IDS)
    create(say, "topics", new("x", 3), new("w", 1), new("z", 2))
    ask("one", "w")
    ask("several, not in order, one of them unknown, one twice", "z", "w", "nope", "w")
    ask("all")
    ask("an illegal name", "a b")
    for limit in (1, 2, 3, 4, 0, -1):
        ask(f"all, limit {limit}", limit=limit)
    ask("an unknown topic behind the page", "w", "x", "xx", limit=4)
    ask("a cursor", "x", "z", cursor=("x", 1))
    ask("a cursor among all", cursor=("x", 2))
    ask("a cursor to no topic among all", cursor=("xx", 2))
    ask("a cursor past the end", "x", cursor=("x", 3))
    ask("a cursor to a topic that is not named", "x", cursor=("w", 0))
    ask("a negative cursor", "x", cursor=("x", -1))
    delete_all(say, "x", "w", "z")


def elected(say: Recorder) -> None:
    def elect(label: str, topics: list[TopicPartitions] | None, kind: int = 0, version: int = 2) -> None:
        say.ask(label, request(ElectLeadersRequest(election_type=kind, topic_partitions=topics), version))

    say.note(DYNAMIC_IDS)
    create(say, "a topic", new("led", 2))
    for version in range(3):
        named = [TopicPartitions(topic="led", partitions=[0, 9])]
        elect("named", [*named, TopicPartitions(topic="nope", partitions=[0])], version=version)
    elect("all", None)
    elect("none", [])
    elect("unclean", [TopicPartitions(topic="led", partitions=[0])], 1)
    elect("type 7", [TopicPartitions(topic="led", partitions=[0])], 7)
    elect("a partition twice", [TopicPartitions(topic="led", partitions=[0, 0])])
    elect("no partitions", [TopicPartitions(topic="led", partitions=[])])
    delete_all(say, "led")


def no_time(say: Recorder) -> None:
    topic = new("timed")
    place = ReassignablePartition(partition_index=0, replicas=[1])
    moved = ReassignableTopic(name="timed", partitions=[place])
    for timeout_ms in (0, -1):
        for message in (
            CreateTopicsRequest(topics=[topic, topic, new("a b")]),
            CreateTopicsRequest(topics=[topic], validate_only=True),
            CreatePartitionsRequest(topics=[growing(name, 2, None) for name in ("a", "a", "timed")]),
            DeleteTopicsRequest(topics=[DeleteTopicState(name="timed"), DeleteTopicState(topic_id=NOBODY)]),
            ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="timed", partitions=[0])]),
            ElectLeadersRequest(topic_partitions=None),
            AlterPartitionReassignmentsRequest(topics=[moved]),
            AlterPartitionReassignmentsRequest(),
        ):
            message.timeout_ms = timeout_ms
            say.ask(f"{type(message).__name__} with {timeout_ms} ms", request(message, message.VERSIONS.last))
    say.ask("an old DeleteTopics", request(DeleteTopicsRequest(topic_names=["timed"], timeout_ms=0), 5))
    say.ask("no such topic", request(DescribeTopicPartitionsRequest(topics=[TopicRequest(name="timed")]), 0))


def reassigned(say: Recorder) -> None:
    for label, topics in {
        "all": None,
        "none": [],
        "an unknown topic": [ListPartitionReassignmentsTopics(name="nope", partition_indexes=[0])],
    }.items():
        say.ask(label, request(ListPartitionReassignmentsRequest(topics=topics), 0))


def reassignments(version: int) -> Scenario:
    def scenario(say: Recorder) -> None:
        def alter(
            label: str, topics: dict[str, dict[int, list[int] | None]], allow_factor: bool = True
        ) -> None:
            rows = [
                ReassignableTopic(
                    name=name,
                    partitions=[
                        ReassignablePartition(partition_index=index, replicas=ids)
                        for index, ids in wanted.items()
                    ],
                )
                for name, wanted in topics.items()
            ]
            message = AlterPartitionReassignmentsRequest(
                topics=rows, allow_replication_factor_change=allow_factor or version < 1
            )
            say.ask(label, request(message, version))

        say.note(DYNAMIC_IDS)
        create(say, "a topic", new("reassigned", 2))
        alter("the own id", {"reassigned": {0: [1], 1: [1]}})
        alter("another id", {"reassigned": {0: [2]}})
        alter("the own id and another", {"reassigned": {0: [1, 2]}})
        alter("another id and the own", {"reassigned": {0: [0, 1]}})
        alter("the own id twice", {"reassigned": {0: [1, 1]}})
        alter("the own id twice and another", {"reassigned": {0: [2, 1, 1]}})
        alter("a negative id", {"reassigned": {0: [-1]}})
        alter("no id", {"reassigned": {0: []}})
        alter("cancel", {"reassigned": {0: None}})
        alter("an unknown topic", {"nope": {0: [1], 1: None}})
        alter("an unknown partition", {"reassigned": {2: [1], -1: None}})
        alter("one good and one bad", {"reassigned": {0: [1], 1: [3]}, "nope": {0: [1]}})
        alter("a topic without partitions", {"reassigned": {}})
        alter("nothing", {})
        if version:
            alter("no change of the factor", {"reassigned": {0: [1], 1: [1, 2]}}, allow_factor=False)
            alter("no change of the factor, no id", {"reassigned": {0: []}}, allow_factor=False)
        delete_all(say, "reassigned")

    return scenario


SCENARIOS: dict[str, tuple[str, Scenario]] = {
    "create_topics_v7_created": ("topics that can be", created),
    "create_topics_v7_refused": ("topics that cannot be", create_refused),
    "create_topics_v7_config_refused": ("configurations that cannot be", create_config_refused),
    "delete_topics_v6_deleted": ("topics go, or not", deleted),
    "create_partitions_v3_grown": ("a topic grows, or not", grown),
    "describe_topic_partitions_v0_described": ("pages of partitions", described),
    "delete_topics_v6_no_time": ("requests that leave no time", no_time),
    "elect_leaders_v2_elected": ("no election is needed", elected),
    **{
        f"alter_partition_reassignments_v{version}_altered": ("to this node or not", reassignments(version))
        for version in range(2)
    },
    "list_partition_reassignments_v0_listed": ("nothing is moved", reassigned),
}
