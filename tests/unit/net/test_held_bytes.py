"""The memory of all connections together: who is not read above the limit, and who is closed."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import pytest

from odradek.meters.memory_metrics import memory_rows
from odradek.net.channel import Channel
from odradek.net.held_bytes import (
    CHECK_MS,
    COUNTED_BYTES,
    EXTRA_BYTES,
    SHARES,
    HeldBytes,
    Memory,
    MemorySettings,
)
from odradek.net.large_frame import SMALL_PIECE_BYTES, LargeFrame
from odradek.testing.clock import MockClock
from support.channels import RecordingTransport, ScriptedListener, framed
from support.memory import memory_of

LIMIT = 1_000_000
MAX_REQUEST = 400_000
STALLED_MS = MemorySettings().stalled_ms


class ClosingTransport(RecordingTransport):
    """Closes its channel as an aborted connection does, in the next turn."""

    channel: Channel

    def abort(self) -> None:
        self.closed = True

    def lose(self) -> None:
        self.channel.connection_lost(None)


@dataclass
class Crowd:
    """Connections to one host with a limit of `LIMIT` for requests and for answers."""

    listener: ScriptedListener = field(
        default_factory=lambda: ScriptedListener(max_request_bytes=MAX_REQUEST)
    )
    channels: list[Channel] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.listener.memory = memory_of(self.clock, LIMIT, LIMIT, MAX_REQUEST)

    @property
    def clock(self) -> MockClock:
        return self.listener.clock

    @property
    def requests(self) -> HeldBytes:
        return self.listener.memory.requests

    @property
    def answers(self) -> HeldBytes:
        return self.listener.memory.answers

    def connect(self) -> tuple[Channel, ClosingTransport]:
        channel, transport = Channel(self.listener), ClosingTransport()
        transport.channel = channel
        channel.connection_made(transport)
        self.channels.append(channel)
        return channel, transport

    def send(self, channel: Channel, data: bytes) -> int:
        """Deliver bytes as long as the connection is read; return how many."""
        transport = channel.transport
        assert isinstance(transport, ClosingTransport)
        sent = 0
        while sent < len(data) and not (transport.reading_paused or transport.closed):
            protocol = transport.protocol
            if isinstance(protocol, LargeFrame):
                room = protocol.get_buffer(-1)
                size = min(len(room), len(data) - sent)
                room[:size] = data[sent : sent + size]
                protocol.buffer_updated(size)
            else:
                size = min(65_536, len(data) - sent)
                channel.data_received(data[sent : sent + size])
            sent += size
        return sent

    def pass_time(self, ms: int) -> None:
        """Advance the clock; transports that were aborted lose their connections."""
        for _ in range(ms // CHECK_MS):
            self.clock.advance(CHECK_MS)
            self.listener.run_turns()
            for channel in self.channels:
                transport = channel.transport
                if isinstance(transport, ClosingTransport) and transport.closed and channel.counted_bytes:
                    transport.lose()


@pytest.fixture
def crowd() -> Crowd:
    return Crowd()


LARGE = struct.pack(">i", MAX_REQUEST) + bytes(MAX_REQUEST)


def test_a_large_request_is_counted_as_it_arrives_and_until_it_is_answered(crowd: Crowd) -> None:
    channel, _ = crowd.connect()
    request = struct.pack(">i", 200_000) + b"later" + bytes(199_995)

    held = []
    for start in (0, 100_000):
        crowd.send(channel, request[start : start + 100_000])
        held.append(crowd.requests.total_bytes)
    crowd.send(channel, request[200_000:])
    held.append(crowd.requests.total_bytes)
    crowd.listener.dispatcher.deferred[0].complete(b"<later>")
    held.append(crowd.requests.total_bytes)

    assert held == [100_000, 200_000, 200_004, 0]


def test_a_request_that_came_in_one_piece_is_counted_while_its_answer_is_pending(crowd: Crowd) -> None:
    channel, _ = crowd.connect()

    channel.data_received(framed(b"later" + bytes(COUNTED_BYTES)))
    held = crowd.requests.total_bytes
    crowd.listener.dispatcher.deferred[0].complete(b"<later>")

    assert held >= COUNTED_BYTES
    assert crowd.requests.total_bytes == 0


def test_requests_that_wait_for_an_answer_are_counted(crowd: Crowd) -> None:
    channel, _ = crowd.connect()
    channel.data_received(framed(b"later"))

    channel.data_received(framed(b"a" * 30_000, b"b" * 30_000))
    held = crowd.requests.total_bytes
    crowd.listener.dispatcher.deferred[0].complete(b"<later>")
    crowd.listener.run_turns()

    assert held == 60_008
    assert crowd.requests.total_bytes == 0


@pytest.mark.parametrize("sent", [100_000, len(LARGE) - 1])
def test_a_lost_connection_holds_nothing(crowd: Crowd, sent: int) -> None:
    channel, _ = crowd.connect()
    crowd.send(channel, LARGE[:sent])

    channel.connection_lost(None)

    assert (crowd.requests.total_bytes, crowd.requests.held) == (0, {})


def test_above_the_limit_large_requests_are_not_read_further(crowd: Crowd) -> None:
    senders = [crowd.connect()[0] for _ in range(20)]

    for _ in range(100):
        for channel in senders:
            crowd.send(channel, LARGE[:4] + bytes(8_000) if not channel.frame_bytes else bytes(8_000))

    assert LIMIT < crowd.requests.total_bytes < LIMIT * 5 // 4
    assert len(crowd.requests.paused) == 20


def test_above_the_limit_a_small_client_goes_on(crowd: Crowd) -> None:
    for _ in range(10):
        crowd.send(crowd.connect()[0], LARGE[:-1])
    small, transport = crowd.connect()
    full = crowd.requests.is_exceeded

    for number in range(5):
        crowd.send(small, framed(b"%d" % number, b"x" * 20_000))
        crowd.listener.run_turns()

    assert full
    assert transport.written.count(b"<") == 10


def test_above_the_limit_less_is_received_at_once(crowd: Crowd) -> None:
    for _ in range(10):
        crowd.send(crowd.connect()[0], LARGE[:-1])
    channel, transport = crowd.connect()
    channel.data_received(LARGE[:10])

    assert isinstance(transport.protocol, LargeFrame)
    assert len(transport.protocol.get_buffer(-1)) == SMALL_PIECE_BYTES


def test_one_large_request_after_the_other_gets_complete(crowd: Crowd) -> None:
    """The clients go on as soon as they are read; each request is answered, and none is closed."""
    senders = {crowd.connect()[0]: 0 for _ in range(20)}
    peak = 0

    for _ in range(2_000):
        for channel, sent in senders.items():
            if sent < len(LARGE):
                senders[channel] += crowd.send(channel, LARGE[sent : sent + 50_000])
            peak = max(peak, crowd.requests.total_bytes)
        crowd.pass_time(CHECK_MS)
        crowd.listener.run_turns()
        if all(sent == len(LARGE) for sent in senders.values()):
            break

    assert all(sent == len(LARGE) for sent in senders.values())
    assert len(crowd.listener.dispatcher.seen) == 20
    assert crowd.requests.closed == 0
    assert peak < LIMIT + MAX_REQUEST + 20 * 50_000
    assert crowd.requests.total_bytes == 0


def test_a_request_that_does_not_get_complete_is_given_up_when_others_wait(crowd: Crowd) -> None:
    stalled = [crowd.connect() for _ in range(3)]
    for channel, _ in stalled:
        crowd.send(channel, LARGE[:-1])
    waiting, transport = crowd.connect()
    sent = crowd.send(waiting, LARGE)

    for _ in range(3 * STALLED_MS // CHECK_MS):
        crowd.pass_time(CHECK_MS)
        sent += crowd.send(waiting, LARGE[sent:])

    assert sent == len(LARGE)
    assert transport.written.startswith(b"<")
    assert 0 < crowd.requests.closed < 3


def test_far_above_the_limit_the_largest_are_closed(crowd: Crowd, caplog: pytest.LogCaptureFixture) -> None:
    """Requests that are being answered cannot be stopped, and then smaller ones come."""
    pending = [crowd.connect() for _ in range(8)]
    for channel, _ in pending:
        channel.data_received(framed(b"later" + bytes(199_000)))
    largest, transport = crowd.connect()
    largest.data_received(framed(b"later" + bytes(300_000)))

    crowd.pass_time(CHECK_MS)

    assert crowd.requests.closed == 2
    assert transport.closed
    assert "closing a connection that holds 300009 bytes" in caplog.text
    assert crowd.requests.total_bytes <= crowd.requests.most_bytes


def test_below_the_limit_nothing_is_paused(crowd: Crowd) -> None:
    channels = [crowd.connect()[0] for _ in range(2)]
    for channel in channels:
        crowd.send(channel, LARGE[:-1])

    assert (len(crowd.requests.paused), len(crowd.clock.timer)) == (0, 0)


def unread(crowd: Crowd, size: int) -> tuple[Channel, ClosingTransport]:
    channel, transport = crowd.connect()
    transport.unsent = size
    channel.pause_writing()
    return channel, transport


def test_unread_answers_are_counted(crowd: Crowd) -> None:
    channel, transport = unread(crowd, 300_000)
    held = crowd.answers.total_bytes
    transport.unsent = 0
    channel.resume_writing()

    assert (held, crowd.answers.total_bytes) == (300_000, 0)


def test_above_the_limit_clients_that_read_stay(crowd: Crowd) -> None:
    clients = [unread(crowd, 300_000) for _ in range(4)]
    exceeded = crowd.answers.is_exceeded

    for _ in range(20):
        for _, transport in clients:
            transport.unsent -= 1_000
        crowd.pass_time(STALLED_MS - CHECK_MS)

    assert exceeded
    assert crowd.answers.closed == 0


def test_above_the_limit_a_client_that_does_not_read_is_closed(crowd: Crowd) -> None:
    clients = [unread(crowd, 300_000) for _ in range(3)]
    largest = unread(crowd, 400_000)

    crowd.pass_time(STALLED_MS + 2 * CHECK_MS)
    for _, transport in (*clients, largest):
        if transport.closed:
            transport.lose()
    crowd.pass_time(CHECK_MS)

    assert [transport.closed for _, transport in (*clients, largest)] == [False, False, False, True]
    assert crowd.answers.closed == 1
    assert not crowd.answers.is_exceeded
    assert not crowd.answers.paused


@pytest.mark.parametrize(("clients", "closed"), [(5, 0), (6, 1), (20, 15)])
def test_far_above_the_limit_as_many_clients_as_needed_are_closed_at_once(
    crowd: Crowd, clients: int, closed: int
) -> None:
    for _ in range(clients):
        unread(crowd, 300_000)

    crowd.pass_time(CHECK_MS)

    assert crowd.answers.closed == closed


def test_the_metrics_show_what_is_held_and_how_many_are_paused(crowd: Crowd) -> None:
    for _ in range(3):
        crowd.send(crowd.connect()[0], LARGE[:-1])
    unread(crowd, 300_000)

    shown = {
        (row.name, row.attributes["of"]): row.value for row in memory_rows(crowd.requests, crowd.answers)
    }

    assert shown == {
        ("odradek.queued.bytes", "requests"): crowd.requests.total_bytes,
        ("odradek.queued.limit", "requests"): LIMIT,
        ("odradek.queued.paused", "requests"): len(crowd.requests.paused),
        ("odradek.queued.closed", "requests"): 0,
        ("odradek.queued.bytes", "answers"): 300_000,
        ("odradek.queued.limit", "answers"): LIMIT,
        ("odradek.queued.paused", "answers"): 0,
        ("odradek.queued.closed", "answers"): 0,
    }
    assert crowd.requests.total_bytes > LIMIT
    assert crowd.requests.paused


@pytest.mark.parametrize("setting", [None, -1, 0])
def test_the_default_does_not_depend_on_the_machine(setting: int | None) -> None:
    clock = MockClock()
    settings = MemorySettings()
    if setting is not None:
        settings = MemorySettings(request_bytes=setting, response_bytes=setting)

    memory = Memory(settings, 100 << 20, clock, clock.timer)

    assert (memory.requests.limit_bytes, memory.answers.limit_bytes) == (256 << 20, 256 << 20)


@pytest.mark.parametrize("limit_bytes", [100 << 20, 256 << 20, 1 << 30])
@pytest.mark.parametrize("request_bytes", [1 << 20, 100 << 20])
def test_little_is_held_beyond_a_limit(limit_bytes: int, request_bytes: int) -> None:
    memory = memory_of(MockClock(), limit_bytes, limit_bytes, request_bytes)

    assert memory.requests.most_bytes <= limit_bytes + EXTRA_BYTES
    assert memory.answers.most_bytes <= limit_bytes + EXTRA_BYTES
    room_bytes = memory.requests.most_bytes - memory.requests.scarce_bytes
    assert room_bytes >= request_bytes + memory.requests.scarce_bytes // SHARES


def test_the_largest_request_fits_in_whatever_the_limit_is() -> None:
    memory = memory_of(MockClock(), 1_000, max_request_bytes=1 << 30)

    assert memory.requests.most_bytes >= 1 << 30


def test_a_setting_replaces_the_default() -> None:
    memory = memory_of(MockClock(), 5, 7)

    assert (memory.requests.limit_bytes, memory.answers.limit_bytes) == (5, 7)


def test_what_waits_to_be_decrypted_is_counted(crowd: Crowd) -> None:
    channel, transport = crowd.connect()

    channel.unread(LIMIT // 2)
    held = [crowd.requests.total_bytes]
    channel.unread(LIMIT + 1)
    held += [crowd.requests.total_bytes, transport.reading_paused]
    crowd.pass_time(CHECK_MS)
    channel.unread(0)
    held += [crowd.requests.total_bytes, transport.reading_paused]

    assert held == [LIMIT // 2, LIMIT + 1, True, 0, False]


def test_small_requests_that_fill_the_memory_before_they_are_complete_are_read_in_turn(crowd: Crowd) -> None:
    request = struct.pack(">i", 60_000) + b"small" + bytes(59_995)
    connections = [crowd.connect() for _ in range(25)]
    left = {}
    for channel, _ in connections:
        left[channel] = request[crowd.send(channel, request[:50_000]) :]
    stood_still = all(transport.reading_paused for _, transport in connections)

    for _ in range(3 * len(connections)):
        crowd.pass_time(CHECK_MS)
        for channel, _ in connections:
            left[channel] = left[channel][crowd.send(channel, left[channel]) :]

    assert stood_still
    assert not any(left.values())
    assert crowd.requests.closed == 0
