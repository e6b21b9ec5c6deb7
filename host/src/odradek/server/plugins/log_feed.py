"""Between the log, which belongs to the host's loop, and a forwarder on its own thread.

The forwarder's side asks with its positions; the host's side answers with bytes as they stand in the log, now
or when there are some. Opening them is the forwarder's work. One question at a time, so what is read ahead is
bounded, and a forwarder that hangs costs nothing but its lag.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Protocol

from odradek.delivery.log_cursor import Chunk, LogCursor
from odradek.delivery.spooled_record import SpooledRecord
from odradek.wire.api_error import ApiError

log = logging.getLogger(__name__)

GROUP_PREFIX: Final = "odradek.forwarder."
AGAIN_S: Final = 1.0
"""Between attempts at what the disk did not let us do."""

Positions = Mapping[int, int]
ToForwarder = Callable[..., None]
"""Run something on the forwarder's thread, if it still runs."""


class FeedLog(Protocol):
    """The host's log, as a feed needs it; on the host's loop."""

    topic_name: str

    def read(self, positions: Positions) -> list[Chunk]:
        """What there is at the positions, and in partitions that have none; nothing where they are at the
        ends.

        Raises:
            ApiError: The log cannot be read.
        """

    def ends(self) -> dict[int, int]:
        """The offset of the next record, by partition. Any thread."""

    def begin(self, group_id: str, moved: Callable[[Positions], None]) -> dict[int, int]:
        """The committed offsets of a group, which is ours from now on; the ends, committed, where there are
        none. ``moved`` hears what somebody else commits, within the log.
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


class LogFeed:
    """One forwarder's way through the log.

    Methods say on which thread they run.
    """

    def __init__(self, name: str, source: FeedLog) -> None:
        self.group_id = GROUP_PREFIX + name
        self.source = source
        self.host_loop = asyncio.get_running_loop()
        self.cursor = LogCursor(source.begin(self.group_id, self.moved))
        self.to_forwarder: ToForwarder = lambda action, *arguments: None
        self.receive: Callable[[list[Chunk]], None] = lambda chunks: None
        """On the forwarder's thread: records have come."""
        self.restart: Callable[[Callable[[list[SpooledRecord]], None]], None] = lambda move: None
        """On the forwarder's thread: forget what was read and not taken, and move the cursor."""
        # of the forwarder's thread
        self.asked = False
        self.generation = 0
        # of the host's loop
        self.moves = 0
        self.moved_in: dict[int, int] = {}
        """By partition, the number of its last move."""
        self.parked: tuple[int, Positions] | None = None
        self.uncommitted: dict[int, int] = {}

    # on the forwarder's thread

    def ask(self) -> None:
        """Ask for more, unless that has been done."""
        if not self.asked:
            self.asked = True
            self.to_host(self.answer, self.generation, dict(self.cursor.expected))

    def answered(self, generation: int, chunks: list[Chunk]) -> None:
        """Take an answer, if the question still holds."""
        if generation == self.generation:
            self.asked = False
            self.receive(chunks)

    def relocated(self, generation: int, move: Callable[[list[SpooledRecord]], None]) -> None:
        """What was asked for is not wanted any more."""
        self.generation = generation
        self.asked = False
        self.restart(move)

    def go_to(self, positions: Positions, withdrawn: list[SpooledRecord]) -> None:
        """Go on at other positions; in the other partitions what nobody has taken is read again."""
        first: dict[int, int] = {}
        for record in withdrawn:
            first.setdefault(record.partition, record.original.offset)
        self.cursor.move(first | dict(positions), len(withdrawn))

    async def settled(self, positions: Positions, generation: int) -> None:
        """What stands before the positions has been delivered or buried. The generation is that in which it
        was read: where somebody has moved us since, theirs is the offset that counts.

        Waits until that is stored, or until the disk has refused it once: after a kill no more than the batch
        in hand comes a second time.
        """
        ours = asyncio.get_running_loop().create_future()
        self.to_host(self.commit_for, generation, dict(positions), ours)
        await ours

    async def bury(self, batch: bytes) -> None:
        """Append dead letters; waits until that is done, however long it takes."""
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
        """Read, or wait until something is appended."""
        self.parked = None
        try:
            chunks = self.source.read(positions)
        except ApiError as error:
            log.error("log cannot be read", extra={"group": self.group_id, "problem": str(error)})
            self.host_loop.call_later(AGAIN_S, self.answer, generation, positions)
            return
        if chunks:
            self.to_forwarder(self.answered, generation, chunks)
        else:
            self.parked = (generation, positions)

    def appended(self) -> None:
        """There is something new in the log."""
        if self.parked is not None:
            self.answer(*self.parked)

    def moved(self, positions: Positions) -> None:
        """Somebody else has committed offsets of the group: that is where to go on."""
        log.info("forwarder goes on elsewhere", extra={"group": self.group_id, "offsets": dict(positions)})
        self.relocate(positions, partial(self.go_to, dict(positions)))

    def recreated(self, old_ends: Positions, new_ends: Positions) -> None:
        """The topic is another one: what was not delivered of the old one is gone."""
        for index in old_ends:
            self.moved_in[index] = self.moves + 1
        self.uncommitted.clear()
        self.relocate(dict.fromkeys(new_ends, 0), partial(self.begin_anew, old_ends, new_ends))

    def relocate(self, positions: Positions, move: Callable[[list[SpooledRecord]], None]) -> None:
        """Go on at these positions, also when the host ends right now."""
        self.moves += 1
        for index in positions:
            self.moved_in[index] = self.moves
        self.to_forwarder(self.relocated, self.moves, move)
        self.commit(self.moves, positions)

    def begin_anew(self, old_ends: Positions, new_ends: Positions, withdrawn: list[SpooledRecord]) -> None:
        """On the forwarder's thread."""
        self.cursor.begin_anew(old_ends, dict.fromkeys(new_ends, 0), len(withdrawn))

    def commit_for(self, generation: int, positions: Positions, theirs: asyncio.Future[str | None]) -> None:
        self.commit(generation, positions)
        self.to_forwarder(set_once, theirs, None)

    def commit(self, generation: int, positions: Positions) -> None:
        """Store offsets, with those that could not be stored before; what is older than a move is not."""
        waiting = bool(self.uncommitted)
        for index, offset in positions.items():
            if generation >= self.moved_in.get(index, 0):
                self.uncommitted[index] = offset
        if not self.uncommitted:
            return
        try:
            self.source.commit(self.group_id, self.uncommitted)
        except ApiError as error:
            log.warning("offsets cannot be stored", extra={"group": self.group_id, "problem": str(error)})
            if not waiting:
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
            log.error("dead letters cannot be stored", extra={"group": self.group_id, "problem": problem})
        self.to_forwarder(set_once, theirs, problem)


def set_once(future: asyncio.Future[str | None], result: str | None) -> None:
    """Whoever waited may have been cancelled."""
    if not future.done():
        future.set_result(result)
