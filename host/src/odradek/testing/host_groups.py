"""Access to the groups of a running host without a client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from odradek.group.committed_offset import CommittedOffset
from odradek.testing.arrivals import Arrivals, Arrived
from odradek.testing.host_share_groups import ShareGroup
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from odradek.broker.broker import Broker
    from odradek.testing.host_thread import HostThread

__tracebackhide__ = True  # pytest shows where the test waits, not these frames


class Offsets(dict[int, int], Arrived):
    """Committed offsets by partition: the offset of the next record that the group reads."""


class HostGroups:
    """Reads and commits offsets of groups directly, bypassing the protocol."""

    def __init__(self, thread: HostThread, arrivals: Arrivals) -> None:
        self.thread = thread
        self.arrivals = arrivals

    @property
    def broker(self) -> Broker:
        return self.thread.host.broker

    def topic_id(self, name: str) -> bytes:
        topic = self.broker.topics.named(name)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {name}")
        return topic.id

    def names(self) -> list[str]:
        """The ids of all groups, sorted."""
        return self.thread.call(lambda: sorted(self.broker.groups.groups))

    def share(self, group_id: str) -> ShareGroup:
        """The deliveries of a share group."""
        return ShareGroup(self.thread, self.arrivals, group_id, self.topic_id)

    def committed(self, group_id: str, topic: str) -> Offsets:
        """The committed offsets of a group by partition; a partition without one is missing.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION if the topic does not exist.
        """
        return self.thread.call(lambda: self.read(group_id, self.topic_id(topic)))

    def read(self, group_id: str, topic_id: bytes) -> Offsets:
        offsets = dict(self.broker.groups.offsets.of_group(group_id))  # a copy: the host's thread may write
        rows = sorted((index, row.offset) for (each, index), row in offsets.items() if each == topic_id)
        return Offsets(rows)

    def commit(self, group_id: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Commit offsets by partition, so that a consumer starts there.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION if the topic or a partition does not exist.
        """
        self.thread.call(lambda: self.write(group_id, topic, offsets))

    def write(self, group_id: str, topic: str, offsets: Mapping[int, int]) -> None:
        topic_id, now_ms = self.topic_id(topic), self.broker.clock.now_ms()
        for index in offsets:
            if self.broker.topics.by_id[topic_id].partition(index) is None:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no partition {index} of topic {topic}")
        rows = {
            (topic_id, index): CommittedOffset(offset=offset, commit_timestamp_ms=now_ms)
            for index, offset in offsets.items()
        }
        self.broker.groups.offsets.commit(group_id, rows)

    def wait_for_commit(
        self, group_id: str, topic: str, offsets: Mapping[int, int], *, timeout_s: float = 5
    ) -> Offsets:
        """Wait until a group has committed at least these offsets, and return all that it has for the topic.

        Await it in a coroutine.

        Raises:
            NothingCame: The offsets are lower until the timeout.
            ApiError: UNKNOWN_TOPIC_OR_PARTITION if the topic does not exist.
        """
        topic_id = self.topic_id(topic)

        def found() -> Offsets | None:
            committed = self.read(group_id, topic_id)
            there = all(committed.get(index, -1) >= offset for index, offset in offsets.items())
            return committed if there else None

        wanted = f"commit of {dict(offsets)} by group {group_id} for topic {topic}"
        return self.arrivals.wait_for(found, timeout_s, wanted)
