"""Drives clients over real sockets: their times, their connections, churn and storms."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from typing import Any

from contrib.fleet.behavior import KINDS, Client, Kind
from contrib.fleet.lines import Line, Payload, Seat, software
from contrib.fleet.link import Link, dialed
from contrib.fleet.tally import Tally

from odradek.client.address import Address
from odradek.wire.compression import compress
from odradek.wire.messages.api_versions import ApiVersionsResponse
from odradek.wire.messages.push_telemetry import PushTelemetryRequest

CONNECTING = 256
"""Attempts to connect at the same time: a kernel's queue of new connections is finite."""
CONNECT_TIMEOUT_S = 30.0
LAST_ANSWERS_S = 10.0
LOOPBACK = "127.0.0.1"
PUSH_TELEMETRY = 72


class NoTelemetry(Exception):
    """The broker does not offer the telemetry APIs: no receiver is installed."""


@dataclass(slots=True, eq=False)
class Fleet:
    """Clients over connections to brokers.

    Args:
        brokers: Each connection begins at one of them, and tries the next when it fails.
        kinds: The kind of each client.
        connections: The number of sockets; clients of a kind share them if there are fewer than clients.
        settled: True for a fleet that has run for long: first pushes are due anywhere in the interval.
        churn: Clients that are replaced, percent of all in an hour.
        on_answer: Called with each answer to a push: client, error code, last push or not.
        on_begin: Called when all connections are open.
        on_end: Called after the time of the run, before the wait for the last answers.
    """

    brokers: Sequence[Address]
    kinds: Sequence[Kind]
    connections: int
    payload: Payload
    settled: bool = False
    churn: float = 0.0
    seed: int = 1
    on_answer: Callable[[Client, int, bool], None] = lambda client, error, last: None
    on_begin: Callable[[], None] = lambda: None
    on_end: Callable[[], None] = lambda: None
    tally: Tally = field(default_factory=Tally)
    opening: Tally = field(default_factory=Tally)
    """The counts until all connections were open."""
    awaited: int = 0
    """Connections that a storm has cut and that are not open again."""
    storm_at_s: float = 0.0
    storm_lasted_s: float | None = None
    """The time until all were open again; None if that did not happen."""
    opening_s: float = 0.0
    """The time that this took."""
    seconds: float = 0.0
    """The time that `tally` is about, without the wait for the last answers."""
    cpu_s: float = 0.0
    """Processor time of this process in that time."""
    lines: list[Line] = field(default_factory=list)
    seats: list[Seat] = field(default_factory=list)
    source: random.Random = field(init=False)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    gate: asyncio.Semaphore = field(init=False)
    failure: Exception | None = None
    next_number: int = 0
    over: bool = False
    """Set to end the run early."""

    def __post_init__(self) -> None:
        self.source = random.Random(self.seed)
        clients = Counter(kind.name for kind in self.kinds)
        turns: dict[str, Iterator[Line]] = {}
        for name, part in clients.items():
            count = min(part, max(1, round(self.connections * part / len(self.kinds))))
            lines = [Line(len(self.lines) + number, KINDS[name]) for number in range(count)]
            self.lines += lines
            turns[name] = cycle(lines)
        for kind in self.kinds:
            line = next(turns[kind.name])
            seat = Seat(self.newcomer(kind), line)
            line.seats.append(seat)
            self.seats.append(seat)

    def newcomer(self, kind: Kind) -> Client:
        self.next_number += 1
        return Client(self.next_number - 1, kind, self.source, settled=self.settled)

    # -- the run

    async def run(self, seconds: float, *, storm_s: float | None = None, leave: bool = False) -> None:
        """Connect all clients, let them live for some seconds, and wait for the last answers.

        The counts of `tally` begin when all connections are open; `opening` has those before.

        Args:
            seconds: The time after all connections were opened.
            storm_s: All connections are lost this long after they were opened; None for no storm.
            leave: True to close all clients with a last push at the end.

        Raises:
            NoTelemetry: A broker does not offer the telemetry APIs.
        """
        loop = asyncio.get_running_loop()
        self.gate = asyncio.Semaphore(CONNECTING)
        self.opening_s = loop.time()
        try:
            for line in self.lines:
                self.open(line)
            await self.settle(lambda: all(line.link for line in self.lines))
            self.opening, self.tally = self.tally, Tally()
            self.opening_s = loop.time() - self.opening_s
            begun_s, cpu_s = loop.time(), time.process_time()
            end_s = begun_s + seconds
            self.on_begin()
            if self.churn:
                self.start(self.replace(end_s))
            if storm_s is not None:
                await asyncio.sleep(storm_s)
                self.storm()
            while loop.time() < end_s and self.failure is None and not self.over:
                await asyncio.sleep(min(0.1, max(0.0, end_s - loop.time())))
            self.seconds, self.cpu_s = loop.time() - begun_s, time.process_time() - cpu_s
            self.over = True
            self.on_end()
            await self.last_answers()
            if leave:
                for seat in self.seats:
                    self.leave_seat(seat)
                await self.last_answers()
        finally:
            await self.close()
        if self.failure is not None:
            raise self.failure

    def summary(self) -> dict[str, Any]:
        """The counts and times of a run, as JSON has them."""
        size = {"clients": len(self.seats), "connections": len(self.lines)}
        opening = {
            "seconds": round(self.opening_s, 2),
            "connections": self.opening.connected,
            "failed": self.opening.failed,
            "subscriptions_asked": self.opening.asked,
        }
        storm = None if self.storm_lasted_s is None else round(self.storm_lasted_s, 2)
        return {
            "fleet": size,
            "opening": opening,
            "storm_seconds": storm,
            **self.tally.summary(self.seconds, self.cpu_s),
        }

    async def last_answers(self) -> None:
        await self.settle(lambda: not any(seat.busy for seat in self.seats), LAST_ANSWERS_S)

    async def settle(self, done: Callable[[], bool], timeout_s: float | None = None) -> None:
        """Wait for a condition; without a timeout, until it holds or the fleet fails."""
        loop = asyncio.get_running_loop()
        end_s = None if timeout_s is None else loop.time() + timeout_s
        while not done() and self.failure is None and (end_s is None or loop.time() < end_s):
            await asyncio.sleep(0.02)

    def start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.ended)

    def ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failure = self.failure or (error if isinstance(error, Exception) else None)

    async def close(self) -> None:
        """End all connections and timers."""
        self.over = True
        for seat in self.seats:
            if seat.timer is not None:
                seat.timer.cancel()
        for line in self.lines:
            line.closing = True
            if line.opened is not None:
                line.opened.close()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await asyncio.sleep(0)

    # -- connections

    def open(self, line: Line) -> None:
        self.start(self.connect(line))

    async def connect(self, line: Line) -> None:
        """Connect, again and again; the waits are those of the client."""
        loop = asyncio.get_running_loop()
        while not line.closing:
            if line.attempt:
                await asyncio.sleep(line.seats[0].client.reconnect_ms(line.attempt - 1) / 1000)
            line.attempt += 1
            broker = self.brokers[(line.number + line.attempt - 1) % len(self.brokers)]
            made = partial(Link, software(line.kind), partial(self.ready, line), partial(self.lost, line))
            try:
                async with self.gate, asyncio.timeout(CONNECT_TIMEOUT_S):
                    if broker.host == LOOPBACK:
                        sock = await dialed(broker, line.number)
                        _, line.opened = await loop.create_connection(made, sock=sock)
                    else:
                        _, line.opened = await loop.create_connection(made, broker.host, broker.port)
            except OSError:  # a timeout is one, too
                self.tally.failed += 1
                continue
            return

    def ready(self, line: Line, link: Link, response: ApiVersionsResponse) -> None:
        """Begin to send on a new connection."""
        if all(each.api_key != PUSH_TELEMETRY for each in response.api_keys):
            self.failure = NoTelemetry(
                "the broker offers no telemetry: install a receiver or set telemetry on"
            )
            return
        line.link, line.attempt = link, 0
        self.tally.connected += 1
        now_s = asyncio.get_running_loop().time()
        self.awaited -= 1
        if not self.awaited:
            self.storm_lasted_s = now_s - self.storm_at_s
        for seat in line.seats:
            if seat.waits or (seat.timer is None and not seat.busy):
                self.due(seat, now_s)

    def lost(self, line: Line) -> None:
        """Connect again, unless the fleet ends."""
        was_ready, line.link, line.opened = line.link is not None, None, None
        if line.closing:
            return
        self.tally.lost += was_ready
        line.attempt = max(1, line.attempt)
        self.open(line)

    def storm(self) -> None:
        """Lose all connections at once."""
        up = [line.link for line in self.lines if line.link is not None]
        self.awaited, self.storm_at_s = len(up), asyncio.get_running_loop().time()
        for link in up:
            link.close()

    # -- requests

    def due(self, seat: Seat, at_s: float) -> None:
        """Send the client's next request at a time of the loop."""
        seat.due_s = at_s
        seat.timer = asyncio.get_running_loop().call_at(at_s, self.turn, seat)

    def turn(self, seat: Seat) -> None:
        """Send what is due, or wait for the connection."""
        seat.timer = None
        line, client = seat.line, seat.client
        now_s = asyncio.get_running_loop().time()
        if self.over or seat.busy or client.stopped:
            return
        if line.link is None:
            self.tally.waited += not client.asks and not seat.waits
            seat.waits = True
            return
        if now_s < line.quiet_until_s:
            self.tally.waited += not client.asks
            self.due(seat, line.quiet_until_s)
            return
        seat.waits = False
        self.tally.sent(now_s - seat.due_s)
        if client.asks:
            self.ask(seat, line.link)
        else:
            self.push(seat, line.link)

    def ask(self, seat: Seat, link: Link) -> None:
        seat.busy = True
        self.tally.asked += 1
        link.send(seat.client.ask(), seat.client.client_id, partial(self.asked, seat))

    def asked(self, seat: Seat, response: Any) -> None:
        seat.busy = False
        if response is None:
            self.again(seat, seat.client.unanswered())
            return
        if response.error_code:
            self.tally.refused_asks[response.error_code] += 1
        self.throttled(seat.line, response.throttle_time_ms)
        self.again(seat, seat.client.answered(response))

    def push(self, seat: Seat, link: Link, *, last: bool = False) -> None:
        client = seat.client
        metrics = compress(client.codec, self.payload(client, time.time_ns()))
        request = client.push(metrics, terminating=last)
        seat.busy = True
        self.tally.pushes += 1
        link.send(request, client.client_id, partial(self.pushed, seat, request, time.perf_counter()))

    def pushed(self, seat: Seat, request: PushTelemetryRequest, sent_s: float, response: Any) -> None:
        seat.busy = False
        client, last = seat.client, request.terminating
        if response is None:
            self.tally.unanswered += 1
            if last:
                self.goodbye(seat)
            else:
                self.again(seat, client.unanswered())
            return
        took_s = time.perf_counter() - sent_s
        self.tally.answered(response.error_code, len(request.metrics or b""), last, took_s)
        self.on_answer(client, response.error_code, last)
        self.throttled(seat.line, response.throttle_time_ms)
        if last:
            self.goodbye(seat)
        else:
            self.again(seat, client.pushed(response.error_code))

    def throttled(self, line: Line, throttle_ms: int) -> None:
        if throttle_ms > 0:
            until_s = asyncio.get_running_loop().time() + throttle_ms / 1000
            line.quiet_until_s = max(line.quiet_until_s, until_s)

    def again(self, seat: Seat, after_ms: float | None) -> None:
        """Plan the next request."""
        if after_ms is None:
            self.tally.stopped += 1
        elif not self.over:
            self.due(seat, asyncio.get_running_loop().time() + after_ms / 1000)

    # -- clients that come and go

    async def replace(self, end_s: float) -> None:
        """Let clients leave in an orderly way, and new ones come in their place."""
        pause_s = 3600 / (len(self.seats) * self.churn / 100)
        loop = asyncio.get_running_loop()
        at_s = loop.time()
        while (at_s := at_s + pause_s) < end_s:
            await asyncio.sleep(max(0.0, at_s - loop.time()))
            self.leave_seat(self.source.choice(self.seats))

    def leave_seat(self, seat: Seat) -> None:
        """Close a client: with a last push if it has a subscription and a connection."""
        if seat.leaving or seat.busy:
            return
        if seat.timer is not None:
            seat.timer.cancel()
            seat.timer = None
        seat.leaving = True
        self.tally.left += 1
        if seat.client.says_goodbye and seat.line.link is not None:
            self.push(seat, seat.line.link, last=True)
        else:
            self.goodbye(seat)

    def goodbye(self, seat: Seat) -> None:
        """Give the place of a client that has left to a new one; its connection closes if it was alone."""
        if self.over:
            return
        seat.client, seat.leaving = self.newcomer(seat.line.kind), False
        self.tally.joined += 1
        alone = len(seat.line.seats) == 1
        if alone and seat.line.link is not None:
            seat.waits = True
            seat.line.link.close()
        else:
            self.due(seat, asyncio.get_running_loop().time())
