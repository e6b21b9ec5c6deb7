"""Carry records from the log, which belongs to the host's loop, to a forwarder on its own thread.

The forwarder asks with its positions; the host answers with raw bytes of the log, at once or when records
arrive. The forwarder decodes them. There is one request at a time, so read-ahead is bounded, and a forwarder
that hangs only delays itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Protocol

from odradek.delivery.log_cursor import MAX_MALFORMED, Chunk, LogCursor
from odradek.delivery.spooled_record import RecordFormat, SpooledRecord
from odradek.wire.api_error import ApiError

log = logging.getLogger(__name__)

GROUP_PREFIX: Final = "odradek.forwarder."
AGAIN_S: Final = 1.0
"""Delay before a failed disk operation is tried again."""

Positions = Mapping[int, int]


class FeedLog(Protocol):
    """The part of the host's log that a feed needs; call it on the host's loop."""

    topic_name: str

    def read(self, positions: Positions) -> list[Chunk]:
        """Records from the positions on; a partition without a position is read from its start. Empty at the
        ends of the log.

        Raises:
            ApiError: The log cannot be read.
        """

    def ends(self) -> dict[int, int]:
        """The offset of the next record, by partition. Call from any thread."""

    def begin(self, group_id: str, moved: Callable[[Positions], None]) -> dict[int, int]:
        """Take over a group and return its committed offsets. A new group commits the ends of the log first.
        ``moved`` is called with offsets that another client commits, limited to the range of the log.
        """

    def commit(self, group_id: str, positions: Positions) -> None:
        """Commit offsets.

        Raises:
            ApiError: They cannot be stored.
        """

    def bury(self, batch: bytes) -> None:
        """Append dead letters.

        Raises:
            ApiError: They cannot be stored.
        """


class FeedReader(Protocol):
    """The forwarder that a feed serves."""

    def call(self, action: Callable[..., object], *arguments: object) -> None:
        """Run an action on the forwarder's thread if that thread still runs. Call from any thread."""

    def receive(self, chunks: list[Chunk]) -> None:
        """Take records that were read; on the forwarder's thread."""

    def restart(self, move: Callable[[list[SpooledRecord]], None]) -> None:
        """Discard records that were read but not taken, and move the cursor; on the forwarder's thread."""


class LogFeed:
    """The position of one forwarder in the log.

    Comments say on which thread each group of methods and fields is used.
    """

    def __init__(
        self,
        name: str,
        source: FeedLog,
        max_malformed: int = MAX_MALFORMED,
        loop: asyncio.AbstractEventLoop | None = None,
        record_format: RecordFormat | None = None,
    ) -> None:
        self.group_id = GROUP_PREFIX + name
        self.source = source
        self.host_loop = loop or asyncio.get_running_loop()
        self.cursor = LogCursor({}, max_malformed, record_format or RecordFormat())
        self.reader: FeedReader | None = None
        # of the forwarder's thread
        self.asked = False
        self.generation = 0
        # of the host's loop
        self.moves = 0
        self.moved_in: dict[int, int] = {}
        """The number of the last move, by partition."""
        self.parked: tuple[int, Positions] | None = None
        """The request that has no answer yet."""
        self.looks = False
        """The parked request is looked at soon."""
        self.uncommitted: dict[int, int] = {}

    def begin(self, reader: FeedReader) -> None:
        """Serve a forwarder from the committed offsets on. Call on the host's loop before the thread starts.

        Raises:
            ConfigError: The offsets of a new group cannot be stored.
        """
        self.cursor.assign((), self.source.begin(self.group_id, self.moved))
        self.reader = reader

    # on the forwarder's thread

    def ask(self) -> None:
        """Ask for more records unless a request is already open."""
        if not self.asked:
            self.asked = True
            self.to_host(self.answer, self.generation, dict(self.cursor.expected))

    def answered(self, generation: int, chunks: list[Chunk]) -> None:
        """Take an answer if its request is still current."""
        if generation == self.generation:
            self.asked = False
            assert self.reader is not None
            self.reader.receive(chunks)

    def relocated(self, generation: int, move: Callable[[list[SpooledRecord]], None]) -> None:
        """Drop the open request and continue elsewhere."""
        self.generation = generation
        self.asked = False
        assert self.reader is not None
        self.reader.restart(move)

    async def settled(self, positions: Positions, generation: int) -> None:
        """Commit positions: every record before them has been delivered or written as a dead letter.

        The generation is the one in which the records were read. If another client has moved the group since,
        its offset wins.

        Waits until the offsets are stored or the disk has refused them once, so that after a kill at most the
        current batch is delivered twice.
        """
        ours = asyncio.get_running_loop().create_future()
        self.to_host(self.commit_for, generation, dict(positions), ours)
        await ours

    async def bury(self, batch: bytes) -> None:
        """Append dead letters; wait until they are stored, however long it takes."""
        while True:
            ours = asyncio.get_running_loop().create_future()
            self.to_host(self.append_dead_letters, batch, ours)
            if await ours is None:
                return
            await asyncio.sleep(AGAIN_S)

    def to_host(self, action: Callable[..., None], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the host's loop has ended
            self.host_loop.call_soon_threadsafe(action, *arguments)

    # on the host's loop

    def answer(self, generation: int, positions: Positions) -> None:
        """Answer a request now, or when records are appended."""
        self.parked = (generation, positions)
        self.look()

    def look(self) -> None:
        """Answer the parked request if there are records for it."""
        self.looks = False
        if self.parked is None:
            return
        generation, positions = self.parked
        try:
            chunks = self.source.read(positions)
        except ApiError as error:
            log.error(
                "telemetry log cannot be read, trying again",
                extra={"group": self.group_id, "problem": str(error)},
            )
            self.looks = True
            self.host_loop.call_later(AGAIN_S, self.look)
            return
        if chunks:
            self.parked = None
            self.to_forwarder(self.answered, generation, chunks)

    def to_forwarder(self, action: Callable[..., object], *arguments: object) -> None:
        if self.reader is not None:
            self.reader.call(action, *arguments)

    def appended(self) -> None:
        """Look at the parked request once the pushes that were appended are answered.

        The loop writes an answer at the end of the pass in which it is given: uvloop after the calls of that
        pass, so the look comes in the pass after it.
        """
        if self.parked is not None and not self.looks:
            self.looks = True
            soon = self.host_loop.call_soon
            soon(soon, self.look)

    def moved(self, positions: Positions) -> None:
        """Continue at offsets that another client has committed for the group."""
        log.info(
            "another client committed offsets, forwarder continues there",
            extra={"group": self.group_id, "offsets": dict(positions)},
        )
        self.relocate(positions, partial(self.cursor.move, dict(positions)))

    def recreated(self, old_ends: Positions, new_ends: Positions) -> None:
        """Continue in a topic that was created again: undelivered records of the old one are gone."""
        for index in old_ends:
            self.moved_in[index] = self.moves + 1
        self.uncommitted.clear()
        self.relocate(dict.fromkeys(new_ends, 0), partial(self.start_over, old_ends, new_ends))

    def relocate(self, positions: Positions, move: Callable[[list[SpooledRecord]], None]) -> None:
        """Continue at these positions, and commit them so that they hold after a restart too."""
        self.moves += 1
        for index in positions:
            self.moved_in[index] = self.moves
        self.to_forwarder(self.relocated, self.moves, move)
        self.commit(self.moves, positions)

    def start_over(self, old_ends: Positions, new_ends: Positions, withdrawn: list[SpooledRecord]) -> None:
        """Move the cursor to the new topic; on the forwarder's thread."""
        self.cursor.start_over(old_ends, dict.fromkeys(new_ends, 0), len(withdrawn))

    def commit_for(self, generation: int, positions: Positions, theirs: asyncio.Future[str | None]) -> None:
        self.commit(generation, positions)
        self.to_forwarder(set_once, theirs, None)

    def commit(self, generation: int, positions: Positions) -> None:
        """Store offsets together with those that failed before. Offsets older than a move are ignored."""
        waiting = bool(self.uncommitted)
        for index, offset in positions.items():
            if generation >= self.moved_in.get(index, 0):
                self.uncommitted[index] = offset
        if self.uncommitted:
            self.store(again=not waiting)

    def store(self, *, again: bool) -> None:
        """Store the offsets that are not stored yet.

        Args:
            again: Whether a failure plans the next attempt.
        """
        try:
            self.source.commit(self.group_id, self.uncommitted)
        except ApiError as error:
            log.warning(
                "forwarder offsets cannot be stored, trying again",
                extra={"group": self.group_id, "problem": str(error)},
            )
            if again:
                self.host_loop.call_later(AGAIN_S, self.commit_again)
        else:
            self.uncommitted.clear()

    def commit_again(self) -> None:
        if self.uncommitted:
            positions = dict(self.uncommitted)
            self.uncommitted.clear()
            self.commit(self.moves, positions)

    def append_dead_letters(self, batch: bytes, theirs: asyncio.Future[str | None]) -> None:
        problem = None
        try:
            self.source.bury(batch)
        except ApiError as error:
            problem = str(error)
            log.error(
                "dead letters cannot be stored, trying again",
                extra={"group": self.group_id, "problem": problem},
            )
        self.to_forwarder(set_once, theirs, problem)


def set_once(future: asyncio.Future[str | None], result: str | None) -> None:
    """Set the result unless the waiting task was cancelled."""
    if not future.done():
        future.set_result(result)
