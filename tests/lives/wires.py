"""Connections in memory. A wire delays and cuts what travels on it, as it was told."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lives.simulated_loop import SimulatedLoop

KERNEL_BYTES = 65_536
"""What a socket takes beyond what its peer has read."""


@dataclass(slots=True)
class Wire:
    """How bytes travel on one connection."""

    delay_s: float = 0.0
    chunk_bytes: int = 65_536
    """The most that arrives at once, at first."""
    pieces: int = 100
    """After so many, everything arrives as it comes."""

    def cut(self, data: bytearray) -> bytes:
        """Take what arrives next."""
        self.pieces -= 1
        piece = bytes(data[: self.chunk_bytes if self.pieces > 0 else len(data)])
        del data[: len(piece)]
        return piece


class End(asyncio.Transport):
    """One end of a connection.

    What was written waits in `unsent` until the peer reads it; only the part beyond the kernel's buffer
    counts as waiting in the transport.
    """

    def __init__(self, loop: SimulatedLoop, wire: Wire, sockname: Any, peername: Any, port: int) -> None:
        super().__init__({"sockname": sockname, "peername": peername})
        self.loop = loop
        self.wire = wire
        self.port = port
        """Of the listener."""
        self.peer: End | None = None
        self.protocol: Any = None
        self.unsent = bytearray()
        self.is_paused = self.closing = self.ended = self.is_lost = False
        self.peer_ended = self.eof_told = False
        self.flowing: asyncio.TimerHandle | None = None
        self.high, self.low = 65_536, 16_384
        self.writing_paused = False
        self.first_bytes: Any = None

    # of the protocol above

    def attach(self, protocol: Any) -> None:
        """The connection is open on this side."""
        self.protocol = protocol
        protocol.connection_made(self)
        if self.peer is not None:
            self.peer.flow()

    def write(self, data: Any) -> None:
        if self.ended or self.is_lost or self.closing:
            return
        self.unsent += data
        self.flow()
        self.look_at_water()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def get_write_buffer_size(self) -> int:
        return max(len(self.unsent) - KERNEL_BYTES, 0)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.high = 65_536 if high is None else high
        self.low = self.high // 4 if low is None else low
        self.look_at_water()

    def look_at_water(self) -> None:
        """Pause or resume the writer."""
        waiting = self.get_write_buffer_size()
        if not self.writing_paused and waiting > self.high:
            self.writing_paused = True
            self.protocol.pause_writing()
        elif self.writing_paused and waiting <= self.low and not self.is_lost:
            self.writing_paused = False
            self.protocol.resume_writing()

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def get_protocol(self) -> Any:
        return self.protocol

    def is_closing(self) -> bool:
        return self.closing or self.is_lost

    def is_reading(self) -> bool:
        return not self.is_paused and not self.is_closing()

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False
        if self.peer is not None:
            self.peer.flow()
        elif self.peer_ended:
            self.loop.call_soon(self.receive_eof)

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.ended = True
        self.flow()

    def close(self) -> None:
        if not self.is_closing():
            self.closing = True
            self.flow()
            if self.peer is None or not self.unsent:
                self.loop.call_soon(self.lose, None)

    def abort(self) -> None:
        self.closing = True
        self.unsent.clear()
        self.loop.call_soon(self.lose, None)
        if self.peer is not None:
            self.loop.call_soon(self.peer.lose, ConnectionResetError(104, "Connection reset by peer"))

    def cut(self) -> None:
        """The network is gone: both ends are reset."""
        for end in (self, self.peer):
            if end is not None:
                end.unsent.clear()
                self.loop.call_soon(end.lose, ConnectionResetError(104, "Connection reset by peer"))

    # the way of the bytes

    def flow(self) -> None:
        """Let the peer have more, after the delay."""
        if self.flowing is None and not self.is_lost:
            self.flowing = self.loop.call_later(self.wire.delay_s, self.arrive)

    def arrive(self) -> None:
        """The peer reads a chunk, or that there is no more."""
        self.flowing = None
        peer = self.peer
        if peer is None or self.is_lost:
            return
        if (wait_s := self.loop.frozen.get(self.port, 0) - self.loop.now_s) > 0:
            self.flowing = self.loop.call_later(wait_s, self.arrive)
            return
        self.pass_on(peer)
        if not self.is_lost and not self.unsent:
            self.sent_everything()
        elif self.peer is not None and not self.peer.is_paused and not self.peer.is_waited_for:
            self.flow()

    @property
    def is_waited_for(self) -> bool:
        """It has no protocol yet, and nothing was refused."""
        return self.protocol is None and not self.is_lost

    def pass_on(self, peer: End) -> None:
        """Let the peer have the next chunk, if it reads."""
        if peer.is_closing() and peer.protocol is not None:
            self.unsent.clear()
        elif self.unsent and peer.protocol is None:
            peer.wake_waiter()
        elif self.unsent and not peer.is_paused:
            peer.receive(self.wire.cut(self.unsent))
            self.look_at_water()

    def sent_everything(self) -> None:
        """What follows the last byte: the end of this direction, or of the connection."""
        peer = self.peer
        if (self.ended or self.closing) and peer is not None and not peer.eof_told:
            peer.peer_ended = True
            if peer.protocol is None:
                peer.wake_waiter()
            elif not peer.is_paused or self.closing:
                peer.receive_eof()
        if self.closing:
            self.lose(None)

    def receive(self, data: bytes) -> None:
        """Give bytes to the protocol, into its buffer if it has one."""
        while data and self.protocol is not None and not self.is_closing():
            if not isinstance(self.protocol, asyncio.BufferedProtocol):
                self.protocol.data_received(data)
                return
            room: Any = self.protocol.get_buffer(-1)
            taken = min(len(room), len(data))
            room[:taken] = data[:taken]
            self.protocol.buffer_updated(taken)
            data = data[taken:]

    def receive_eof(self) -> None:
        """The peer sends no more."""
        if not self.eof_told and not self.is_closing() and self.protocol is not None:
            self.eof_told = True
            if not self.protocol.eof_received():
                self.close()

    def wake_waiter(self) -> None:
        """Somebody waits for the first bytes: a handshake."""
        if self.first_bytes is not None:
            self.first_bytes.wake(self.loop)

    def lose(self, error: Exception | None) -> None:
        """The connection is gone."""
        if self.is_lost:
            return
        self.is_lost = True
        self.unsent.clear()
        if self.flowing is not None:
            self.flowing.cancel()
            self.flowing = None
        peer, self.peer = self.peer, None
        protocol, self.protocol = self.protocol, None
        if protocol is not None:
            protocol.connection_lost(error)
        self.wake_waiter()
        self.first_bytes = None
        if peer is not None and not peer.is_lost:
            peer.peer_has_gone()

    def peer_has_gone(self) -> None:
        """Nothing that this end writes is read any more; what it reads has ended."""
        self.peer_ended, self.peer = True, None
        if self.protocol is not None and not self.is_paused:
            self.receive_eof()
        elif self.protocol is None:
            self.wake_waiter()
        if self.closing:
            self.loop.call_soon(self.lose, None)
        elif self.protocol is not None and self.is_paused and self.unsent:
            self.loop.call_soon(self.lose, BrokenPipeError(32, "Broken pipe"))


class WireSocket:
    """An accepted connection before it has a transport."""

    def __init__(self, end: End) -> None:
        self.end: End | None = end
        self.reader: asyncio.Handle | None = None
        end.first_bytes = self

    def setblocking(self, _flag: bool) -> None:
        """It never blocks."""

    def take(self) -> End:
        """The transport.

        Raises:
            OSError: The connection was shut down.
        """
        if self.end is None or self.end.is_lost:
            raise OSError(107, "Transport endpoint is not connected")
        end, self.end = self.end, None
        end.first_bytes = None
        return end

    def wake(self, loop: SimulatedLoop) -> None:
        """Tell the reader if there is something to read."""
        end = self.end
        if self.reader is not None and end is not None:
            peer = end.peer
            if end.is_lost or end.peer_ended or (peer is not None and peer.unsent):
                loop._add_callback(self.reader)  # type: ignore[attr-defined]

    def shutdown(self, _how: int) -> None:
        if self.end is not None:
            self.end.abort()

    def close(self) -> None:
        if self.end is not None:
            self.end.abort()
            self.end = None


class Listening:
    """A port."""

    def __init__(self, loop: SimulatedLoop, address: tuple[str, int]) -> None:
        self.loop = loop
        self.address = address
        self.backlog: deque[WireSocket] = deque()
        self.reader: asyncio.Handle | None = None
        loop.ports[address[1]] = self

    def getsockname(self) -> tuple[str, int]:
        return self.address

    def offer(self, socket: WireSocket, loop: SimulatedLoop) -> None:
        """A connection waits to be accepted."""
        self.backlog.append(socket)
        self.wake(loop)

    def wake(self, loop: SimulatedLoop) -> None:
        if self.reader is not None and self.backlog:
            loop._add_callback(self.reader)  # type: ignore[attr-defined]

    def accept(self) -> tuple[WireSocket, Any]:
        if not self.backlog:
            raise BlockingIOError
        socket = self.backlog.popleft()
        assert socket.end is not None
        self.loop.call_soon(self.wake, self.loop)
        return socket, socket.end.get_extra_info("peername")

    def close(self) -> None:
        self.loop.ports.pop(self.address[1], None)
        while self.backlog:
            self.backlog.popleft().close()


def connected(loop: SimulatedLoop, address: tuple[str, int]) -> tuple[End, WireSocket]:
    """Both ends of a new connection: the client's, and what a listener accepts."""
    wire = loop.next_wire()
    peername = ("127.0.0.1", next(loop.client_ports))
    client = End(loop, wire, peername, address, address[1])
    server = End(loop, wire, address, peername, address[1])
    client.peer, server.peer = server, client
    loop.ends |= {client, server}
    return client, WireSocket(server)
