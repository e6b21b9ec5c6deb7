"""Topics: what is shown of them, and their changes."""

from __future__ import annotations

from odradek.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from odradek.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.wire.messages.describe_cluster import DescribeClusterRequest
from odradek.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from odradek.wire.messages.describe_topic_partitions import TopicRequest as PartitionsOf
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from support.authorization.case import (
    ALL,
    Case,
)
from support.authorization.requests import (
    create_topics,
    delete_topics,
    fixed,
    metadata,
)

CASES = [
    # Metadata
    Case("metadata by name without rights", [], metadata, 12),
    Case(
        "metadata by name",
        ["DESCRIBE TOPIC open", "DESCRIBE TOPIC gone"],
        lambda ids: metadata(ids, ["shut", "open", "gone"]),
        12,
    ),
    Case(
        "metadata of an illegal name",
        ["CREATE CLUSTER"],
        lambda _ids: MetadataRequest(topics=[MetadataRequestTopic(name="bad name")]),
        12,
    ),
    Case("metadata of version 1", ["DESCRIBE TOPIC open"], metadata, 1),
    Case("metadata of all topics", ["READ TOPIC open"], lambda ids: metadata(ids, None), 12),
    Case("metadata of all topics without rights", [], lambda ids: metadata(ids, None), 12),
    Case("metadata by id", ["DESCRIBE TOPIC open"], lambda ids: metadata(ids, by_id=True), 12),
    Case(
        "metadata creates without CREATE", ["DESCRIBE TOPIC gone"], lambda ids: metadata(ids, create=True), 12
    ),
    Case(
        "metadata creates without DESCRIBE",
        ["CREATE CLUSTER"],
        lambda ids: metadata(ids, ["shut", "gone"], create=True),
        12,
    ),
    Case("metadata with operations", ["WRITE TOPIC open"], lambda ids: metadata(ids, operations=True), 12),
    Case(
        "metadata with operations of a missing topic",
        ["READ TOPIC gone", "DESCRIBE TOPIC open"],
        lambda ids: metadata(ids, ["open", "gone"], operations=True),
        12,
    ),
    Case(
        "metadata with operations of an illegal name",
        ["READ TOPIC open"],
        lambda ids: metadata(ids, ["open", "bad name"], operations=True),
        12,
    ),
    Case(
        "metadata with operations cannot create",
        ["DESCRIBE TOPIC gone"],
        lambda ids: metadata(ids, ["gone"], operations=True, create=True),
        12,
    ),
    Case(
        "metadata with operations by id",
        ["READ TOPIC open"],
        lambda ids: metadata(ids, by_id=True, operations=True),
        12,
    ),
    Case(
        "metadata with operations of the cluster",
        ["DESCRIBE TOPIC open", "DESCRIBE CLUSTER"],
        lambda ids: metadata(ids, operations=True),
        9,
    ),
    Case("metadata with operations of an unseen cluster", [], lambda ids: metadata(ids, operations=True), 9),
    Case(
        "describe the cluster",
        ["ALTER CLUSTER"],
        fixed(DescribeClusterRequest(include_cluster_authorized_operations=True)),
        0,
    ),
    Case(
        "describe the cluster without rights",
        [],
        fixed(DescribeClusterRequest(include_cluster_authorized_operations=True)),
        0,
    ),
    Case(
        "describe partitions by name",
        ["READ TOPIC open"],
        fixed(DescribeTopicPartitionsRequest(topics=[PartitionsOf(name=name) for name in ALL])),
        0,
        unordered=True,
    ),
    Case(
        "describe partitions of all topics", ["READ TOPIC open"], fixed(DescribeTopicPartitionsRequest()), 0
    ),
    # Topics
    Case(
        "create topics without rights",
        [],
        fixed(create_topics("open", "new", "bad name", "bad name")),
        7,
        unordered=True,
    ),
    Case(
        "create topics with CREATE of the topic",
        ["CREATE TOPIC new"],
        fixed(create_topics("shut", "new")),
        7,
        unordered=True,
        masked=("topic_id",),
    ),
    Case(
        "create topics with CREATE of the cluster",
        ["CREATE CLUSTER", "DESCRIBE_CONFIGS TOPIC other"],
        fixed(create_topics("open", "new")),
        7,
        unordered=True,
        masked=("topic_id",),
    ),
    Case(
        "delete topics by name",
        ["DESCRIBE TOPIC open", "DESCRIBE TOPIC gone"],
        fixed(delete_topics(*(DeleteTopicState(name=name) for name in ALL))),
        6,
        unordered=True,
    ),
    Case(
        "delete topics of version 3",
        ["DESCRIBE TOPIC open"],
        fixed(DeleteTopicsRequest(topic_names=list(ALL), timeout_ms=1_000)),
        3,
        unordered=True,
    ),
    Case(
        "delete topics by id",
        ["DESCRIBE TOPIC open"],
        lambda ids: delete_topics(*(DeleteTopicState(topic_id=ids[name]) for name in ALL)),
        6,
        unordered=True,
    ),
    Case(
        "delete topics without a name",
        [],
        lambda ids: delete_topics(DeleteTopicState(), DeleteTopicState(name="shut", topic_id=ids["shut"])),
        6,
        unordered=True,
    ),
    Case(
        "delete a missing topic with DELETE",
        ["DELETE TOPIC gone"],
        fixed(delete_topics(DeleteTopicState(name="gone"))),
        6,
    ),
    Case(
        "delete topics twice",
        [],
        lambda ids: delete_topics(
            DeleteTopicState(name="shut"),
            DeleteTopicState(name="shut"),
            DeleteTopicState(topic_id=ids["shut"]),
        ),
        6,
        unordered=True,
    ),
    Case(
        "delete a topic by name and by id",
        [],
        lambda ids: delete_topics(DeleteTopicState(name="shut"), DeleteTopicState(topic_id=ids["shut"])),
        6,
        unordered=True,
    ),
    Case(
        "delete records",
        ["DELETE TOPIC open", "READ TOPIC shut"],
        fixed(
            DeleteRecordsRequest(
                topics=[
                    DeleteRecordsTopic(name=name, partitions=[DeleteRecordsPartition(partition_index=9)])
                    for name in ALL
                ],
                timeout_ms=1_000,
            )
        ),
        2,
        unordered=True,
    ),
    Case(
        "create partitions",
        ["ALTER TOPIC open", "ALTER CLUSTER"],
        fixed(
            CreatePartitionsRequest(
                topics=[
                    CreatePartitionsTopic(name=name, count=1, assignments=None)
                    for name in (*ALL, "twice", "twice")
                ],
                timeout_ms=1_000,
            )
        ),
        3,
        unordered=True,
    ),
]
