"""DescribeShareGroupOffsets, AlterShareGroupOffsets and DeleteShareGroupOffsets (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from odradek.client.admin import AdminClient
from odradek.client.connection import Connection
from odradek.client.errors import RequestFailed, check, failure
from odradek.client.group_offsets import at_coordinator
from odradek.client.leaders import Partition, by_topic, partition_text
from odradek.client.retries import values
from odradek.wire.messages.alter_share_group_offsets import (
    AlteredPartition,
    AlteredTopic,
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from odradek.wire.messages.delete_share_group_offsets import (
    DeletedTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from odradek.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    ShareOffsetsGroup,
)


@dataclass(frozen=True, slots=True)
class ShareOffset:
    """How far a share group is in a partition."""

    start: int | None
    """Everything before it is done; None if nothing was delivered yet."""
    lag: int | None
    """How many records from there on are not done; None if the broker does not say (before 4.2)."""
    leader_epoch: int


def share_offsets(admin: AdminClient, group: str) -> dict[Partition, ShareOffset]:
    """The offsets of all partitions that a share group reads or has read, in order.

    Raises:
        ClientError: The broker refuses, or does not answer.
    """
    request = DescribeShareGroupOffsetsRequest(groups=[ShareOffsetsGroup(group_id=group, topics=None)])

    def ask(connection: Connection) -> dict[Partition, ShareOffset]:
        response: DescribeShareGroupOffsetsResponse = connection.send(request)
        found: dict[Partition, ShareOffset] = {}
        for each in response.groups:
            check(each.error_code, each.error_message, group)
            for topic in each.topics:
                for row in topic.partitions:
                    at = (topic.topic_name, row.partition_index)
                    check(row.error_code, row.error_message, partition_text(at))
                    start, lag = (None if value < 0 else value for value in (row.start_offset, row.lag))
                    found[at] = ShareOffset(start, lag, row.leader_epoch)
        return dict(sorted(found.items()))

    return admin.retries.settle(lambda: at_coordinator(admin.cluster, group, ask))


def alter_share_offsets(admin: AdminClient, group: str, new: Mapping[Partition, int]) -> None:
    """Set the start offsets of a share group without members. The group is made if it does not exist.

    Raises:
        ClientError: The broker refuses the group or a partition, or does not answer.
    """

    def ask(connection: Connection, pending: Iterable[Partition]) -> dict[Partition, RequestFailed | None]:
        topics = [
            AlteredTopic(
                topic_name=topic,
                partitions=[AlteredPartition(partition_index=i, start_offset=new[topic, i]) for i in indexes],
            )
            for topic, indexes in by_topic(pending).items()
        ]
        response: AlterShareGroupOffsetsResponse = connection.send(
            AlterShareGroupOffsetsRequest(group_id=group, topics=topics)
        )
        check(response.error_code, response.error_message, group)
        return {
            (at := (each.topic_name, row.partition_index)): failure(
                row.error_code, row.error_message, partition_text(at)
            )
            for each in response.responses
            for row in each.partitions
        }

    values(
        admin.retries.settle_each(
            new, lambda pending: at_coordinator(admin.cluster, group, lambda each: ask(each, pending))
        )
    )


def delete_share_offsets(
    admin: AdminClient, group: str, topics: Sequence[str]
) -> dict[str, RequestFailed | None]:
    """Delete the offsets of topics of a share group without members; return the result of each topic.

    Raises:
        ClientError: The broker refuses the group, or does not answer.
    """

    def ask(connection: Connection, pending: Iterable[str]) -> dict[str, RequestFailed | None]:
        named = [DeletedTopic(topic_name=topic) for topic in pending]
        response: DeleteShareGroupOffsetsResponse = connection.send(
            DeleteShareGroupOffsetsRequest(group_id=group, topics=named)
        )
        check(response.error_code, response.error_message, group)
        return {
            row.topic_name: failure(row.error_code, row.error_message, row.topic_name)
            for row in response.responses
        }

    return admin.retries.settle_each(
        topics, lambda pending: at_coordinator(admin.cluster, group, lambda each: ask(each, pending))
    )
