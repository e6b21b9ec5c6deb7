"""Frames of a channel that arrive in many pieces."""

from __future__ import annotations

import errno
import mmap
import struct
import sys
from pathlib import Path

import pytest

from odradek.net.channel import Channel
from odradek.net.large_frame import FREED_AT_ONCE_BYTES, FREED_EVERY_MS, HugeFrame, LargeFrame
from support.channels import LIMIT, RecordingTransport, ScriptedListener, framed, receive, transport, written

HUGE = 2_000_000 // 256 * 256
"""Size from which frames have pages of their own, in tests that say so."""


@pytest.fixture
def listener() -> ScriptedListener:
    return ScriptedListener()


@pytest.fixture
def channel(listener: ScriptedListener) -> Channel:
    channel = Channel(listener)
    channel.connection_made(RecordingTransport())
    return channel


@pytest.mark.parametrize("size", [100, 5_000, 70_000, 300_000])
def test_a_large_frame_is_answered_however_it_is_split(channel: Channel, size: int) -> None:
    large = b"x" * (LIMIT // 2)
    stream = framed(b"a", large, b"b", large, large, b"c")

    for start in range(0, len(stream), size):
        receive(channel, stream[start : start + size])

    whole = b"<" + large + b">"
    assert written(channel) == b"<a>" + whole + b"<b>" + whole + whole + b"<c>"
    assert channel.buffer is None


@pytest.mark.parametrize("come", [5, 5_000, 200_000])
def test_the_length_of_a_large_frame_allocates_no_memory(channel: Channel, come: int) -> None:
    stream = framed(b"x" * LIMIT)

    for start in range(0, come, 1_000):
        receive(channel, stream[start : min(start + 1_000, come)])

    protocol = transport(channel).protocol
    assert isinstance(protocol, LargeFrame)
    assert len(protocol.frame) == come
    assert sys.getsizeof(protocol.frame) < come * 1.2 + 100


@pytest.fixture
def small_huge_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.net.large_frame.HUGE_FRAME_BYTES", HUGE)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def test_the_length_of_a_huge_frame_takes_no_memory(listener: ScriptedListener) -> None:
    listener.max_request_bytes = 100_000_000
    before = resident_bytes()
    channels = [Channel(listener) for _ in range(10)]

    for channel in channels:
        channel.connection_made(RecordingTransport())
        receive(channel, struct.pack(">i", 90_000_000) + bytes(100_000))

    assert all(isinstance(transport(channel).protocol, HugeFrame) for channel in channels)
    assert listener.memory.requests.total_bytes == 10 * 100_004
    assert resident_bytes() - before < 50_000_000


@pytest.mark.usefixtures("small_huge_frames")
@pytest.mark.parametrize("muted", [False, True])
def test_a_huge_frame_is_answered(channel: Channel, listener: ScriptedListener, muted: bool) -> None:
    request = bytes(range(256)) * (HUGE // 256)
    channel.max_request_bytes = len(request)
    stream = framed(request)
    receive(channel, stream[:500_000])
    if muted:
        channel.pause_writing()
    receive(channel, stream[500_000:])
    if muted:
        receive(channel, framed(b"b"))
        channel.resume_writing()
        listener.run_turns()

    assert written(channel) == b"<" + request + b">" + b"<b>" * muted


@pytest.mark.usefixtures("small_huge_frames")
def test_the_pages_of_lost_frames_are_freed_a_few_at_a_time(
    listener: ScriptedListener, monkeypatch: pytest.MonkeyPatch
) -> None:
    freed: list[tuple[int, int]] = []

    class Pages(mmap.mmap):
        def madvise(self, option: int, start: int = 0, length: int = 0) -> None:
            assert option == mmap.MADV_DONTNEED
            freed.append((start, length))

    monkeypatch.setattr("odradek.net.large_frame.mmap.mmap", Pages)
    sent, listener.max_request_bytes = 2 * FREED_AT_ONCE_BYTES + 5_000, 100_000_000
    for _ in range(2):
        channel = Channel(listener)
        channel.connection_made(RecordingTransport())
        receive(channel, struct.pack(">i", 90_000_000) + bytes(sent - 4))
        receiver = transport(channel).protocol
        assert isinstance(receiver, HugeFrame)
        receiver.connection_lost(None)
    assert freed == []

    for turns in range(1, 7):
        listener.clock.advance(FREED_EVERY_MS)
        assert len(freed) == turns
    listener.clock.advance(1_000)

    assert max(length for _, length in freed) <= FREED_AT_ONCE_BYTES + mmap.PAGESIZE
    assert len(freed) == 6
    assert sum(length for _, length in freed[:3]) == sent


@pytest.mark.usefixtures("small_huge_frames")
def test_a_huge_frame_without_pages_is_a_large_one(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOMEM, "no memory")

    monkeypatch.setattr("odradek.net.large_frame.mmap.mmap", refuse)
    request = b"x" * HUGE
    channel.max_request_bytes = len(request)

    receive(channel, framed(request))

    assert written(channel) == b"<" + request + b">"


def test_large_frames_that_share_a_buffer_do_not_mix(listener: ScriptedListener) -> None:
    channels = [Channel(listener) for _ in range(2)]
    streams = [framed(letter * 300_000) for letter in (b"a", b"b")]
    for channel in channels:
        channel.connection_made(RecordingTransport())

    for start in range(0, len(streams[0]), 70_000):
        for channel, stream in zip(channels, streams, strict=True):
            receive(channel, stream[start : start + 70_000])

    assert [written(channel) for channel in channels] == [b"<" + stream[4:] + b">" for stream in streams]


def test_a_large_frame_completed_while_writing_is_paused_waits(
    channel: Channel, listener: ScriptedListener
) -> None:
    request = b"x" * 100_000
    stream = framed(request)
    receive(channel, stream[:50_000])
    channel.pause_writing()
    receive(channel, stream[50_000:])
    before = written(channel)

    channel.resume_writing()
    listener.run_turns()

    assert before == b""
    assert written(channel) == b"<" + request + b">"


def test_a_connection_lost_during_a_large_frame_is_closed(
    channel: Channel, listener: ScriptedListener
) -> None:
    channel.data_received(framed(b"x" * LIMIT)[:5_000])
    protocol = transport(channel).protocol
    assert isinstance(protocol, LargeFrame)

    protocol.connection_lost(None)

    assert listener.lost == 1
    assert channel.closing


def test_a_client_that_leaves_during_a_large_frame_is_disconnected_in_its_turn(
    channel: Channel, listener: ScriptedListener
) -> None:
    channel.data_received(framed(b"x" * LIMIT)[:5_000])
    protocol = transport(channel).protocol
    assert isinstance(protocol, LargeFrame)

    later = protocol.eof_received()
    before = transport(channel).closed
    listener.run_turns()

    assert later
    assert (before, transport(channel).closed) == (False, True)
