"""The Produce requests of one pair: nearly all that a producer sends, so they take the shortest way.

Requests that follow each other and begin alike are passed on in one run, and are counted together. If the
pair is observed, a walk reads the headers of their batches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from odradek.gateway.pair_state import PairState
from odradek.gateway.produce_beginning import (
    OfTopic,
    ProduceBeginning,
    first_topic,
    nearest,
    streamed_batches_walk,
)
from odradek.gateway.request_heads import HEAD_BYTES, SMALLEST_FRAME, Head, bad_length, unpack_head
from odradek.wire.errors import WireError
from odradek.wire.walking import Walking

PRODUCE: Final = 0
LENGTH_BYTES: Final = 4


class BatchReader:
    """Counts the batches of a request that comes in pieces, and tells their sums when all have come."""

    __slots__ = ("tell", "walking")

    def __init__(self, tell: Callable[[int, int, int], None], version: int, size: int, acks_end: int) -> None:
        self.tell = tell
        self.walking: Walking | None = Walking(streamed_batches_walk(nearest(version))(acks_end), size)

    def __call__(self, piece: memoryview) -> None:
        """Take the next bytes, from the API key on. Does not raise."""
        if self.walking is None:
            return
        try:
            self.walking.feed(piece)
        except WireError:
            self.walking = None  # it is for the broker to refuse
            return
        if self.walking.found is not None:
            _, _, records, batches, size_bytes = self.walking.found
            self.tell(records, batches, size_bytes)
            self.walking = None


class ProduceRequests:
    """A part of `Requests`."""

    __slots__ = ("beginning", "needed", "now_ns", "reader", "state")

    def __init__(self, state: PairState) -> None:
        self.state = state
        self.beginning = ProduceBeginning()
        self.needed = 0
        """How many bytes of a frame that is held back must be there before they are looked at again."""
        self.now_ns = 0
        """When the current chunk came."""
        self.reader: Callable[[memoryview], None] | None = None
        """Wants the rest of the current frame, for the observation."""

    def take_produce(  # noqa: C901  straight-line: it runs for every Produce request
        self, head: Head, data: bytes, pos: int, end: int
    ) -> int:
        """Pass on Produce requests that follow each other and begin as the first one, whose head this is.
        With acks=0 they have no responses.

        Returns:
            The offset of the next request. `needed` is not 0 if this one is held back.
        """
        state, beginning = self.state, self.beginning
        outstanding, observer = state.outstanding, state.observer
        most = state.path.limits.max_request_bytes
        size, _, version, correlation_id = head
        if not SMALLEST_FRAME <= size <= most:
            raise bad_length(size, most)
        if needed := beginning.read(data, pos + LENGTH_BYTES, size, version):
            self.needed = LENGTH_BYTES + needed
            return pos
        least, known, acks = beginning.end, beginning.known, beginning.acks
        start, count, burst = pos, 0, (PRODUCE, version, self.now_ns, None)
        records = batches = batch_bytes = 0
        topics: list[OfTopic] = []
        while True:
            if acks:
                outstanding.append((correlation_id, burst))
            count += 1
            at = pos + LENGTH_BYTES
            pos = at + size
            if observer is not None and pos <= end:
                try:
                    _, _, more, more_batches, more_bytes, named = beginning.walk(data, at + least, pos)
                except WireError:
                    pass  # it is for the broker to refuse
                else:
                    records += more
                    batches += more_batches
                    batch_bytes += more_bytes
                    topics += named
            if pos + HEAD_BYTES > end or not known:
                break
            size, key, api_version, correlation_id = unpack_head(data, pos)
            if key != PRODUCE or api_version != version or not least <= size <= most:
                break
            if not data.startswith(known, pos + HEAD_BYTES):
                break
        state.path.meter.requests[PRODUCE] += count
        if not acks:
            state.path.meter.acks0 += count
        if observer is not None:
            in_flight = len(outstanding)
            observer.produce(version, acks, count, pos - start, records, batches, batch_bytes, in_flight)
            observer.wrote(version, topics)
            if pos > end:
                observer.writes(version, first_topic(data, at + least, version))
                self.reader = BatchReader(observer.batches, version, size, least)
                self.reader(memoryview(data)[at:])
        return pos
