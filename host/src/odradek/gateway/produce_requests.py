"""The Produce requests of one pair: nearly all that a producer sends, so they take the shortest way.

Requests that follow each other and begin alike are passed on in one run, and are counted together. If the
pair is observed, one call of `struct` reads the head of a request and that of its only batch.
"""

from __future__ import annotations

from typing import Final

from odradek.gateway.observation.observer import Reader
from odradek.gateway.pair_state import PairState
from odradek.gateway.produce_beginning import ProduceBeginning
from odradek.gateway.produce_fields import LEAST_LENGTH, LOG_OVERHEAD, MAGIC, NO_FORM
from odradek.gateway.request_heads import HEAD_BYTES, SMALLEST_FRAME, Head, bad_length, unpack_head

PRODUCE: Final = 0
LENGTH_BYTES: Final = 4


class ProduceRequests:
    """A part of `Requests`."""

    __slots__ = ("beginning", "is_usual", "needed", "now_ns", "reader", "state")

    def __init__(self, state: PairState) -> None:
        self.state = state
        self.beginning = ProduceBeginning()
        self.is_usual = False
        """The pair is observed, and `take_usual` knows a form."""
        self.needed = 0
        """How many bytes of a frame that is held back must be there before they are looked at again."""
        self.now_ns = 0
        """When the current chunk came."""
        self.reader: Reader | None = None
        """Wants the rest of the current frame, for the observation."""

    def take_produce(  # noqa: C901  straight-line: it runs for every Produce request
        self, head: Head, data: bytes, pos: int, end: int
    ) -> int:
        """Pass on Produce requests that follow each other and begin as the first one, whose head this is;
        only this one if it is observed. With acks=0 they have no responses.

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
        while True:
            if acks:
                outstanding.append((correlation_id, burst))
            count += 1
            pos += size + LENGTH_BYTES
            if observer is not None or pos + HEAD_BYTES > end or not known:
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
            self.reader = observer.produce(version, data, start, beginning)
            self.is_usual = beginning.form is not NO_FORM
            observer.requests(PRODUCE, version, count, pos - start, len(outstanding))
        return pos

    def take_usual(self, data: bytes, pos: int, end: int) -> int:
        """Pass on observed Produce requests that follow each other, begin as the last one and have the form
        of the last one with one batch, if the header of that batch has arrived.

        Returns:
            The offset of the next request: where it began if there is none of this kind.
        """
        state, beginning = self.state, self.beginning
        outstanding, most = state.outstanding, state.path.limits.max_request_bytes
        unpack, one, around, shown = beginning.form
        version, known, acks = beginning.version, beginning.known, beginning.acks
        start, last, count, records = pos, end - shown, 0, 0
        burst = (PRODUCE, version, self.now_ns, None)
        while pos <= last:
            size, key, api_version, number, begin, topics, partitions, length, magic, more = unpack(data, pos)
            # A topic with a longer or shorter name moves the batch's length, which then does not fit.
            if not (
                key == PRODUCE
                and api_version == version
                and begin == known
                and topics == partitions == one
                and LEAST_LENGTH <= length == size - around
                and magic == MAGIC
                and size <= most
            ):
                break
            if acks:
                outstanding.append((number, burst))
            count += 1
            records += more
            pos += size + LENGTH_BYTES
        if count and state.observer is not None:
            state.path.meter.requests[PRODUCE] += count
            if not acks:
                state.path.meter.acks0 += count
            size = pos - start
            batch_bytes = size - count * (LENGTH_BYTES + around - LOG_OVERHEAD)
            state.observer.usual_produce(version, acks, count, size, records, batch_bytes, len(outstanding))
        return pos
