"""ElectLeaders, sent to the controller."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from odradek.client.cluster import Cluster
from odradek.client.errors import RequestFailed, check, failure
from odradek.client.leaders import Partition, by_topic, partition_text
from odradek.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions


class ElectionType(IntEnum):
    """The replicas that may become leader."""

    PREFERRED = 0
    """The first replica, if it is in sync."""
    UNCLEAN = 1
    """Any replica, if none is in sync: records may be lost."""


def elect_leaders(
    cluster: Cluster, kind: ElectionType, partitions: Iterable[Partition] | None, timeout_ms: int
) -> dict[Partition, RequestFailed | None]:
    """Elect leaders and return the result of each partition; see `AdminClient.elect_leaders`."""
    request = ElectLeadersRequest(
        election_type=kind,
        topic_partitions=None
        if partitions is None
        else [TopicPartitions(topic=topic, partitions=rows) for topic, rows in by_topic(partitions).items()],
        timeout_ms=timeout_ms,
    )
    response: ElectLeadersResponse = cluster.controller().send(
        request, least_version=0 if kind is ElectionType.PREFERRED else 1
    )
    check(response.error_code, subject="ElectLeaders")
    return {
        (result.topic, row.partition_id): failure(
            row.error_code, row.error_message, partition_text((result.topic, row.partition_id))
        )
        for result in response.replica_election_results
        for row in result.partition_result
    }
