"""TLS between a plain transport of the event loop and the host's end of a connection.

The TLS of asyncio and uvloop keeps a buffer of 256 KiB for each connection, and more inside OpenSSL: a client
that has once sent or received a large message holds that memory until it leaves. This one gives OpenSSL a
small part at a time, and tells a refused client why: the loops drop the alert.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Iterable
from typing import Any, Final

PART_BYTES: Final = 32_768
"""Bytes that OpenSSL gets at once. Its buffers never shrink; smaller parts cost more CPU."""
RECORD_BYTES: Final = 16_384
"""The most that a TLS record contains."""
LAST_WORDS_S: Final = 0.02
"""Seconds until the end follows what was written last. kafka-python drops an answer that it reads together
with the end of the connection, such as the refusal of a login."""

GONE: Final = asyncio.Protocol()
"""Takes the place of the protocol of a lost connection, which can then be freed."""


class ClientTls(ssl.SSLObject):
    """The TLS of one connection of a client."""

    server_name: str = ""
    """The name that the client has asked for, if the listener looks at it."""
    refusal: str | None = None
    """Why the listener has refused the server name."""

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except ssl.SSLError as error:
            if self.refusal is not None:
                error.reason = self.refusal  # instead of OpenSSL's "callback failed"
            raise


class ListenerContext(ssl.SSLContext):
    """The context of a listener."""

    sslobject_class = ClientTls


class TlsTransport(asyncio.Protocol, asyncio.Transport):
    """The server's side of one TLS connection: a plain transport's protocol, and another one's transport.

    Args:
        context: The listener's, with its certificates.
        protocol: The host's end. It gets this transport when the handshake is done.
        loop: The loop.
    """

    __slots__ = (
        "closing", "handshaken", "has_left", "incoming", "is_delivering", "is_open", "is_paused",
        "is_silent", "loop", "outgoing", "plain", "protocol", "tls",
    )  # fmt: skip

    plain: asyncio.Transport

    def __init__(
        self, context: ssl.SSLContext, protocol: asyncio.BaseProtocol, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__()
        self.loop = loop
        self.protocol: Any = protocol
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)
        assert isinstance(tls, ClientTls)
        self.tls = tls
        self.handshaken: asyncio.Future[None] = loop.create_future()
        """Fails with the OSError of a failed handshake."""
        self.is_open = False
        """The protocol has this transport and has not lost it."""
        self.is_paused = False
        self.is_delivering = False
        self.closing = False
        self.has_left = False
        """The client sends no more, and the protocol closes the connection later."""
        self.is_silent = False
        """It has ended the connection without a goodbye, so it gets none."""

    # the protocol of the plain transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.plain = transport  # type: ignore[assignment]  # uvloop's do not inherit Transport

    def data_received(self, data: bytes) -> None:
        if len(data) <= PART_BYTES:
            self.take(data)
            return
        with memoryview(data) as view:
            for start in range(0, len(data), PART_BYTES):
                self.take(view[start : start + PART_BYTES])

    def eof_received(self) -> bool:
        """The client has ended the connection. The plain transport closes itself, unless the protocol does so
        later.
        """
        if self.is_open and not self.closing:
            self.is_silent = True
            self.client_left()
        return self.has_left

    def client_left(self) -> bool:
        """The client sends no more. Returns whether the protocol closes the connection later."""
        self.has_left = bool(self.protocol.eof_received())
        return self.has_left

    def connection_lost(self, exc: Exception | None) -> None:
        self.closing = True
        protocol, self.protocol = self.protocol, GONE
        if self.is_open:
            self.is_open = False
            protocol.connection_lost(exc)
        elif not self.handshaken.done():
            self.handshaken.set_exception(exc or ConnectionResetError())

    def pause_writing(self) -> None:
        if self.is_open:
            self.protocol.pause_writing()

    def resume_writing(self) -> None:
        if self.is_open:
            self.protocol.resume_writing()

    # receiving

    def take(self, data: bytes | memoryview) -> None:
        """Decrypt what has arrived."""
        if self.closing:
            self.say_goodbye()  # the client has read the last words
            return
        self.incoming.write(data)
        if self.is_open or self.has_shaken_hands():
            self.deliver()

    def has_shaken_hands(self) -> bool:
        """Go on with the handshake; True when it is done."""
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            self.flush()
            return False
        except ssl.SSLError as error:
            if not self.handshaken.done():
                self.handshaken.set_exception(error)
            self.fail()
            return False
        self.flush()
        self.is_open = True
        self.protocol.connection_made(self)
        if not self.handshaken.done():
            self.handshaken.set_result(None)
        return True

    def deliver(self) -> None:
        """Give the protocol what can be decrypted, until it pauses."""
        if self.is_delivering:
            return
        self.is_delivering = True
        try:
            while self.has_bytes() and not (self.is_paused or self.closing):
                if not self.deliver_some():
                    self.closing = True
                    if self.client_left():
                        self.plain.pause_reading()
                    else:
                        self.say_goodbye()
        except ssl.SSLWantReadError:
            pass  # the rest of a record has not arrived
        except ssl.SSLError:
            self.fail()
        finally:
            self.is_delivering = False
        if self.outgoing.pending:  # the client renews its keys
            self.flush()

    def has_bytes(self) -> bool:
        """Whether there may be something to decrypt."""
        return bool(self.incoming.pending or self.tls.pending())

    def deliver_some(self) -> bool:
        """Give the protocol a record; False if the client has said that it sends no more.

        Raises:
            ssl.SSLWantReadError: There is no whole record.
            ssl.SSLError: The bytes are not those of the client.
        """
        protocol = self.protocol
        if isinstance(protocol, asyncio.BufferedProtocol):
            buffer = protocol.get_buffer(RECORD_BYTES)
            count = self.tls.read(len(buffer), buffer)  # type: ignore[arg-type]  # the shared memoryview
            if count:
                protocol.buffer_updated(count)  # type: ignore[arg-type]  # a number, because of the buffer
            return bool(count)
        data = self.tls.read(RECORD_BYTES)
        if data:
            protocol.data_received(data)
        return bool(data)

    # sending

    def flush(self) -> None:
        """Send what OpenSSL has written."""
        data = self.outgoing.read()
        if data:
            self.plain.write(data)

    def fail(self) -> None:
        """Close after a failure, and tell the client why."""
        self.closing = True
        self.flush()
        self.plain.close()

    # the transport of the protocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.closing or not data:
            return
        if len(data) <= PART_BYTES:
            self.tls.write(data)
            self.plain.write(self.outgoing.read())
            return
        with memoryview(data) as view:
            for start in range(0, len(data), PART_BYTES):
                self.tls.write(view[start : start + PART_BYTES])
                self.plain.write(self.outgoing.read())

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.write(b"".join(list_of_data))

    def pause_reading(self) -> None:
        if not (self.is_paused or self.closing):
            self.is_paused = True
            self.plain.pause_reading()

    def resume_reading(self) -> None:
        if self.is_paused and not self.closing:
            self.is_paused = False
            self.plain.resume_reading()
            if self.has_bytes():
                self.loop.call_soon(self.deliver)

    def is_reading(self) -> bool:
        return not (self.is_paused or self.closing)

    def close(self) -> None:
        """Close after everything written has been sent. The client's own goodbye is not awaited."""
        if self.has_left:
            self.closing = True
            if not self.is_silent:
                self.say_goodbye()
            self.plain.close()
        elif not self.closing:
            self.closing = True
            self.loop.call_later(LAST_WORDS_S, self.say_goodbye)

    def say_goodbye(self) -> None:
        """Tell the client that nothing follows, and close."""
        if not self.is_open or self.plain.is_closing():
            return
        with contextlib.suppress(ssl.SSLError):  # it would wait for the client's
            self.tls.unwrap()
        self.flush()
        self.plain.close()

    def abort(self) -> None:
        self.closing = True
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
        return self.plain.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.plain.set_write_buffer_limits(high, low)
