"""Carry records from a topic, whose partitions several processes share, to a forwarder.

A feed is a member of a consumer group, on a thread and a loop of its own: heartbeats do not depend on the
forwarder, so a destination that is down does not cost the process its partitions. Requests to the brokers
block that thread, each for a limited time.

When the group rebalances, the feed takes back the records that wait, and gives the current batch some time to
be delivered and committed, before it joins again. Partitions that it is assigned again continue where they
were. So a rebalance repeats at most the current batch of partitions that other processes get.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future
from functools import partial
from threading import Thread
from typing import Final

from odradek.bounds.sampled_log import SampledLog
from odradek.client.shared_topic import Membership, SharedTopic
from odradek.delivery.log_cursor import MAX_MALFORMED
from odradek.delivery.spooled_record import RecordFormat, SpooledRecord
from odradek.hosting.log_feed import AGAIN_S, FeedReader, LogFeed, Positions, set_once
from odradek.plugin.plugin_stats import described
from odradek.process.limits import new_loop
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

log = logging.getLogger(__name__)

IDLE_S: Final = 0.1
"""Time between two looks at the group while the forwarder asks for nothing."""
HANDOVER_S: Final = 10.0
"""How long a rebalance waits for the current batch. The limit of the group is longer."""
START_S: Final = 60.0
"""How long temporary failures are tolerated until the first join."""
LOST: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID)
REJOIN: Final = (*LOST, ErrorCode.REBALANCE_IN_PROGRESS)
"""Not failures: the group has begun another rebalance."""


class GroupFeed(LogFeed):
    """The position of one forwarder in the partitions that its group assigns to this process.

    Where `LogFeed` speaks of the host's loop, this is the loop of the feed's own thread.

    Args:
        name: The name of the forwarder.
        group_id: The group.
        source: The topic. The feed calls it on its thread only, and leaves the group at the end.
        max_malformed: See `LogCursor`.
        record_format: The format of the topic's records.
        keep: Called on the forwarder's thread with the partitions that it has from now on.
    """

    def __init__(
        self,
        name: str,
        group_id: str,
        source: SharedTopic,
        max_malformed: int = MAX_MALFORMED,
        record_format: RecordFormat | None = None,
        keep: Callable[[Collection[int]], None] | None = None,
    ) -> None:
        super().__init__(name, source, max_malformed, new_loop(), record_format)
        self.group_id = group_id
        self.shared = source
        self.keep = keep
        self.thread = Thread(target=self.live, name=f"odradek-group-{name}", daemon=True)
        self.joined: Future[None] = Future()
        """Done when the feed was first assigned its partitions; fails if the start has to."""
        self.started_s = 0.0
        self.is_wanted = False
        """Whether the forwarder has asked. Before, its plugin may not start, and others should get the
        partitions."""
        self.member = False
        self.assigned: frozenset[int] = frozenset()
        """The partitions that the group assigns."""
        self.owned: frozenset[int] = frozenset()
        """Those of them that the cursor has."""
        self.handover_until_s: float | None = None
        """A rebalance waits for the current batch until then."""
        self.rest_until_s = 0.0
        """No requests before, after a failure."""
        self.waiting: list[asyncio.Future[str | None]] = []
        """Deliveries that wait until their offsets are stored."""
        self.problem: str | None = None
        self.bugs = SampledLog(log)
        self.ending = False

    def begin(self, reader: FeedReader) -> None:
        """Join the group, on the feed's thread. Call once."""
        self.reader = reader
        self.source.begin(self.group_id, self.moved)
        self.started_s = time.monotonic()
        self.thread.start()

    def end(self, timeout_s: float) -> None:
        """Commit, leave the group and end the thread. Blocks, at most for the time."""
        if self.thread.ident is None:
            self.host_loop.close()
            return
        with contextlib.suppress(RuntimeError):
            self.host_loop.call_soon_threadsafe(self.finish)
        self.thread.join(timeout_s)
        if self.thread.is_alive():
            log.warning(
                "group did not answer in time, its partitions are free when the session ends",
                extra={"group": self.group_id},
            )

    # on the feed's thread

    def live(self) -> None:
        """The body of the thread."""
        self.host_loop.call_soon(self.turn)
        try:
            self.host_loop.run_forever()
        finally:
            self.host_loop.close()

    def finish(self) -> None:
        """Store the last offsets and leave."""
        self.ending = True
        try:
            if self.member and self.uncommitted:
                self.shared.commit(self.group_id, self.uncommitted)
            self.shared.leave()
        except ApiError as error:
            log.warning("group was not left", extra={"group": self.group_id, "problem": str(error)})
        finally:
            self.host_loop.stop()

    def turn(self) -> None:
        """Look after the group, answer the forwarder, and plan the next turn."""
        if self.ending:
            return
        try:
            if time.monotonic() >= self.rest_until_s:
                self.look_after()
        except ApiError as error:
            self.failed(error)
        except Exception as error:  # noqa: BLE001  this thread must go on, and the probes must say so
            self.rest_until_s = time.monotonic() + AGAIN_S
            self.problem = described(error)
            now_ms = time.monotonic_ns() // 1_000_000
            self.bugs.write(
                logging.ERROR, now_ms, "group failed, trying again", error=error, group=self.group_id
            )
        finally:
            busy = self.parked is not None and self.may_read()
            self.host_loop.call_later(0 if busy else IDLE_S, self.turn)

    def look_after(self) -> None:
        """One step of the membership, then of reading.

        Raises:
            ApiError: A request failed; the next turn tries again.
        """
        if not self.member:
            if self.is_wanted:
                self.enter()
            return
        membership = self.shared.membership()
        if membership is Membership.LOST:
            self.lose()
            return
        if (found := self.shared.recreated()) is not None:
            self.recreated(found.old_ends, found.new_ends)
        self.follow(membership)
        if self.uncommitted:
            self.store(again=False)
        if self.parked is not None:
            self.answer(*self.parked)

    def follow(self, membership: Membership) -> None:
        """Take part in a rebalance, or take over the partitions of the last one.

        Raises:
            ApiError: See `enter` and `adopt`.
        """
        if membership is Membership.REBALANCE and self.handover_until_s is None:
            self.hand_over()
        if self.is_handed_over():
            self.enter()
        elif self.handover_until_s is None and self.assigned != self.owned:
            self.adopt()

    def enter(self) -> None:
        """Join the group.

        Raises:
            ApiError: It cannot be joined now. Then the partitions may already belong to others.
        """
        self.handover_until_s = None
        try:
            self.assigned = self.shared.join()
        except ApiError:
            self.member = False
            self.release(self.owned)
            raise
        self.member = True
        self.release(self.owned - self.assigned)
        self.adopt()

    def adopt(self) -> None:
        """Begin in the partitions that are new here.

        Raises:
            ApiError: Their committed offsets cannot be read now.
        """
        added = self.assigned - self.owned
        positions = self.shared.positions(added) if added else {}
        self.owned = self.assigned
        self.reassign((), positions)
        log.info("partitions assigned", extra={"group": self.group_id, "partitions": sorted(self.owned)})
        if not self.joined.done():
            self.joined.set_result(None)

    def lose(self) -> None:
        """The group has given all partitions to others, which repeat what is not committed."""
        log.warning("group went on without this process, joining again", extra={"group": self.group_id})
        self.member = False
        self.handover_until_s = None
        self.release(self.owned)

    def release(self, gone: frozenset[int]) -> None:
        """Forget partitions. Their offsets belong to the next owner."""
        if not gone:
            return
        self.owned -= gone
        for index in gone:
            self.moved_in[index] = self.moves + 1
            self.uncommitted.pop(index, None)
        self.reassign(tuple(gone), {})
        self.settle_waiting()

    def reassign(self, gone: Iterable[int], added: Positions) -> None:
        """Let the forwarder go on with other partitions."""
        self.moves += 1
        for index in added:
            self.moved_in[index] = self.moves
        self.parked = None
        self.to_forwarder(self.relocated, self.moves, partial(self.assign, tuple(gone), dict(added)))

    def hand_over(self) -> None:
        """Take back the records that wait. The forwarder asks again when its current batch is settled."""
        self.handover_until_s = time.monotonic() + HANDOVER_S
        self.reassign((), {})

    def is_handed_over(self) -> bool:
        """Whether the forwarder has settled its batch since `hand_over`, or took too long."""
        if self.handover_until_s is None:
            return False
        asks_again = self.parked is not None and self.parked[0] == self.moves
        return (asks_again and not self.uncommitted) or time.monotonic() >= self.handover_until_s

    def moved(self, positions: Positions) -> None:
        """Go on where a truncated partition ends."""
        self.relocate(positions, partial(self.cursor.move, dict(positions)))

    def may_read(self) -> bool:
        """Whether the forwarder may get records now."""
        ready = self.member and self.handover_until_s is None and bool(self.owned)
        return ready and time.monotonic() >= self.rest_until_s

    def answer(self, generation: int, positions: Positions) -> None:
        """Read now, or park the request until the next turn."""
        self.is_wanted = True
        self.parked = (generation, positions)
        if not self.may_read() or generation != self.moves:
            return
        try:
            chunks = self.shared.read(positions)
        except ApiError as error:
            self.failed(error)
            return
        self.recovered()
        if chunks and generation == self.moves:
            self.parked = None
            self.to_forwarder(self.answered, generation, chunks)

    def commit_for(self, generation: int, positions: Positions, theirs: asyncio.Future[str | None]) -> None:
        """Commit, and let the delivery wait until that is done: so at most one batch is repeated."""
        self.waiting.append(theirs)
        self.commit(generation, positions)
        self.settle_waiting()

    def store(self, *, again: bool) -> None:
        """Store the offsets as a member. The next turn tries again."""
        if not self.member:
            return
        try:
            self.shared.commit(self.group_id, self.uncommitted)
        except ApiError as error:
            self.failed(error)
            if error.code in LOST:
                self.lose()
        else:
            self.uncommitted.clear()
            self.settle_waiting()

    def settle_waiting(self) -> None:
        """Let deliveries go on whose offsets are stored, or belong to others."""
        if not self.uncommitted:
            done, self.waiting = self.waiting, []
            for theirs in done:
                self.to_forwarder(set_once, theirs, None)

    def failed(self, error: ApiError) -> None:
        """Log the first of a row of failures; before the first join a lasting one ends the start."""
        if error.code in REJOIN:
            return  # the next heartbeat tells, or the next turn joins
        self.rest_until_s = time.monotonic() + AGAIN_S
        if not self.joined.done():
            late = time.monotonic() - self.started_s > START_S
            if late or not error.code.retriable:
                self.joined.set_exception(error)
        if self.problem is None:
            log.warning(
                "topic or group cannot be used, trying again",
                extra={"group": self.group_id, "problem": str(error)},
            )
        self.problem = str(error)

    def recovered(self) -> None:
        """Log the end of a row of failures."""
        if self.problem is not None:
            log.warning("topic and group can be used again", extra={"group": self.group_id})
            self.problem = None

    # on the forwarder's thread

    def assign(self, gone: Iterable[int], added: Positions, withdrawn: list[SpooledRecord]) -> None:
        """Put the withdrawn records back, and go on with other partitions."""
        self.cursor.move({}, withdrawn)
        self.cursor.assign(tuple(gone), added)
        if self.keep is not None:
            self.keep(tuple(self.cursor.expected))
