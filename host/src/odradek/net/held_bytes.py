"""The memory that all connections together hold, for requests and for answers.

When it is scarce the connections that hold more than their share are not read, so a small request always goes
on. One of the others is still read, the one that misses least, because a request that stays incomplete would
never free its memory. If it does not get complete in time, its connection is closed, and so are those that
hold the most if the limit is exceeded by half.

An answer's memory shrinks as its client reads. Above the limit, the client that holds the most and reads
nothing for some time is disconnected.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from enum import IntFlag, auto
from typing import Any, Final, Protocol

from odradek.bounds.sampled_log import SampledLog
from odradek.net.large_frame import DiscardedFrames
from odradek.plugin.config import ConfigError
from odradek.settings.kinds import LONG, Whole
from odradek.settings.setting import setting
from odradek.waiting.clock import Clock, Timer, TimerTask

log = logging.getLogger(__name__)

DEFAULT_BYTES: Final = 256 << 20
"""Of each limit, also for ``-1``, which is Kafka's default and no limit there."""
EXTRA_BYTES: Final = 32 << 20
"""The most that is held beyond a limit, so that somebody can always go on."""
COUNTED_BYTES: Final = 2_048
"""A connection that holds less is not counted: ten thousand of them are 20 MB."""
SHARES: Final = 8
"""When memory is scarce, a connection is still read while it holds less than its share divided by this. So
all of them together add no more than an eighth."""
CHECK_MS: Final = 100
"""How often connections are chosen while the limit is exceeded."""


class Pause(IntFlag):
    """The reasons not to read a connection. It is read while there is none."""

    BACKLOG = auto()
    """Enough requests wait for their turn, for an answer or for the client to read."""
    REQUESTS = auto()
    """All requests together hold too much."""
    ANSWERS = auto()
    """All answers together hold too much."""
    TURN = auto()
    """The rest of a large frame waits because the loop is busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    """Limits of the memory for requests and answers."""

    # fmt: off
    request_bytes: int = setting(
        "queued.max.request.bytes", Whole(LONG, -1), DEFAULT_BYTES,
        "Memory for the requests of all connections, while they arrive and until they are answered; near it "
        "the connections that hold the most are not read. `-1` is the default, too.", unit="bytes",
    )
    response_bytes: int = setting(
        "queued.max.response.bytes", Whole(LONG, -1), DEFAULT_BYTES,
        "Memory for the answers of all connections until the clients have read them; above it a client that "
        "does not read is disconnected. `-1` is the default, too.", unit="bytes",
    )
    stalled_ms: int = setting(
        "queued.stalled.ms", Whole(LONG, 1), 10_000,
        "Above one of these limits, time after which a client is disconnected that sends nothing of its "
        "request or reads nothing of its answer while others wait.", unit="ms",
    )
    # fmt: on

    def check_fits(self, max_request_bytes: int) -> None:
        """Check that the largest request fits in, as Kafka does.

        Raises:
            ConfigError: It does not.
        """
        if 0 < self.request_bytes < max_request_bytes and self.request_bytes != DEFAULT_BYTES:
            raise ConfigError(
                "queued.max.request.bytes",
                f"expected at least {max_request_bytes}, which is socket.request.max.bytes, "
                f"found {self.request_bytes}",
            )


class Holder(Protocol):
    """A connection."""

    missing_bytes: int
    """Part of its request that has not arrived; 0 if none is arriving."""

    @property
    def about(self) -> dict[str, Any]:
        """See `about_client`."""

    @property
    def closing(self) -> bool: ...
    def stop_reading(self, reason: int) -> None: ...
    def read_again(self, reason: int) -> None: ...
    def abort(self) -> None:
        """Close without sending the rest."""

    def unsent_bytes(self) -> int:
        """Memory of its answer that the client has not read."""


class HeldBytes:
    """The memory that connections hold for one purpose.

    Args:
        limit_bytes: The limit of all connections together.
        scarce_bytes: From here on the connections that hold the most are not read.
        most_bytes: Above this, the connections that hold the most are closed at once.
        stalled_ms: The time that one connection may keep the others waiting.
        clock: The time.
        timer: Calls `check` while the limit is exceeded.
    """

    what: str
    reason: int

    def __init__(
        self,
        limit_bytes: int,
        scarce_bytes: int,
        most_bytes: int,
        stalled_ms: int,
        clock: Clock,
        timer: Timer,
    ) -> None:
        self.limit_bytes = limit_bytes
        self.scarce_bytes = scarce_bytes
        self.most_bytes = most_bytes
        self.stalled_ms = stalled_ms
        self.clock = clock
        self.timer = timer
        self.held: dict[Holder, int] = {}
        self.total_bytes = 0
        self.paused: dict[Holder, None] = {}
        """Connections that are not read."""
        self.awaited: Holder | None = None
        """The connection whose memory is freed next, if its client does its part."""
        self.awaited_since_ms = 0
        self.closed = 0
        """Connections that were closed to free memory."""
        self.next_check: TimerTask | None = None
        self.closed_log = SampledLog(log)

    def hold(self, holder: Holder, size_bytes: int) -> None:
        """A connection holds this much now."""
        before = self.held.get(holder, 0)
        self.total_bytes += size_bytes - before
        if size_bytes:
            self.held[holder] = size_bytes
        else:
            self.held.pop(holder, None)
            self.read(holder)
            if holder is self.awaited:
                self.awaited = None
        if size_bytes > before and self.is_exceeded:
            # all connections at first: else each of them would receive one more piece
            for each in list(self.held) if self.next_check is None else (holder,):
                self.pause_if_large(each)
            self.check_later()

    def pause_if_large(self, holder: Holder) -> None:
        """Do not read a connection that holds more than its share."""
        share = self.scarce_bytes // (SHARES * len(self.held))
        if self.held[holder] > share and holder is not self.awaited and holder not in self.paused:
            self.paused[holder] = None
            holder.stop_reading(self.reason)

    @property
    def is_exceeded(self) -> bool:
        """Whether memory is scarce."""
        return self.total_bytes > self.scarce_bytes

    def read(self, holder: Holder) -> None:
        """Read a connection again if it was paused."""
        if holder in self.paused:
            del self.paused[holder]
            holder.read_again(self.reason)

    def check_later(self) -> None:
        if self.next_check is None:
            self.next_check = self.timer.schedule(self.clock.monotonic_ms() + CHECK_MS, self.check)

    def check(self) -> None:
        """Choose the connections that are read, or closed."""
        self.next_check = None
        now_ms = self.clock.monotonic_ms()
        self.refresh()
        if self.total_bytes > self.most_bytes:
            self.give_up_largest()
        elif self.is_exceeded:
            self.await_one(now_ms)
        else:
            self.awaited = None
            self.read_those_that_fit()
        if self.paused or self.is_exceeded:
            self.check_later()

    def refresh(self) -> None:
        """Update what connections hold, if they do not tell."""

    def await_one(self, now_ms: int) -> None:
        """Choose the connection whose memory is freed next; close one that was chosen too long ago."""
        raise NotImplementedError

    def read_those_that_fit(self) -> None:
        """Read connections again. Those that miss least come first, and the others when there is room."""
        room = self.scarce_bytes - self.total_bytes
        for holder in sorted(self.paused, key=lambda each: each.missing_bytes):
            self.read(holder)
            room -= holder.missing_bytes
            if room <= 0:
                return

    def largest_first(self) -> list[Holder]:
        """The connections that are not being closed, by what they hold."""
        open_ones = [each for each in self.held if not each.closing]
        return sorted(open_ones, key=self.held.__getitem__, reverse=True)

    def give_up_largest(self) -> None:
        """Close as few connections as possible."""
        excess_bytes = self.total_bytes - self.most_bytes
        for holder in self.largest_first():
            if excess_bytes <= 0:
                return
            excess_bytes -= self.held[holder]
            self.give_up(holder)

    def is_stalled(self, now_ms: int) -> bool:
        """Whether the awaited connection had its time."""
        return now_ms - self.awaited_since_ms >= self.stalled_ms

    def give_up(self, holder: Holder) -> None:
        """Close a connection to free its memory."""
        self.closed += 1
        self.closed_log.write(
            logging.WARNING,
            self.clock.monotonic_ms(),
            "closing a connection that holds %d bytes: %s hold %d bytes, the limit is %d",
            self.held.get(holder, 0),
            self.what,
            self.total_bytes,
            self.limit_bytes,
            **holder.about,
        )
        holder.abort()
        if holder is self.awaited:
            self.awaited = None


class RequestBytes(HeldBytes):
    """Requests that arrive, wait or are being answered."""

    what = "requests"
    reason = Pause.REQUESTS

    def await_one(self, now_ms: int) -> None:
        awaited = self.awaited
        if awaited is not None and awaited.missing_bytes and self.is_stalled(now_ms):
            self.give_up(awaited)
        if self.awaited is None or not self.awaited.missing_bytes:
            # last those in whose requests nothing is known to be missing: what they hold may wait in
            # their transports, or be the beginning of a small request
            self.awaited = min(self.paused, key=lambda each: each.missing_bytes or math.inf, default=None)
            self.awaited_since_ms = now_ms
            if self.awaited is not None:
                self.read(self.awaited)


class AnswerBytes(HeldBytes):
    """Answers that clients have not read yet."""

    what = "answers"
    reason: int = Pause.ANSWERS

    def refresh(self) -> None:
        for holder in list(self.held):
            self.hold(holder, holder.unsent_bytes())

    def await_one(self, now_ms: int) -> None:
        if self.awaited is not None and self.is_stalled(now_ms):
            self.give_up(self.awaited)
        if self.awaited is None:
            self.awaited, self.awaited_since_ms = next(iter(self.largest_first()), None), now_ms

    def hold(self, holder: Holder, size_bytes: int) -> None:
        if holder is self.awaited and size_bytes < self.held.get(holder, 0):
            self.awaited_since_ms = self.clock.monotonic_ms()
        super().hold(holder, size_bytes)


def limit_or_default(setting_bytes: int) -> int:
    """The limit that a setting stands for."""
    return setting_bytes if setting_bytes > 0 else DEFAULT_BYTES


def scarce_bytes(limit_bytes: int, max_request_bytes: int) -> int:
    """From where on memory for requests is scarce.

    After it the largest request can still get complete, and the others add their shares: both are within
    `EXTRA_BYTES` beyond the limit, unless the largest request alone is more than the limit.
    """
    room = limit_bytes + EXTRA_BYTES - max_request_bytes
    return min(limit_bytes, max(room * SHARES // (SHARES + 1), limit_bytes // SHARES))


class Memory:
    """The memory of one host.

    Args:
        settings: The limits.
        max_request_bytes: The largest request: it must fit in even if the limit is smaller.
        clock: The time.
        timer: Runs checks.
    """

    def __init__(self, settings: MemorySettings, max_request_bytes: int, clock: Clock, timer: Timer) -> None:
        limit, answers = limit_or_default(settings.request_bytes), limit_or_default(settings.response_bytes)
        scarce = scarce_bytes(limit, max_request_bytes)
        most = scarce + max(min(scarce // 2, EXTRA_BYTES), max_request_bytes + scarce // SHARES)
        most_answers = answers + min(answers // 2, EXTRA_BYTES)
        self.discarded = DiscardedFrames(clock, timer)
        self.requests = RequestBytes(limit, scarce, most, settings.stalled_ms, clock, timer)
        self.answers = AnswerBytes(answers, answers, most_answers, settings.stalled_ms, clock, timer)
