"""A `TlsTransport` on a plain transport in memory, and the TLS of its client."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, Final

from odradek.net.tls_transport import TlsTransport
from support.certificates import authority, server

READ_BYTES: Final = 262_144
"""The most that an event loop reads at once."""
FULL_BYTES: Final = 65_536
"""A plain transport that holds more pauses its protocol."""


class Loop:
    """Runs callbacks when a test says so."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], object]] = []

    def get_debug(self) -> bool:
        return False

    def create_future(self) -> asyncio.Future[None]:
        return asyncio.Future(loop=self)  # type: ignore[arg-type]  # a part of a loop

    def call_soon(self, callback: Callable[[], object]) -> None:
        self.soon.append(callback)

    def call_later(self, _delay_s: float, callback: Callable[[], object]) -> None:
        self.soon.append(callback)

    def run(self) -> None:
        """Run what is due."""
        due, self.soon = self.soon, []
        for callback in due:
            callback()


class Plain(asyncio.Transport):
    """A transport that keeps what is written until the client takes it."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        super().__init__({"sockname": ("127.0.0.1", 9093)})
        self.protocol = protocol
        self.written = bytearray()
        self.largest = 0
        self.calls: list[str] = []
        self.is_read = True
        self.is_full = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data
        self.largest = max(self.largest, len(data))
        if len(self.written) > FULL_BYTES and not self.is_full:
            self.is_full = True
            self.protocol.pause_writing()

    def take(self, most: int | None = None) -> bytes:
        """What the client takes."""
        taken = bytes(self.written[:most])
        del self.written[:most]
        if self.is_full and len(self.written) <= FULL_BYTES // 4:
            self.is_full = False
            self.protocol.resume_writing()
        return taken

    def get_write_buffer_size(self) -> int:
        return len(self.written)

    def pause_reading(self) -> None:
        assert self.is_read
        self.is_read = False
        self.calls.append("pause")

    def resume_reading(self) -> None:
        assert not self.is_read
        self.is_read = True
        self.calls.append("resume")

    def close(self) -> None:
        self.calls.append("close")

    def is_closing(self) -> bool:
        return "close" in self.calls or "abort" in self.calls

    def abort(self) -> None:
        self.calls.append("abort")


class Received(asyncio.Protocol):
    """Records what it gets; may do something then."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.events: list[object] = []
        self.then: Callable[[], object] = lambda: None
        self.unread_bytes = 0
        self.is_writer_paused = False
        self.stays = False
        """Whether it closes the connection itself after the client has left."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.events.append("made")

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.then()

    def eof_received(self) -> bool:
        self.events.append("left")
        return self.stays

    def connection_lost(self, exc: Exception | None) -> None:
        self.events.append(exc)

    def unread(self, size_bytes: int) -> None:
        self.unread_bytes = size_bytes

    def pause_writing(self) -> None:
        assert not self.is_writer_paused
        self.is_writer_paused = True
        self.events.append("full")

    def resume_writing(self) -> None:
        assert self.is_writer_paused
        self.is_writer_paused = False


class Buffered(asyncio.BufferedProtocol):
    """Receives into a small buffer."""

    def __init__(self, size: int = 1_000) -> None:
        self.buffer = bytearray(size)
        self.data = bytearray()
        self.counts: list[int] = []

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self.buffer)

    def buffer_updated(self, nbytes: int) -> None:
        self.data += self.buffer[:nbytes]
        self.counts.append(nbytes)


class TlsPair:
    """Both ends of one connection."""

    def __init__(self, context: ssl.SSLContext | None = None, there: ssl.SSLContext | None = None) -> None:
        self.loop, self.end = Loop(), Received()
        own = context or server_context()
        self.transport = TlsTransport(own, self.end, self.loop)  # type: ignore[arg-type]  # a part of a loop
        self.plain = Plain(self.transport)
        self.transport.connection_made(self.plain)
        self.to_client, self.to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
        trusting = there or ssl.create_default_context(cadata=authority().issued.certificate)
        self.client = trusting.wrap_bio(self.to_client, self.to_server, server_hostname="localhost")
        self.on_the_way = bytearray()
        """What the client has sent and nobody has read from the socket."""

    def arrive(self, most: int = READ_BYTES) -> bool:
        """Let the transport read once, if it reads; True if it got something."""
        self.on_the_way += self.to_server.read()
        if not self.plain.is_read or self.plain.is_closing() or not self.on_the_way:
            return False
        read = bytes(self.on_the_way[:most])
        del self.on_the_way[:most]
        self.transport.data_received(read)
        return True

    def exchange(self) -> None:
        """Carry bytes in both directions."""
        while self.arrive():
            pass
        self.to_client.write(self.plain.take())

    def shake(self) -> None:
        """Do the handshake."""
        for _ in range(4):
            try:
                self.client.do_handshake()
            except ssl.SSLWantReadError:
                self.exchange()
        self.exchange()

    def send(self, data: bytes) -> None:
        """The client sends bytes."""
        self.client.write(data)
        self.exchange()

    def client_read(self) -> bytes:
        """Everything that the client can decrypt."""
        found, taken = b"", b"begin"
        while taken:
            taken = self.plain.take()
            self.to_client.write(taken)
            try:
                while data := self.client.read(1 << 20):
                    found += data
            except ssl.SSLWantReadError:
                continue
        return found


def server_context(**options: Any) -> ssl.SSLContext:
    """The context of a listener."""
    from odradek.net.tls_context import load_tls
    from odradek.security.tls_settings import TlsSettings

    settings = TlsSettings(
        key=server().key,
        certificate_chain=server().certificate,
        trusted_certificates=authority().issued.certificate,
        **options,
    )
    return load_tls(settings).context


class OwnPair:
    """A `TlsTransport` as a client, and the one of a server."""

    def __init__(self, trusting: ssl.SSLContext) -> None:
        self.server = TlsPair()
        self.end = Received()
        loop: Any = self.server.loop
        self.client = TlsTransport(trusting, self.end, loop, "localhost")
        self.plain = Plain(self.client)
        self.client.connection_made(self.plain)

    def exchange(self) -> None:
        """Carry bytes in both directions."""
        there = self.server
        while self.plain.written or there.plain.written:
            there.transport.data_received(self.plain.take())
            self.client.data_received(there.plain.take())
