"""One connection of a pair: writing, and the reasons not to read."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from abc import ABC, abstractmethod
from typing import Any, Final

from odradek.gateway.pair_state import Pause
from odradek.net.held_bytes import COUNTED_BYTES
from odradek.net.pairs.pair_bytes import PairBytes

HIGH_WATER_BYTES: Final = 65_536
"""Beyond this, the other connection of the pair is not read."""
KEEPALIVE_S: Final = 60
"""Load balancers cut silent connections after minutes; clients and brokers are silent for longer."""
KEEPALIVE_PROBES: Final = 3
"""A peer that vanished without a word is noticed after four minutes."""


class SocketEnd(asyncio.Protocol, ABC):
    """One connection of a pair, as its `End`.

    Args:
        pool: The memory of all pairs.
    """

    __slots__ = ("other", "pool", "read_bytes", "reasons", "transport")

    def __init__(self, pool: PairBytes) -> None:
        self.pool = pool
        self.read_bytes: ReadBytes | None = None
        """The bytes that this end has read and the other one has not sent; None if they were always few."""
        self.transport: asyncio.Transport | None = None
        """None before the connection is made, and when it is gone."""
        self.reasons = 0
        """Those of `Pause` that are there."""
        self.other: SocketEnd | None = None
        """The other connection of the pair, until both are gone."""

    @property
    @abstractmethod
    def about(self) -> dict[str, Any]:
        """See `about_client`."""

    def attached(self, transport: asyncio.BaseTransport) -> None:
        """Use a new transport. The loop has set TCP_NODELAY."""
        self.transport = transport  # type: ignore[assignment]  # uvloop's do not inherit Transport
        assert self.transport is not None
        self.transport.set_write_buffer_limits(high=HIGH_WATER_BYTES)
        keep_alive(transport.get_extra_info("socket"))
        if self.reasons:
            self.transport.pause_reading()

    def write(self, data: bytes | memoryview) -> None:
        """Send bytes."""
        if self.transport is not None:
            self.transport.write(data)

    def writelines(self, parts: list[bytes | memoryview]) -> None:
        """Send several pieces."""
        if self.transport is not None:
            self.transport.writelines(parts)

    def hold(self, reason: int) -> None:
        """Stop reading, until each reason to do so is gone."""
        if not self.reasons and self.transport is not None and not self.transport.is_closing():
            self.transport.pause_reading()
        self.reasons |= reason

    def release(self, reason: int) -> None:
        """Take a reason away."""
        if not self.reasons & reason:
            return
        self.reasons &= ~reason
        if not self.reasons and self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    def pause_writing(self) -> None:
        """This end does not take more, so the other one is not read."""
        if self.other is not None:
            self.other.hold(Pause.PEER_IS_SLOW)
            self.other.counted().count()
            self.is_slow()

    def is_slow(self) -> None:
        """Count a pause of the other end."""

    def from_upstream(self, data: bytes) -> None:
        """Take what the other end, a broker, has sent."""

    def upstream_ended(self, was_reset: bool) -> None:
        """The connection of the other end, a broker, is gone."""

    def resume_writing(self) -> None:
        """This end takes more again."""
        if self.other is not None:
            self.other.release(Pause.PEER_IS_SLOW)
            self.other.counted().count()

    def counted(self) -> ReadBytes:
        """The account of the bytes that this end has read, kept from now on."""
        if self.read_bytes is None:
            self.read_bytes = ReadBytes(self, self.pool)
        return self.read_bytes

    def holds(self, held_bytes: int, missing_bytes: int) -> None:
        """A frame that was read is held back, or (0) no longer."""
        if held_bytes or self.read_bytes is not None:
            self.counted().frame(held_bytes, missing_bytes)

    def unread(self, size_bytes: int) -> None:
        """So much has arrived and waits in the transport to be decrypted, or (0) no longer."""
        if size_bytes or self.read_bytes is not None:
            self.counted().unread(size_bytes)

    def unsent_bytes(self) -> int:
        """The number of bytes that were written and that the system has not taken."""
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    def descriptor(self) -> int:
        """The file descriptor; negative if the connection is gone."""
        found = None if self.transport is None else self.transport.get_extra_info("socket")
        return -1 if found is None else int(found.fileno())

    def lost(self) -> None:
        """The connection is gone, and with it the bytes that were to be sent on it.

        The ends forget each other when both are gone, so nothing is left for the garbage collector.
        """
        self.transport = None
        if self.read_bytes is not None:
            self.read_bytes.frame(0, 0)
        other = self.other
        if other is not None and other.read_bytes is not None:
            other.read_bytes.drop()
        if other is None:
            self.read_bytes = None
        elif other.transport is None:
            self.other = other.other = self.read_bytes = other.read_bytes = None

    @abstractmethod
    def give_up(self) -> None:
        """All pairs hold too much memory: close this one without sending the rest."""

    def finish(self) -> None:
        """Close after everything written has been sent."""
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self.transport is not None:
            self.transport.abort()


class ReadBytes:
    """The bytes that one end has read and that have not left: a `Holder`. Most ends never need one.

    Args:
        end: The end that has read them.
        pool: The memory of all pairs.
    """

    __slots__ = ("end", "frame_bytes", "is_gone", "missing_bytes", "pool", "unread_bytes")

    def __init__(self, end: SocketEnd, pool: PairBytes) -> None:
        self.end = end
        self.pool = pool
        self.frame_bytes = 0
        """Part of a frame that is held back."""
        self.missing_bytes = 0
        self.unread_bytes = 0
        """Bytes that wait in the transport of the end to be decrypted."""
        self.is_gone = False
        """The bytes have left, or never will."""

    @property
    def closing(self) -> bool:
        return self.is_gone

    @property
    def about(self) -> dict[str, Any]:
        return self.end.about

    def stop_reading(self, reason: int) -> None:
        self.end.hold(reason)

    def read_again(self, reason: int) -> None:
        self.end.release(reason)

    def abort(self) -> None:
        self.end.give_up()

    def unsent_bytes(self) -> int:
        writer = self.end.other
        if self.is_gone:
            return 0
        if writer is None or writer.transport is None:
            return self.frame_bytes + self.unread_bytes
        return self.frame_bytes + self.unread_bytes + writer.transport.get_write_buffer_size()

    def frame(self, held_bytes: int, missing_bytes: int) -> None:
        """A frame is held back, or (0) no longer."""
        self.frame_bytes, self.missing_bytes = held_bytes, missing_bytes
        self.count()

    def unread(self, size_bytes: int) -> None:
        """So much waits in the transport of the end."""
        self.unread_bytes = size_bytes
        self.count()

    def count(self) -> None:
        """Tell the pool how much is held now; little is not counted."""
        size = self.unsent_bytes()
        self.pool.hold(self, size if size > COUNTED_BYTES else 0)

    def drop(self) -> None:
        """The peer of the other end takes nothing any more."""
        self.is_gone = True
        self.count()


DARWIN_KEEPALIVE: Final = 0x10
"""``TCP_KEEPALIVE`` of macOS, which Linux calls ``TCP_KEEPIDLE``."""


def keep_alive(connection: socket.socket | None) -> None:
    """Let the kernel probe a silent connection each minute, and end it if its peer is gone.

    There is no TCP_USER_TIMEOUT: it would also end the connection of a live client that reads nothing for
    minutes, as consumers do that are slow between two polls.
    """
    if connection is None:
        return
    with contextlib.suppress(OSError, AttributeError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        idle = getattr(socket, "TCP_KEEPIDLE", DARWIN_KEEPALIVE)
        connection.setsockopt(socket.IPPROTO_TCP, idle, KEEPALIVE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES)
