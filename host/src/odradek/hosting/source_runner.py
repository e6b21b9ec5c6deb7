"""Run one source on its own thread and event loop, and carry its records to the host's loop.

A source that raises, returns or hangs hurts only itself: it is called again after a wait, and a thread that
does not end is abandoned.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from threading import Event, Thread
from typing import Any, Final, NamedTuple, TypeVar

from odradek.hosting.plugin_loop import plugin_loop
from odradek.hosting.record_labels import labels_of
from odradek.hosting.watched_call import place_of_thread
from odradek.plugin.plugin_stats import PluginStats
from odradek.plugin.protocols import TelemetryRecord
from odradek.plugin.source import Receipt, Refused, Source
from odradek.process.payload_workers import WorkerFailed
from odradek.telemetry.client_labels import Labels
from odradek.telemetry.record_source import Outcome, RecordSource
from odradek.waiting.clock import Clock
from odradek.waiting.deferred import Deferred
from odradek.wire.errors import WireError

log = logging.getLogger(__name__)

T = TypeVar("T")

PIECE_RECORDS: Final = 32
PIECE_BYTES: Final = 256 << 10
"""The host's loop takes so many records at once, and serves its clients before the next piece."""
BACKOFF_S: Final = 1.0
BACKOFF_MAX_S: Final = 60.0
STEADY_MS: Final = 60_000
"""A source that ran this long before it ended is called again after the first wait."""


class Faulty(NamedTuple):
    """A record that cannot be stored."""

    error: WireError


Ready = TelemetryRecord | Faulty


class HostIntake:
    """The `odradek.plugin.Intake` of one source. Its methods run on the source's thread, except as noted."""

    def __init__(self, entrance: RecordSource, host_loop: asyncio.AbstractEventLoop, opened: Event) -> None:
        self.entrance = entrance
        self.host_loop = host_loop
        self.opened = opened

    async def store(self, records: Sequence[TelemetryRecord]) -> Receipt:
        """Check and label the records here, and store them on the host's loop, piece by piece."""
        check_records(records)
        receipt, has_room = Receipt(), True
        waiting: list[tuple[list[TelemetryRecord], asyncio.Future[list[Outcome | None]]]] = []
        untried: list[TelemetryRecord] = []
        for piece in pieces(records):
            if not has_room:
                untried += piece
                continue
            try:
                ready = await self.ready(piece)
            except WorkerFailed:  # told in the log; the sender has the record
                untried += piece
                has_room = False
                continue
            reasons = [Refused(record, str(each.error)) for record, each in zip(piece, ready, strict=True)
                       if isinstance(each, Faulty)]  # fmt: skip
            receipt.refused += reasons
            settled: asyncio.Future[list[Outcome | None]] = asyncio.get_running_loop().create_future()
            waiting.append((piece, settled))
            has_room = await self.on_host(partial(self.take, ready, partial(self.to_source, settled)))
        for piece, settled in waiting:
            for record, outcome in zip(piece, await settled, strict=True):
                receipt.stored += outcome is Outcome.STORED
                receipt.repeated += outcome is Outcome.REPEATED
                if outcome is Outcome.NO_ROOM:
                    receipt.left.append(record)
        receipt.left += untried
        return receipt

    def listening(self) -> None:
        """Take note that the source listens."""
        self.opened.set()

    def unreadable(self, records: int) -> None:
        """Count records that the plugin could not read."""
        if records:
            with contextlib.suppress(RuntimeError):
                self.host_loop.call_soon_threadsafe(self.entrance.unreadable, records)

    def answered(self, outcome: str) -> None:
        """Count a request of a sender."""
        requests = self.entrance.requests
        requests[outcome] = requests.get(outcome, 0) + 1

    async def ready(self, piece: Sequence[TelemetryRecord]) -> list[Ready]:
        """The records with their labels. Enrichers are asked on the host's loop."""
        labels: Sequence[Labels] = [None] * len(piece)
        if not all(record.labeled for record in piece):
            labels = await labels_of(piece, self.entrance.manager.enrichers, self.host_loop)
        return [await self.prepared(record, each) for record, each in zip(piece, labels, strict=True)]

    async def prepared(self, record: TelemetryRecord, labels: Labels) -> Ready:
        """A record with its labels. A large one is opened by a worker process: protobuf's parser would keep
        the host's loop from running.
        """
        try:
            if not self.entrance.is_large(record):
                return self.entrance.prepared(record, labels)
            answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
            done = partial(self.to_source, answer)
            self.host_loop.call_soon_threadsafe(self.entrance.prepare, record, labels, done)
            return self.entrance.opened(record, await answer)
        except WireError as error:
            return Faulty(error)

    async def on_host(self, action: Callable[[], T]) -> T:
        """Run an action on the host's loop.

        Raises:
            RuntimeError: The host's loop has ended.
        """
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.host_loop.call_soon_threadsafe(self.answer, action, partial(self.to_source, answer))
        return await answer

    def to_source(self, future: asyncio.Future[Any], result: object) -> None:
        """Set a result on the source's loop, unless that has ended. Call on the host's loop."""
        with contextlib.suppress(RuntimeError):
            future.get_loop().call_soon_threadsafe(set_once, future, result)

    # on the host's loop

    def answer(self, action: Callable[[], T], reply: Callable[[T | Exception], None]) -> None:
        try:
            result = action()
        except Exception as error:  # noqa: BLE001  raised again in the source's thread
            reply(error)  # which no frame of its traceback keeps
        else:
            reply(result)

    def take(self, ready: Sequence[Ready], settled: Callable[[list[Outcome | None]], None]) -> bool:
        """Store the records of a piece; call back with the outcome of each, None for a faulty one.

        Returns:
            Whether there is still room. If not, the rest was not tried: it must not overtake.
        """
        outcomes: list[Outcome | None] = [None] * len(ready)
        missing, has_room = len(ready), True

        def note(index: int, outcome: Outcome | None) -> None:
            nonlocal missing
            outcomes[index] = outcome
            missing -= 1
            if not missing:
                settled(outcomes)

        for index, each in enumerate(ready):
            if not has_room:
                note(index, Outcome.NO_ROOM)
                continue
            if isinstance(each, Faulty):
                self.entrance.reject(each.error)
                note(index, None)
                continue
            outcome = self.entrance.take(each)
            if isinstance(outcome, Deferred):
                outcome.when_done(partial(note, index))
            else:
                has_room = outcome is not Outcome.NO_ROOM
                note(index, outcome)
        return has_room


class SourceRunner:
    """Drives one `Source`. `start` and `stop` return no matter what the plugin does."""

    def __init__(
        self, source: Source, entrance: RecordSource, clock: Clock, backoff_s: float = BACKOFF_S
    ) -> None:
        self.source = source
        self.entrance = entrance
        self.clock = clock
        self.stats = PluginStats(entrance.name)
        self.first_backoff_s = self.backoff_s = backoff_s
        self.loop: asyncio.AbstractEventLoop | None = None
        self.task: asyncio.Task[None] | None = None
        self.thread: Thread | None = None
        self.opened = Event()
        """Set once the source listens, or its first call has ended."""
        self.stopping = False

    # on the host's loop

    def start(self) -> None:
        """Start the thread without waiting for the plugin."""
        intake = HostIntake(self.entrance, asyncio.get_running_loop(), self.opened)
        self.loop = plugin_loop(self.stats.name)
        self.task = self.loop.create_task(self.keep_running(intake))
        name = f"odradek-source-{self.entrance.name}"
        self.thread = Thread(target=self.live, args=(self.loop, self.task), name=name, daemon=True)
        self.thread.start()

    def lag(self) -> int | None:
        """The records that wait at the place of origin; None if the plugin does not say."""
        try:
            return self.source.lag()
        except Exception as error:  # noqa: BLE001  plugins' code
            self.stats.fail(error, self.clock.monotonic_ms(), self.source.lag)
            return None

    def stop(self, timeout_s: float) -> None:
        """Cancel the plugin's call and wait for its end, at most for the time. Blocks: use a thread."""
        if self.loop is None or self.task is None or self.thread is None:
            return
        self.stopping = True
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.task.cancel)
        self.thread.join(timeout_s)
        if self.thread.is_alive():
            name = self.stats.name
            told = "plugin %s did not stop in %g s, abandoning its thread%s"
            log.error(told, name, timeout_s, place_of_thread(self.thread.ident or 0), extra={"plugin": name})

    # on the source's thread

    def live(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[None]) -> None:
        """The body of the thread."""
        try:
            with contextlib.suppress(asyncio.CancelledError):
                loop.run_until_complete(task)
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            loop.close()

    async def keep_running(self, intake: HostIntake) -> None:
        """Call the plugin again whenever its call ends, until the runner stops."""
        while not self.stopping:
            started_ms = self.clock.monotonic_ms()
            error = await self.outcome(intake)
            now_ms = self.clock.monotonic_ms()
            if self.stopping:
                return
            if now_ms - started_ms >= STEADY_MS:
                self.backoff_s = self.first_backoff_s
            self.stats.fail(error, now_ms, self.source.run)
            self.opened.set()
            await asyncio.sleep(self.backoff_s)
            self.backoff_s = min(2 * self.backoff_s, BACKOFF_MAX_S)

    async def outcome(self, intake: HostIntake) -> BaseException:
        """Call the plugin; return the reason why its call ended."""
        try:
            await self.source.run(intake)
        except asyncio.CancelledError as error:
            if self.stopping:
                raise
            return error
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001  plugins' code
            return error
        return RuntimeError("run has returned; expected to store records until it is cancelled")


def check_records(records: object) -> None:
    """Check what a source stores.

    Raises:
        TypeError: They are no records.
    """
    if not isinstance(records, Sequence) or isinstance(records, str | bytes):
        raise TypeError(f"store got {type(records).__name__}, expected a sequence of TelemetryRecord")
    for each in records:
        if not isinstance(each, TelemetryRecord):
            raise TypeError(f"store got {type(each).__name__} among its records, expected TelemetryRecord")


def pieces(records: Sequence[TelemetryRecord]) -> Iterator[list[TelemetryRecord]]:
    """The records in pieces of at most `PIECE_RECORDS` and `PIECE_BYTES`, or of one larger record."""
    piece: list[TelemetryRecord] = []
    size_bytes = 0
    for record in records:
        size_bytes += len(record.payload.data)
        if piece and (len(piece) >= PIECE_RECORDS or size_bytes > PIECE_BYTES):
            yield piece
            piece, size_bytes = [], len(record.payload.data)
        piece.append(record)
    if piece:
        yield piece


def set_once(future: asyncio.Future[Any], result: object) -> None:
    """Set the result or exception, unless the waiting task was cancelled."""
    if future.done():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
