"""TLS between a plain transport of the event loop and the host's end of a connection.

The TLS of asyncio and uvloop keeps a buffer of 256 KiB for each connection, and more inside OpenSSL: a client
that has once sent or received a large message holds that memory until it leaves. This one gives OpenSSL a
small part at a time, and tells a refused client why: the loops drop the alert.

OpenSSL never holds what waits, because a BIO moves all of it with each write:

1. The socket is read if and only if nothing waits to be decrypted and nobody has paused. So what waits is one
   read at most. OpenSSL gets the next part of it when it has no whole record.
2. What is written waits as plaintext. A part is encrypted when the plain transport takes it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Iterable
from typing import Any, Final

from odradek.net.unsent import Unsent

PART_BYTES: Final = 32_768
"""Bytes that OpenSSL gets at once. Its buffers never shrink; smaller parts cost more CPU."""
RECORD_BYTES: Final = 16_384
"""The most that a TLS record contains."""
LARGEST_BYTES: Final = RECORD_BYTES + 261
"""The most that it takes up."""
LAST_WORDS_S: Final = 0.02
"""Seconds until the end follows what was written last. kafka-python drops an answer that it reads together
with the end of the connection, such as the refusal of a login."""

HIGH_WATER_BYTES: Final = 65_536
"""Plaintext that may wait before the protocol is paused, unless it sets another limit: as in the loops."""

NOTHING: Final = memoryview(b"")
GONE: Final = asyncio.Protocol()
"""Takes the place of the protocol of a lost connection, which can then be freed."""


class TlsTransport(asyncio.Protocol, asyncio.Transport):
    """Our side of one TLS connection: a plain transport's protocol, and another one's transport.

    Args:
        context: The listener's, with its certificates, or that of a client.
        protocol: Our end. It gets this transport when the handshake is done.
        loop: The loop.
        server_name: The server that a client connects to, which is the peer then; None for a listener, whose
            peer is a client.
    """

    __slots__ = (
        "arrived", "closing", "failure", "handshaken", "has_left", "high_bytes", "holds", "incoming",
        "is_delivering", "is_ending", "is_full", "is_open", "is_paused", "is_read", "is_silent",
        "is_writer_paused", "loop", "low_bytes", "outgoing", "plain", "protocol", "tls", "unread_bytes",
        "unsent",
    )  # fmt: skip

    plain: asyncio.Transport

    def __init__(
        self,
        context: ssl.SSLContext,
        protocol: asyncio.BaseProtocol,
        loop: asyncio.AbstractEventLoop,
        server_name: str | None = None,
    ) -> None:
        super().__init__()
        self.loop = loop
        self.protocol: Any = protocol
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_name is None, server_name)
        self.handshaken: asyncio.Future[None] = loop.create_future()
        """Fails with the OSError of a failed handshake."""
        self.failure: ssl.SSLError | None = None
        """Why the connection was closed, if not at the wish of one side."""
        self.is_open = False
        """The protocol has this transport and has not lost it."""
        self.arrived = NOTHING
        """The part of the last read that OpenSSL has not got."""
        self.holds: Callable[[int], None] | None = getattr(protocol, "unread", None)
        """Told how much waits to be decrypted, whenever that changes; see `Channel.unread`."""
        self.unread_bytes = 0
        """What it was told last."""
        self.is_paused = False
        self.is_read = True
        """The socket is being read."""
        self.is_delivering = False
        self.unsent = Unsent()
        """Plaintext that waits until the plain transport takes more."""
        self.is_full = False
        """The plain transport does not take more now."""
        self.high_bytes, self.low_bytes = HIGH_WATER_BYTES, HIGH_WATER_BYTES // 4
        self.is_writer_paused = False
        self.closing = False
        self.is_ending = False
        """It closes as soon as nothing waits to be sent."""
        self.has_left = False
        """The peer sends no more, and the protocol closes the connection later."""
        self.is_silent = False
        """It has ended the connection without a goodbye, so it gets none."""

    # the protocol of the plain transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.plain = transport  # type: ignore[assignment]  # uvloop's do not inherit Transport
        if not self.tls.server_side:
            self.has_shaken_hands()

    def data_received(self, data: bytes) -> None:
        if self.closing:
            self.end()  # the peer has read the last words
            return
        self.arrived = memoryview(self.arrived.tobytes() + data if self.arrived else data)
        if self.is_open or self.has_shaken_hands():
            self.deliver()

    def eof_received(self) -> bool:
        """The peer has ended the connection. The plain transport closes itself, unless the protocol does so
        later, or something waits to be sent: the peer may still read.
        """
        if self.is_open and not self.closing:
            self.is_silent = True
            self.has_left = bool(self.protocol.eof_received())
            if not self.has_left:
                self.ignore_rest()
                self.is_ending = bool(self.unsent)
        return self.has_left or bool(self.unsent)

    def connection_lost(self, exc: Exception | None) -> None:
        self.forget()
        protocol, self.protocol, self.holds = self.protocol, GONE, None
        if self.is_open:
            self.is_open = False
            protocol.connection_lost(exc or self.failure)
        elif not self.handshaken.done():
            self.handshaken.set_exception(exc or ConnectionResetError())

    def pause_writing(self) -> None:
        self.is_full = True

    def resume_writing(self) -> None:
        self.is_full = False
        if self.is_open:
            self.send()

    # receiving

    def has_shaken_hands(self) -> bool:
        """Go on with the handshake; True when it is done."""
        try:
            while True:
                with contextlib.suppress(ssl.SSLWantReadError):
                    self.tls.do_handshake()
                    break
                if not self.feed():
                    self.flush()
                    return False
        except ssl.SSLError as error:
            self.fail(error)
            if not self.handshaken.done():
                self.handshaken.set_exception(error)
            return False
        self.flush()
        self.is_open = True
        self.protocol.connection_made(self)
        if not self.handshaken.done():
            self.handshaken.set_result(None)
        return True

    def feed(self) -> bool:
        """Give OpenSSL the next part of what has arrived; False if there is none."""
        if not self.arrived:
            return False
        self.incoming.write(self.arrived[:RECORD_BYTES])
        self.arrived = self.arrived[RECORD_BYTES:] or NOTHING  # an empty part would keep the whole read
        return True

    def deliver(self) -> None:
        """Give the protocol what can be decrypted, until it pauses."""
        if self.is_delivering:
            return
        self.is_delivering = True
        try:
            while not (self.is_paused or self.closing) and self.has_bytes():
                self.deliver_some()
        except ssl.SSLError as error:
            self.fail(error)
        finally:
            self.is_delivering = False
        if self.outgoing.pending:  # the peer renews its keys
            self.flush()
        self.read_socket()

    def has_bytes(self) -> bool:
        """Whether something waits to be decrypted."""
        return bool(self.arrived or self.incoming.pending or self.tls.pending())

    def deliver_some(self) -> None:
        """Give the protocol a record, or as many as there are and its buffer takes.

        Raises:
            ssl.SSLError: The bytes are not those of the peer.
        """
        protocol = self.protocol
        found: bytes | int | None
        if isinstance(protocol, asyncio.BufferedProtocol):
            filled, found = self.fill(memoryview(protocol.get_buffer(-1)))
            if filled:
                protocol.buffer_updated(filled)
        else:
            found = self.decrypted(RECORD_BYTES)
            if found:
                protocol.data_received(found)
        if found is not None and not found and not self.closing:
            self.take_goodbye()

    def fill(self, buffer: memoryview) -> tuple[int, int | None]:
        """Decrypt into a buffer. Returns how much, and what `decrypted` has returned at last."""
        filled, size, found = 0, len(buffer), None
        while filled < size and (found := self.decrypted(size - filled, buffer[filled:])):
            filled += found
        return filled, found

    def decrypted(self, *arguments: Any) -> Any:
        """What `ssl.SSLObject.read` returns, which is nothing after the peer's goodbye; None if there is no
        whole record.
        """
        while True:
            if self.arrived and self.incoming.pending < LARGEST_BYTES:
                self.feed()  # before it is missed: an exception costs as much as the decryption of a record
            try:
                return self.tls.read(*arguments)
            except ssl.SSLWantReadError:
                if not self.arrived:
                    return None

    def take_goodbye(self) -> None:
        """The peer has said that it sends no more."""
        self.ignore_rest()
        self.has_left = bool(self.protocol.eof_received())
        if not self.has_left:
            self.end()
        elif self.is_read:
            self.is_read = False
            self.plain.pause_reading()

    def read_socket(self) -> None:
        """Read the socket if and only if nothing waits and nobody has paused."""
        if self.closing or self.plain.is_closing():
            return
        self.count(len(self.arrived) + self.incoming.pending + self.tls.pending())
        wanted = not (self.unread_bytes or self.is_paused)
        if wanted != self.is_read:
            self.is_read = wanted
            if wanted:
                self.plain.resume_reading()
            else:
                self.plain.pause_reading()

    def count(self, unread_bytes: int) -> None:
        """So much waits to be decrypted."""
        if unread_bytes != self.unread_bytes:
            self.unread_bytes = unread_bytes
            if self.holds is not None:
                self.holds(unread_bytes)

    # sending

    def encrypt(self, data: bytes | bytearray | memoryview) -> None:
        """Send a part as one or two records."""
        self.tls.write(data)
        self.plain.write(self.outgoing.read())

    def send(self) -> None:
        """Send what waits, as much as the plain transport takes, and tell the protocol."""
        while self.unsent and not self.is_full:
            self.encrypt(self.unsent.take(PART_BYTES))
        if self.is_ending and not self.unsent:
            self.end()
        self.tell_protocol()

    def tell_protocol(self) -> None:
        """Pause the protocol if too much waits; let it go on when little does."""
        if not self.is_writer_paused and self.unsent.size_bytes > self.high_bytes:
            self.is_writer_paused = True
            self.protocol.pause_writing()
        elif self.is_writer_paused and self.unsent.size_bytes <= self.low_bytes:
            self.is_writer_paused = False
            self.protocol.resume_writing()

    def flush(self) -> None:
        """Send what OpenSSL has written."""
        data = self.outgoing.read()
        if data:
            self.plain.write(data)

    def ignore_rest(self) -> None:
        """Begin to close: nothing more is decrypted, not even what waits."""
        self.closing = True
        self.arrived = NOTHING
        self.count(0)

    def forget(self) -> None:
        """Begin to close, without sending what waits."""
        self.ignore_rest()
        self.unsent.clear()

    def fail(self, error: ssl.SSLError) -> None:
        """Close after a failure, and tell the peer why."""
        # a traceback would refer to this transport, which refers to the error
        self.failure = error.with_traceback(None)
        self.forget()
        self.flush()
        self.plain.close()

    # the transport of the protocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.closing or not data:
            return
        if len(data) <= PART_BYTES and not (self.unsent or self.is_full):
            self.encrypt(data)
            return
        self.unsent.add(bytes(data))
        self.send()

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.write(b"".join(list_of_data))

    def pause_reading(self) -> None:
        if not (self.is_paused or self.closing):
            self.is_paused = True
            if not self.is_delivering:
                self.read_socket()

    def resume_reading(self) -> None:
        if self.is_paused and not self.closing:
            self.is_paused = False
            if self.unread_bytes:
                self.loop.call_soon(self.deliver)
            elif not self.is_delivering:
                self.read_socket()

    def is_reading(self) -> bool:
        return not (self.is_paused or self.closing)

    def close(self) -> None:
        """Close after everything written has been sent. The peer's own goodbye is not awaited."""
        if self.has_left:
            self.ignore_rest()
            self.end()
        elif not self.closing:
            self.ignore_rest()
            self.loop.call_later(LAST_WORDS_S, self.end)

    def end(self) -> None:
        """Tell the peer that nothing follows, and close, as soon as everything written has been sent."""
        self.is_ending = bool(self.unsent)
        if self.is_ending or not self.is_open or self.plain.is_closing():
            return
        if not self.is_silent:
            with contextlib.suppress(ssl.SSLError):  # it would wait for the peer's
                self.tls.unwrap()
            self.flush()
        self.plain.close()

    def abort(self) -> None:
        self.forget()
        self.plain.abort()

    def is_closing(self) -> bool:
        return self.closing

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        found: asyncio.BaseProtocol = self.protocol
        return found

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.tls if name == "ssl_object" else self.plain.get_extra_info(name, default)

    def get_write_buffer_size(self) -> int:
        return self.unsent.size_bytes + self.plain.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Limit the plaintext that waits. The plain transport has limits of its own."""
        self.high_bytes = HIGH_WATER_BYTES if high is None else high
        self.low_bytes = self.high_bytes // 4 if low is None else low
        self.tell_protocol()
