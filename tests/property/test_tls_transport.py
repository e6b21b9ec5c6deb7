"""A TLS transport beside plain lists: what goes in comes out in order, however reads, pauses and the socket
cut it, and no more than the bounds waits.
"""

from __future__ import annotations

import ssl
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from odradek.net.tls_transport import PART_BYTES, RECORD_BYTES
from support.examples import examples
from support.tls_pair import FULL_BYTES, READ_BYTES, Buffered, TlsPair, server_context

SIZES: Final = st.one_of(st.integers(1, 100), st.integers(1, 400_000))
HIGH_BYTES: Final = 100_000
CONTEXT: Final = server_context()


def pattern(count: int, size: int) -> bytes:
    """Bytes that no other write has at the same place."""
    return (count.to_bytes(4, "big") * (size // 4 + 1))[:size]


class Transport(RuleBasedStateMachine):
    """A connection, and what each side has written."""

    def __init__(self) -> None:
        super().__init__()
        self.pair = TlsPair(CONTEXT)
        self.pair.shake()
        self.pair.transport.set_write_buffer_limits(high=HIGH_BYTES)
        self.buffered = Buffered(1)
        self.got, self.sent = bytearray(), bytearray()
        """By the host."""
        self.client_got, self.client_sent = bytearray(), bytearray()
        self.writes = 0
        self.largest = 0

    def collect(self) -> None:
        """Move what the protocols have got to the end of `got`."""
        self.got += self.pair.end.data + self.buffered.data
        self.pair.end.data.clear()
        self.buffered.data.clear()

    @rule(size=SIZES)
    def client_writes(self, size: int) -> None:
        self.writes += 1
        data = pattern(self.writes, size)
        self.pair.client.write(data)
        self.client_sent += data

    @rule(most=st.one_of(st.integers(1, 40), st.integers(1, READ_BYTES)))
    def socket_is_read(self, most: int) -> None:
        self.pair.arrive(most)
        self.collect()

    @rule()
    def protocol_pauses(self) -> None:
        self.pair.transport.pause_reading()

    @rule(at_each=st.booleans())
    def protocol_goes_on(self, at_each: bool) -> None:
        transport = self.pair.transport
        self.pair.end.then = transport.pause_reading if at_each else lambda: None
        transport.resume_reading()

    @rule(size=st.integers(1, 100_000))
    def large_frame_begins(self, size: int) -> None:
        self.buffered.buffer = bytearray(size)
        self.pair.transport.set_protocol(self.buffered)

    @rule()
    def large_frame_ends(self) -> None:
        self.pair.transport.set_protocol(self.pair.end)

    @rule()
    def loop_runs(self) -> None:
        self.pair.loop.run()
        self.collect()

    @precondition(lambda self: not self.pair.end.is_writer_paused)
    @rule(size=SIZES)
    def host_writes(self, size: int) -> None:
        self.writes += 1
        data = pattern(self.writes, size)
        self.largest = max(self.largest, size)
        self.pair.transport.set_protocol(self.pair.end)  # the one that is told to pause
        self.pair.transport.write(data)
        self.sent += data

    @rule(most=st.integers(1, 200_000))
    def client_takes(self, most: int) -> None:
        self.pair.transport.set_protocol(self.pair.end)
        self.pair.to_client.write(self.pair.plain.take(most))
        try:
            while data := self.pair.client.read(1 << 20):
                self.client_got += data
        except ssl.SSLWantReadError:
            pass

    @invariant()
    def what_comes_out_went_in(self) -> None:
        assert self.client_sent.startswith(self.got)
        assert self.sent.startswith(self.client_got)

    @invariant()
    def no_more_than_the_bounds_waits(self) -> None:
        pair = self.pair
        unsent_bytes = pair.transport.get_write_buffer_size() - len(pair.plain.written)
        assert unsent_bytes <= HIGH_BYTES + self.largest
        assert pair.end.is_writer_paused or unsent_bytes <= HIGH_BYTES
        assert len(pair.plain.written) <= FULL_BYTES + PART_BYTES + 1_000
        assert pair.transport.incoming.pending <= 2 * RECORD_BYTES + 1_000
        assert pair.end.unread_bytes <= READ_BYTES + RECORD_BYTES

    @invariant()
    def the_socket_is_read_if_nothing_waits_and_nobody_has_paused(self) -> None:
        transport = self.pair.transport
        waits = bool(transport.arrived or transport.incoming.pending or transport.tls.pending())
        assert self.pair.plain.is_read == (not waits and transport.is_reading())
        assert bool(self.pair.end.unread_bytes) == waits

    def teardown(self) -> None:
        pair = self.pair
        pair.end.then = lambda: None
        pair.transport.set_protocol(pair.end)
        pair.transport.resume_reading()
        while pair.loop.soon or pair.arrive():
            pair.loop.run()
        self.collect()
        self.client_got += pair.client_read()

        assert self.got == self.client_sent
        assert self.client_got == self.sent


Transport.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
TestTransport = Transport.TestCase
