"""One forwarder on a thread and an event loop of its own, fed out of the log, or from the host's loop through
a bounded queue.

Whatever the plugin does there (raise, hang, ignore its cancellation, block the thread) is bounded, is counted
and stays there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable, Iterable
from threading import Lock, Thread

from odradek.delivery.batch_delivery import BatchDelivery
from odradek.delivery.batch_queue import BatchQueue, Offer
from odradek.delivery.dead_letter import dead_letters
from odradek.delivery.delivery_ledger import DeliveryLedger, ForwarderStats
from odradek.delivery.forwarder_settings import ForwarderSettings
from odradek.delivery.log_cursor import Chunk
from odradek.delivery.spooled_record import MALFORMED, SpooledRecord
from odradek.plugin.protocols import Forwarder, Reject, Retry, TelemetryRecord
from odradek.server.plugins.bounded_call import CANCEL_GRACE_S, CutOffError, bounded, described, waited
from odradek.server.plugins.log_feed import AGAIN_S, LogFeed
from odradek.wire.errors import WireError

log = logging.getLogger(__name__)

FLUSH_SHARE = 0.75
"""Of the time to stop; the rest is for ``close``."""


def monotonic_ms() -> int:
    """The clock of ages: it does not jump."""
    return time.monotonic_ns() // 1_000_000


class ForwarderRunner:
    """Drives one `Forwarder`.

    Lifecycle: `start` and `stop` return whatever the plugin does; ``close`` of the plugin is called once if
    `start` was.

    Without a feed, records are offered: before `start` they only queue, after `stop` they are only counted,
    and what is not delivered when it stops is dropped. With a feed, they are read out of the log, and what is
    not delivered is still there; records that are given up go to the dead letters first.

    Accounting: `stats` is balanced at any moment when it is read on the thread that offers, and with a feed
    on any; without, elsewhere it may miss the one record that is being offered right then.
    """

    def __init__(
        self,
        name: str,
        forwarder: Forwarder,
        settings: ForwarderSettings | None = None,
        uniform: Callable[[], float] = random.random,
        feed: LogFeed | None = None,
    ) -> None:
        self.name = name
        self.forwarder = forwarder
        self.settings = settings or ForwarderSettings()
        self.uniform = uniform
        self.ledger = DeliveryLedger()
        self.queue = BatchQueue(self.settings, self.ledger)
        self.delivery: BatchDelivery | None = None
        self.feed = feed
        if feed is not None:
            feed.to_forwarder, feed.receive, feed.restart = self.call, self.receive, self.restart
        self.lock = Lock()
        """Between taking, settling and looking; never held over a call of the plugin, and not by `offer`."""
        self.refusal: str | None = None
        """Why nothing is taken any more."""
        self.dropping = False
        self.loop: asyncio.AbstractEventLoop | None = None
        self.thread: Thread | None = None
        self.carrying: asyncio.Task[None] | None = None
        self.look = asyncio.Event()
        self.stopping = asyncio.Event()
        self.close_s = 1.0
        self.batch_ends: dict[int, int] = {}
        """Behind the last record of the batch in hand, by partition."""
        self.batch_generation = 0
        """The feed's, when the batch in hand was taken."""

    # on the host's loop

    def start(self) -> None:
        """Start the thread; does not wait for the plugin."""
        self.loop = asyncio.new_event_loop()
        self.thread = Thread(target=self.live, name=f"odradek-forwarder-{self.name}", daemon=True)
        self.thread.start()

    def offer(self, record: TelemetryRecord) -> bool:
        """Queue a record; False when it was dropped. Always on one thread; never blocks, never raises."""
        if self.refusal is not None:
            self.queue.refuse(self.refusal)
            return False
        offer = self.queue.offer(record, monotonic_ms())
        if (offer is Offer.DROPPED) is not self.dropping:
            self.report_dropping(offer is Offer.DROPPED)
        if offer is Offer.QUEUED_LOOK:
            self.call(self.look.set)
        return offer is not Offer.DROPPED

    def report_dropping(self, dropping: bool) -> None:
        """Say it when it begins and when it ends, not per record."""
        self.dropping = dropping
        message = "forwarder queue is full, dropping" if dropping else "forwarder queue has room again"
        log.warning(message, extra={"plugin": self.name, "dropped": dict(self.queue.dropped)})

    def stop_soon(self, timeout_s: float) -> None:
        """Take no more, deliver what is queued within the time, then close. Returns at once.

        For several forwarders: tell all first, then `stop` each.
        """
        self.refusal = self.refusal or "stopped"
        self.call(self.begin_stop, timeout_s)

    def stop(self, timeout_s: float) -> None:
        """`stop_soon`, and wait: ``timeout_s`` at most, whatever the plugin does. Blocks: use a thread.

        What is not delivered by then is counted as dropped. A thread that the plugin holds is left behind.
        """
        self.stop_soon(timeout_s)
        if self.thread is not None:
            self.thread.join(timeout_s)
            if self.thread.is_alive():
                log.error("forwarder does not end, left behind", extra={"plugin": self.name})
        self.give_up("stopped")

    def stats(self) -> ForwarderStats:
        """The accounts at this moment; any thread."""
        with self.lock:
            queue, ledger = self.queue, self.ledger
            offered, unread, gone = queue.offered, 0, queue.dropped
            if self.feed is not None:
                cursor, ends = self.feed.cursor, self.feed.source.ends()
                offered, unread, gone = cursor.offered(ends), cursor.unread(ends), cursor.dropped
            dropped = dict(gone)
            for reason, records in ledger.dropped.items():
                dropped[reason] = dropped.get(reason, 0) + records
            return ForwarderStats(
                offered=offered,
                delivered=ledger.delivered,
                dropped=dropped,
                rejected=dict(ledger.rejected),
                retries=ledger.retries,
                failures=ledger.failures,
                queued=unread + len(queue.waiting),
                in_flight=len(self.delivery.records) if self.delivery else 0,
                queued_bytes=queue.held_bytes,
                last_error=ledger.last_error,
            )

    def call(self, action: Callable[..., object], *arguments: object) -> None:
        """Run something on the forwarder's loop, if it still runs."""
        if self.loop is not None:
            with contextlib.suppress(RuntimeError):
                self.loop.call_soon_threadsafe(action, *arguments)

    # on the forwarder's thread

    def live(self) -> None:
        """The whole life of the thread."""
        assert self.loop is not None
        self.carrying = self.loop.create_task(self.carry())
        try:
            self.loop.run_until_complete(self.carry_and_close())
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        finally:
            self.refusal = self.refusal or "failed"
            self.loop.set_exception_handler(lambda loop, context: None)  # a task that was left behind
            self.loop.close()

    async def carry_and_close(self) -> None:
        """Give up what is left when carrying ends, however it ends."""
        assert self.carrying is not None
        await asyncio.wait({self.carrying})
        reason = "stopped"
        if not self.carrying.cancelled() and (error := self.carrying.exception()) is not None:
            reason = "start" if isinstance(error, StartError) else "failed"
            self.ledger.last_error = str(error)
            log.error("forwarder ended", extra={"plugin": self.name, "problem": str(error)})
        self.refusal = self.refusal or reason
        self.give_up(reason)
        try:
            await bounded(self.forwarder.close, self.close_s)
        except Exception as error:  # noqa: BLE001  a plugin may raise anything
            log.warning("forwarder close failed", extra={"plugin": self.name, "problem": described(error)})

    def begin_stop(self, timeout_s: float) -> None:
        """Flush until the deadline."""
        assert self.loop is not None
        assert self.carrying is not None
        self.stopping.set()
        self.look.set()
        self.close_s = max(0.0, timeout_s * (1 - FLUSH_SHARE) - CANCEL_GRACE_S)
        self.loop.call_later(timeout_s * FLUSH_SHARE, self.carrying.cancel)

    async def carry(self) -> None:
        """Batch after batch, until told to stop and nothing waits."""
        try:
            await bounded(self.forwarder.start, self.settings.deliver_timeout_ms / 1000)
        except Exception as error:
            raise StartError(f"start failed: {described(error)}") from error
        while True:
            stopping = self.stopping.is_set()
            if self.feed is not None:
                if stopping:
                    return  # the rest stays in the log
                self.ask_for_more(self.feed)
            if self.take(flush=stopping):
                await self.settle()
            elif stopping:
                return
            else:
                await self.wait_for_batch()

    def take(self, flush: bool) -> bool:
        """Take a batch in hand, if one is due."""
        with self.lock:
            batch = self.queue.take(monotonic_ms(), flush)
            self.delivery = self.delivery_of(batch) if batch else None
        return bool(batch)

    def delivery_of(self, batch: list[TelemetryRecord]) -> BatchDelivery:
        """A batch in hand; what no plugin can be given is lost from the start."""
        if self.feed is None:
            return BatchDelivery(batch, self.settings, self.ledger, self.uniform)
        ours = of_log(batch)
        good = [record for record in ours if not record.fault]
        delivery = BatchDelivery(good, self.settings, self.ledger, self.uniform, buries=True)
        if len(good) < len(ours):
            delivery.lost.append(([record for record in ours if record.fault], MALFORMED))
        self.batch_ends = {record.partition: record.original.offset + 1 for record in ours}
        self.batch_generation = self.feed.generation
        return delivery

    def ask_for_more(self, feed: LogFeed) -> None:
        """Keep about two batches at hand."""
        queue, settings = self.queue, self.settings
        few = len(queue.waiting) < 2 * settings.batch_max_records
        if few and queue.waiting_bytes < 2 * settings.batch_max_bytes:
            feed.ask()

    def receive(self, chunks: list[Chunk]) -> None:
        """Queue what has been read."""
        assert self.feed is not None
        assert self.loop is not None
        try:
            with self.lock:
                for chunk in chunks:
                    for record in self.feed.cursor.take(chunk):
                        self.queue.put(record, monotonic_ms())
        except WireError as error:  # asked for again later: the lag tells
            log.error("log is damaged", extra={"plugin": self.name, "problem": str(error)})
            self.loop.call_later(AGAIN_S, self.look.set)
        else:
            self.look.set()

    def restart(self, move: Callable[[list[SpooledRecord]], None]) -> None:
        """Go on elsewhere; the batch in hand is delivered first."""
        with self.lock:
            waiting = of_log(record for record, _ in self.queue.waiting)
            self.queue.withdraw()
            move(waiting)
        self.look.set()

    async def wait_for_batch(self) -> None:
        """Sleep until a batch may be due. Clears before it looks, so an offer in between is not missed."""
        self.look.clear()
        due_ms = self.queue.due_in_ms(monotonic_ms())
        if due_ms == 0 or self.stopping.is_set():
            return
        await waited(self.look, None if due_ms is None else due_ms)

    async def settle(self) -> None:
        """Deliver the batch in hand until nothing of it is left."""
        delivery = self.delivery
        while delivery is not None and delivery.records:
            wait_ms = await self.bury(delivery) if delivery.lost else await self.attempt(delivery)
            if self.feed is not None:
                await self.feed.settled(self.positions(delivery), self.batch_generation)
                if wait_ms and self.stopping.is_set():
                    return
            if wait_ms and self.stopping.is_set():
                await asyncio.sleep(wait_ms / 1000)
            elif wait_ms:
                await waited(self.stopping, wait_ms)

    def positions(self, delivery: BatchDelivery) -> dict[int, int]:
        """Per partition, what stands before it is settled."""
        positions = dict(self.batch_ends)
        for record in of_log(delivery.records):
            offset = record.original.offset
            positions[record.partition] = min(positions[record.partition], offset)
        return positions

    async def bury(self, delivery: BatchDelivery) -> int:
        """Make dead letters of what was given up; nothing is forgotten before that is done."""
        assert self.feed is not None
        records, reason = delivery.lost[0]
        for batch in dead_letters(of_log(records), self.name, self.feed.source.topic_name, reason):
            await self.feed.bury(batch)
        with self.lock:
            delivery.buried()
        return 0

    async def attempt(self, delivery: BatchDelivery) -> int:
        """One call of ``deliver``; milliseconds to wait for the next."""
        batch = delivery.piece()
        try:
            await bounded(lambda: self.forwarder.deliver(batch), self.settings.deliver_timeout_ms / 1000)
        except Retry as error:
            self.report(error, batch)
            with self.lock:
                return delivery.retry(error)
        except Reject as error:
            self.report(error, batch)
            with self.lock:
                delivery.reject(error)
        except CutOffError as error:
            self.report(error, batch)
            with self.lock:
                return delivery.timed_out(f"TimeoutError: {error}")
        except Exception as error:  # noqa: BLE001  a plugin may raise anything
            self.report(error, batch)
            with self.lock:
                return delivery.failed(described(error))
        else:
            with self.lock:
                delivery.delivered()
        return 0

    def report(self, error: Exception, batch: list[TelemetryRecord]) -> None:
        """One line per call that did not deliver; the backoff keeps them few."""
        extra = {"plugin": self.name, "problem": described(error), "records": len(batch)}
        log.warning("forwarder did not deliver", extra=extra)

    # on either thread

    def give_up(self, reason: str) -> None:
        """Drop what waits and what is in hand, unless it is in the log."""
        if self.feed is not None:
            return
        with self.lock:
            if self.delivery is not None:
                self.delivery.abandon(reason)
            while batch := self.queue.take(0, flush=True):
                self.ledger.drop(batch, reason)


class StartError(Exception):
    """The plugin's ``start`` raised or took too long."""


def of_log(records: Iterable[TelemetryRecord]) -> list[SpooledRecord]:
    """All of them: a feed gives nothing else."""
    return [record for record in records if isinstance(record, SpooledRecord)]
