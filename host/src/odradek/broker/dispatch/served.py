"""The APIs that the host serves, and the versions that ApiVersions lists.

They stand here and not at the handlers, because every client asks for them first, and a handler is imported
with the first request of its API: all handlers together take a third of the CPU of a start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from odradek.wire.api_names import NAMES
from odradek.wire.types import Versions, between, only

VERSIONS_BY_NAME: Final = {
    "Produce": between(0, 13),
    "Fetch": between(4, 18),
    "ListOffsets": between(1, 11),
    "Metadata": between(0, 13),
    "OffsetCommit": between(2, 10),
    "OffsetFetch": between(1, 10),
    "FindCoordinator": between(0, 6),
    "JoinGroup": between(0, 9),
    "Heartbeat": between(0, 4),
    "LeaveGroup": between(0, 5),
    "SyncGroup": between(0, 5),
    "DescribeGroups": between(0, 6),
    "ListGroups": between(0, 5),
    "SaslHandshake": between(0, 1),
    "ApiVersions": between(0, 5),
    "CreateTopics": between(2, 7),
    "DeleteTopics": between(1, 6),
    "DeleteRecords": between(0, 2),
    "InitProducerId": between(0, 5),
    "OffsetForLeaderEpoch": between(2, 4),
    "AddPartitionsToTxn": between(0, 5),
    "AddOffsetsToTxn": between(0, 4),
    "EndTxn": between(0, 5),
    "TxnOffsetCommit": between(0, 6),
    "DescribeAcls": between(1, 3),
    "CreateAcls": between(1, 3),
    "DeleteAcls": between(1, 3),
    "DescribeConfigs": between(1, 4),
    "AlterConfigs": between(0, 2),
    "AlterReplicaLogDirs": between(1, 2),
    "DescribeLogDirs": between(1, 5),
    "SaslAuthenticate": between(0, 2),
    "CreatePartitions": between(0, 3),
    "DeleteGroups": between(0, 3),
    "ElectLeaders": between(0, 2),
    "IncrementalAlterConfigs": between(0, 1),
    "AlterPartitionReassignments": between(0, 1),
    "ListPartitionReassignments": only(0),
    "OffsetDelete": only(0),
    "DescribeClientQuotas": between(0, 1),
    "AlterClientQuotas": between(0, 1),
    "DescribeUserScramCredentials": only(0),
    "AlterUserScramCredentials": only(0),
    "DescribeQuorum": between(0, 2),
    "UpdateFeatures": between(0, 2),
    "DescribeCluster": between(0, 2),
    "DescribeProducers": only(0),
    "DescribeTransactions": only(0),
    "ListTransactions": between(0, 2),
    "ConsumerGroupHeartbeat": between(0, 1),
    "ConsumerGroupDescribe": between(0, 1),
    "GetTelemetrySubscriptions": only(0),
    "PushTelemetry": only(0),
    "ListConfigResources": between(0, 1),
    "DescribeTopicPartitions": only(0),
    "ShareGroupHeartbeat": only(1),
    "ShareGroupDescribe": only(1),
    "ShareFetch": between(1, 2),
    "ShareAcknowledge": between(1, 2),
    "StreamsGroupHeartbeat": between(0, 1),
    "StreamsGroupDescribe": between(0, 1),
    "DescribeShareGroupOffsets": between(0, 1),
    "AlterShareGroupOffsets": only(0),
    "DeleteShareGroupOffsets": only(0),
    "StreamsGroupTopologyDescriptionUpdate": only(0),
}
SERVED: Final[Mapping[int, Versions]] = {NAMES.index(name): its for name, its in VERSIONS_BY_NAME.items()}
"""By API key."""
