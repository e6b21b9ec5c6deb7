"""Looks for alarms and sends them, in its own thread. Each destination has a bounded queue, and retries."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from odradek.settings import declare
from odradek_console.alarms.alarms import Alarms, Message
from odradek_console.alarms.destinations import Destination
from odradek_console.json_form import JsonRow
from odradek_console.program_rows import ProgramRow
from odradek_console.setting_kinds import COUNT, SECONDS
from odradek_console.view import View

log = logging.getLogger(__name__)

LOOK_S: Final = 15.0
"""Between two looks at the clients."""
POLL_S: Final = 0.5
PAUSES_S: Final = (1.0, 60.0)
"""After the first attempt in vain, and at most; each pause is twice the one before."""
STOP_S: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderSettings:
    """Bounds of what waits for a destination."""

    # fmt: off
    max_waiting: int = declare(
        "max.waiting.alarms", COUNT, 100,
        "Messages that wait for a destination of alarms; beyond them the oldest are left out.",
        unit="messages",
    )
    retry_s: float = declare(
        "alarm.retry.ms", SECONDS, 3_600.0,
        "A message that a destination does not take is given up after this time.", unit="ms",
        option="--alarm-retry",
    )
    # fmt: on


@dataclass(slots=True)
class AlarmCounts(JsonRow):
    """Alarms that go on, and their messages."""

    alarms: int = 0
    waiting_messages: int = 0
    sent_messages: int = 0
    failed_messages: int = 0
    """Given up."""
    left_out_messages: int = 0
    """There was no room."""
    failed_looks: int = 0
    """For a reason that nobody expected."""


@dataclass(slots=True)
class Outbox:
    """What waits for one destination."""

    to: Destination
    waiting: deque[tuple[float, Message]] = field(default_factory=deque)
    """Each with the time when it is given up."""
    next_s: float = 0.0
    pause_s: float = PAUSES_S[0]


class AlarmSender:
    """Sends alarms from `start` to `stop`.

    Args:
        view: The clients.
        alarms: What goes on.
        destinations: All of them get each message.
        settings: Bounds.
        now_s: A monotonic clock.
        programs: The gateways and hosts.
    """

    def __init__(
        self,
        view: View,
        alarms: Alarms,
        destinations: Sequence[Destination],
        settings: SenderSettings | None = None,
        now_s: Callable[[], float] = time.monotonic,
        programs: Callable[[], Sequence[ProgramRow]] = tuple,
    ) -> None:
        self.view = view
        self.alarms = alarms
        self.boxes = [Outbox(each) for each in destinations]
        self.settings = settings or SenderSettings()
        self.now_s = now_s
        self.programs = programs
        self.counts = AlarmCounts()
        self.look_s = 0.0
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, name="alarms", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self.thread.start()

    def stop(self) -> None:
        """Stop the thread. What waits is lost: the next start tells of what goes on then."""
        self.stopping.set()
        self.thread.join(STOP_S)

    def run(self) -> None:
        """Look and send until stopped."""
        while not self.stopping.wait(POLL_S):
            self.turn()

    def turn(self) -> None:
        """One step; a failure is counted, and the thread goes on."""
        try:
            self.step()
        except Exception:
            self.counts.failed_looks += 1
            count = self.counts.failed_looks
            if not count & (count - 1):  # the 1st, 2nd, 4th, 8th, ...
                log.exception("looking for alarms failed (%d so far)", count)

    def step(self) -> None:
        """Look if it is time to, and try what is due."""
        now_s = self.now_s()
        reading = self.view.reading()
        if now_s >= self.look_s:
            self.look_s = now_s + LOOK_S
            now_ms, programs = int(now_s * 1000), self.programs()
            if reading.is_caught_up and not reading.problem:
                messages = self.alarms.at(*self.view.rows_and_causes(), now_ms, programs)
            else:  # perhaps since the host with the topic is down
                messages = self.alarms.at(None, (), now_ms, programs)
            for message in messages:
                self.put(message, now_s)
        for box in self.boxes:
            if box.waiting and now_s >= box.next_s:
                self.attempt(box, now_s)
        self.counts.alarms = sum(each.is_told for each in self.alarms.going_on.values())
        self.counts.waiting_messages = sum(len(box.waiting) for box in self.boxes)

    def put(self, message: Message, now_s: float) -> None:
        """Queue a message for all destinations."""
        for box in self.boxes:
            box.waiting.append((now_s + self.settings.retry_s, message))
            if len(box.waiting) > self.settings.max_waiting:
                box.waiting.popleft()
                self.counts.left_out_messages += 1

    def attempt(self, box: Outbox, now_s: float) -> None:
        """Try the oldest message of a destination."""
        until_s, message = box.waiting[0]
        problem = box.to.send(message)
        if not problem:
            self.counts.sent_messages += 1
        elif now_s < until_s:
            if box.pause_s == PAUSES_S[0]:
                log.warning("an alarm was not taken: trying again", extra=about(box, problem))
            box.next_s, box.pause_s = now_s + box.pause_s, min(2 * box.pause_s, PAUSES_S[1])
            return
        else:
            self.counts.failed_messages += 1
            log.error("an alarm was given up", extra=about(box, problem) | {"alarm": message.title})
        box.waiting.popleft()
        box.next_s, box.pause_s = 0.0, PAUSES_S[0]


def about(box: Outbox, problem: str) -> dict[str, object]:
    return {"destination": box.to.name, "problem": problem, "waiting": len(box.waiting)}
