"""The deliveries of a share group of a running host, without a client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from odradek.share.span import RecordState
from odradek.testing.arrivals import Arrivals, Arrived

if TYPE_CHECKING:
    from odradek.share.deliveries import Delivery
    from odradek.testing.host_thread import HostThread

__tracebackhide__ = True  # pytest shows where the test waits, not these frames


class InFlight(NamedTuple):
    """Consecutive records that a share group has got at least once and is not done with."""

    partition: int
    first: int
    last: int
    state: str
    """``available`` again, ``acquired`` by a member, ``archiving`` until it is a dead letter, or done before
    earlier ones: ``acknowledged`` or ``archived``."""
    deliveries: int
    member_id: str
    """Who holds them; empty unless they are acquired."""


class StartOffsets(dict[int, int], Arrived):
    """By partition, the offset before which a share group is done with every record."""


class ShareGroup:
    """What the members of a share group have got.

    A lock ends when the clock of the host says so: with `odradek.testing.VirtualClock`, at once.
    """

    def __init__(
        self, thread: HostThread, arrivals: Arrivals, group_id: str, topic_id: Callable[[str], bytes]
    ) -> None:
        self.thread = thread
        self.arrivals = arrivals
        self.group_id = group_id
        self.topic_id = topic_id

    def of_topic(self, topic_id: bytes) -> list[tuple[int, Delivery]]:
        deliveries = self.thread.host.broker.shares.deliveries
        group = dict(deliveries.groups.get(self.group_id, {}))  # a copy: the host's thread may write
        return sorted(
            ((index, each) for (at, index), each in group.items() if at == topic_id and each.is_started),
            key=lambda row: row[0],
        )

    def in_flight(self, topic: str) -> list[InFlight]:
        """The records that are on their way, in order.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION if the topic does not exist.
        """
        return self.thread.call(lambda: self.spans(self.topic_id(topic)))

    def spans(self, topic_id: bytes) -> list[InFlight]:
        return [
            InFlight(
                index,
                span.first,
                span.last,
                RecordState(span.state).name.lower(),
                span.deliveries,
                span.member,
            )
            for index, delivery in self.of_topic(topic_id)
            for span in delivery.partition.spans
        ]

    def start_offsets(self, topic: str) -> StartOffsets:
        """The offsets before which the group is done. A partition is missing until the first fetch after the
        start of the host.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION if the topic does not exist.
        """
        return self.thread.call(lambda: self.starts(self.topic_id(topic)))

    def starts(self, topic_id: bytes) -> StartOffsets:
        return StartOffsets((index, each.partition.start) for index, each in self.of_topic(topic_id))

    def wait_until_done(
        self, topic: str, offsets: Mapping[int, int], *, timeout_s: float = 5
    ) -> StartOffsets:
        """Wait until the group is done with everything before these offsets, and return all start offsets.

        Await it in a coroutine.

        Raises:
            NothingCame: Records before the offsets are not done until the timeout.
            ApiError: UNKNOWN_TOPIC_OR_PARTITION if the topic does not exist.
        """
        topic_id = self.topic_id(topic)

        def found() -> StartOffsets | None:
            starts = self.starts(topic_id)
            return starts if all(starts.get(index, -1) >= each for index, each in offsets.items()) else None

        wanted = f"share group {self.group_id} to be done with {dict(offsets)} of topic {topic}"
        return self.arrivals.wait_for(found, timeout_s, wanted)
