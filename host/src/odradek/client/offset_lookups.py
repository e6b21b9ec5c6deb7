"""What offsets do not tell about a reader of a cluster: whether there are records, and their time.

Batches are read where few are left, to tell markers of transactions from records; that needs the right READ.
For the others the leaders are asked for offsets by time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

from odradek.client.asked_brokers import AskedBrokers
from odradek.client.errors import RequestFailed
from odradek.client.leaders import Partition as Named
from odradek.client.partition_reading import first_batches, stamps
from odradek.lag.meter import MARKERS_MOST, FirstRecord, Lookup, Partition, first_record
from odradek.waiting.clock import Clock
from odradek.waiting.steps import Steps
from odradek.wire.error_code import ErrorCode

MOST_STAMPS: Final = 1_000
MOST_READS: Final = 200
"""Records that a round looks for by time, and by reading batches; the next round looks for others."""
READS_A_STEP: Final = 10


class Place(NamedTuple):
    """An offset to look at."""

    at: Partition
    offset: int
    end: int
    """The high watermark."""
    name: Named
    leader: int
    is_old: bool
    """Its record is older than the first poll."""


class OffsetLookups:
    """Looks at offsets.

    Args:
        brokers: Of the cluster.
        clock: The time.
        reads: Whether batches may be read.
    """

    def __init__(self, brokers: AskedBrokers, clock: Clock, *, reads: bool) -> None:
        self.brokers = brokers
        self.clock = clock
        self.reads = reads
        self.unreadable: set[str] = set()
        """Topics that this client may not read."""

    def look(self, places: Collection[Place], found: dict[tuple[Partition, int], Lookup]) -> Steps:
        """Look at some of these places.

        Args:
            places: Those to look at.
            found: Takes what is found, by partition and offset.
        """
        near = [each for each in places if self.is_readable(each)]
        denied = yield from self.read(islice(near, MOST_READS), found)
        by_time = [each for each in places if not self.is_readable(each) or each in denied]
        aged = [each for each in by_time if each.is_old and (each.at, each.offset) not in found]
        yield from self.date(islice(aged, MOST_STAMPS), found)

    def is_readable(self, place: Place) -> bool:
        is_near = place.end - place.offset <= MARKERS_MOST
        return is_near and self.reads and place.name[0] not in self.unreadable

    def read(
        self, places: Iterable[Place], found: dict[tuple[Partition, int], Lookup]
    ) -> Generator[Any, Any, set[Place]]:
        """Read batches; return the places where that is not possible."""
        failed: set[Place] = set()
        for leader, mine in portions(places, READS_A_STEP):
            wanted = [(each.name, each.offset, each.end) for each in mine]
            batches = yield from self.brokers.answer(leader, partial(first_batches, wanted=wanted))
            to_monotonic_ms = self.clock.monotonic_ms() - self.clock.now_ms()
            if batches is None:
                continue
            for place in mine:
                batch = batches[place.name, place.offset]
                if isinstance(batch, RequestFailed):
                    failed.add(place)
                    if batch.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                        self.unreadable.add(place.name[0])
                else:
                    first = None if batch is None else first_record(batch, to_monotonic_ms)
                    found[place.at, place.offset] = Lookup(place.end, first)
        if self.unreadable:
            some = ", ".join(sorted(self.unreadable)[:3])
            self.brokers.tell("topics", f"no right READ on {len(self.unreadable)} topics, such as {some}")
        return failed

    def date(self, places: Iterable[Place], found: dict[tuple[Partition, int], Lookup]) -> Steps:
        """Ask for the times of records."""
        for leader, mine in portions(places, MOST_STAMPS):
            wanted, now_ms = [(each.name, each.offset) for each in mine], self.clock.now_ms()
            times_ms = yield from self.brokers.answer(leader, partial(stamps, wanted=wanted, now_ms=now_ms))
            to_monotonic_ms = self.clock.monotonic_ms() - self.clock.now_ms()
            if times_ms is None:
                continue
            for place in mine:
                stamp_ms = times_ms.get((place.name, place.offset))
                if stamp_ms is not None:
                    first = FirstRecord(place.offset, stamp_ms + to_monotonic_ms, stamped=False)
                    found[place.at, place.offset] = Lookup(place.end, first, was_read=False)


def portions(places: Iterable[Place], most: int) -> Iterator[tuple[int, list[Place]]]:
    """The places of each request, by leader."""
    by_leader: dict[int, list[Place]] = defaultdict(list)
    for each in places:
        by_leader[each.leader].append(each)
    for leader, mine in by_leader.items():
        for start in range(0, len(mine), most):
            yield leader, mine[start : start + most]
