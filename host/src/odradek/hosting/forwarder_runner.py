"""Run one forwarder on its own thread and event loop, fed from the log or through a bounded queue.

A plugin that raises, hangs, ignores its cancellation or blocks its thread hurts only itself: every call has a
time limit, and every failure is counted.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Iterable
from threading import Lock, Thread

from odradek.delivery.batch_delivery import DROPPED, BatchDelivery
from odradek.delivery.batch_queue import BatchQueue, Offer
from odradek.delivery.dead_letter import dead_letters
from odradek.delivery.delivery_ledger import DeliveryLedger, ForwarderStats
from odradek.delivery.forwarder_settings import ForwarderSettings
from odradek.delivery.log_cursor import Chunk
from odradek.delivery.spooled_record import MALFORMED, SpooledRecord
from odradek.hosting.bounded_call import CANCEL_GRACE_S, waited
from odradek.hosting.forwarder_calls import ForwarderCalls, monotonic_ms
from odradek.hosting.log_feed import AGAIN_S, LogFeed
from odradek.hosting.plugin_loop import plugin_loop
from odradek.hosting.record_labels import RecordLabels
from odradek.hosting.watched_call import place_of_thread
from odradek.plugin.plugin_stats import described
from odradek.plugin.protocols import Forwarder, Reject, TelemetryRecord
from odradek.plugin.source import Refused
from odradek.wire.errors import WireError

log = logging.getLogger(__name__)

FLUSH_SHARE = 0.75
"""Share of the stop time spent on delivering; the rest is for the plugin's ``close``."""


class ForwarderRunner:
    """Drives one `Forwarder`.

    Lifecycle: `start` and `stop` return no matter what the plugin does. The runner calls the plugin's
    ``close`` exactly once if `start` was called.

    Without a feed, the host offers records: before `start` they only queue, after `stop` they are only
    counted, and `stop` drops undelivered records. With a feed, the runner reads records from the log:
    undelivered records stay there, and a record that the runner gives up becomes a dead letter first.

    Accounting: `stats` always balances with a feed. Without one it balances on the thread that offers; on
    another thread it may miss the one record that is being offered at that moment.
    """

    def __init__(
        self,
        name: str,
        forwarder: Forwarder,
        settings: ForwarderSettings | None = None,
        uniform: Callable[[], float] = random.random,
        feed: LogFeed | None = None,
        labels: RecordLabels | None = None,
    ) -> None:
        self.name = name
        self.forwarder = forwarder
        self.settings = settings or ForwarderSettings()
        self.uniform = uniform
        self.ledger = DeliveryLedger()
        self.queue = BatchQueue(self.settings, self.ledger)
        self.delivery: BatchDelivery | None = None
        self.feed = feed
        self.labels = labels
        """Labels the records that no host has labeled; None if there are no such records."""
        self.lock = Lock()
        """Guards taking a batch, settling it and `stats`. Never held during a call of the plugin, nor by
        `offer`."""
        self.calls = ForwarderCalls(name, forwarder, self.settings, self.ledger, self.lock, uniform)
        self.destination = self.calls.destination
        self.refusal: str | None = None
        """Why the runner refuses records; None while it takes them."""
        self.dropping = False
        self.loop: asyncio.AbstractEventLoop | None = None
        self.thread: Thread | None = None
        self.carrying: asyncio.Task[None] | None = None
        self.look = asyncio.Event()
        self.stopping = asyncio.Event()
        self.close_s = 1.0
        self.batch_ends: dict[int, int] = {}
        """The offset after the last record of the current batch, by partition."""
        self.batch_generation = 0
        """The feed's generation when the runner took the current batch."""

    # on the host's loop

    def start(self) -> None:
        """Start the thread without waiting for the plugin.

        Raises:
            ConfigError: The offsets of a new forwarder cannot be stored.
        """
        # The thread of a feed may call before this one runs: the loop keeps the call.
        self.loop = plugin_loop(self.name)
        try:
            if self.feed is not None:
                self.feed.begin(self)
        except BaseException:
            self.loop.close()
            raise
        self.thread = Thread(target=self.live, name=f"odradek-forwarder-{self.name}", daemon=True)
        self.thread.start()

    def offer(self, record: TelemetryRecord) -> bool:
        """Queue a record; False if it was dropped. Call from one thread only; never blocks or raises."""
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
        """Log when dropping begins and when it ends, not for each record."""
        self.dropping = dropping
        message = (
            "the queue of plugin %s is full, dropping" if dropping else "the queue of plugin %s has room"
        )
        log.warning(message, self.name, extra={"plugin": self.name, "dropped": dict(self.queue.dropped)})

    def stop_soon(self, timeout_s: float) -> None:
        """Refuse new records, deliver the queued ones within the time, then close. Return at once.

        To stop several forwarders, call this on all of them first, then `stop` on each.
        """
        self.refusal = self.refusal or "stopped"
        self.call(self.begin_stop, timeout_s)

    def stop(self, timeout_s: float) -> None:
        """`stop_soon`, then wait for at most ``timeout_s``, no matter what the plugin does. Blocks: use a
        thread.

        Records undelivered by then count as dropped. A thread that the plugin still holds is abandoned.
        """
        self.stop_soon(timeout_s)
        if self.thread is not None:
            self.thread.join(timeout_s)
            if self.thread.is_alive():
                extra = {"plugin": self.name}
                told = "plugin %s did not stop in %g s, abandoning its thread%s"
                log.error(told, self.name, timeout_s, place_of_thread(self.thread.ident or 0), extra=extra)
        self.give_up("stopped")

    def stats(self) -> ForwarderStats:
        """The current accounts; call from any thread."""
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
                failing=self.destination.outage(monotonic_ms()),
            )

    def metrics_failed(self, error: Exception) -> None:
        """Tell of the plugin's own figures that cannot be read. Call from one thread only."""
        self.destination.metrics_failed(error, monotonic_ms())

    def problem(self) -> str | None:
        """Why nothing is delivered, unless the destination is down; None otherwise. Call from any thread."""
        if self.refusal == "failed":
            return f"ended: {self.ledger.last_error}"
        return self.destination.problem(monotonic_ms())

    def unsettled(self) -> list[SpooledRecord]:
        """The records that were read and are not settled. Call with the lock."""
        delivering = self.delivery.records if self.delivery else []
        return of_log([*delivering, *(record for record, _ in self.queue.waiting)])

    def call(self, action: Callable[..., object], *arguments: object) -> None:
        """Run an action on the forwarder's loop if that loop still runs."""
        if self.loop is not None:
            with contextlib.suppress(RuntimeError):
                self.loop.call_soon_threadsafe(action, *arguments)

    # on the forwarder's thread

    def live(self) -> None:
        """Run the forwarder from start to close; the body of the thread."""
        assert self.loop is not None
        self.carrying = self.loop.create_task(self.carry())
        try:
            self.loop.run_until_complete(self.carry_and_close())
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        finally:
            self.refusal = self.refusal or "failed"
            self.loop.close()

    async def carry_and_close(self) -> None:
        """Give up the remaining records when `carry` ends, however it ends, and close the plugin."""
        assert self.carrying is not None
        await asyncio.wait({self.carrying})
        reason = "stopped"
        if not self.carrying.cancelled() and (error := self.carrying.exception()) is not None:
            reason = "failed"
            self.ledger.last_error = self.destination.note(error, monotonic_ms())
            extra = {"plugin": self.name}
            log.error("plugin %s ended: %s", self.name, described(error), exc_info=error, extra=extra)
        self.refusal = self.refusal or reason
        self.give_up(reason)
        await self.calls.close(self.close_s)

    def begin_stop(self, timeout_s: float) -> None:
        """Deliver what is queued until the deadline."""
        assert self.loop is not None
        assert self.carrying is not None
        self.stopping.set()
        self.look.set()
        self.close_s = max(0.0, timeout_s * (1 - FLUSH_SHARE) - CANCEL_GRACE_S)
        self.loop.call_later(timeout_s * FLUSH_SHARE, self.carrying.cancel)

    async def carry(self) -> None:
        """Deliver batch after batch until the runner stops and nothing is queued."""
        if not await self.calls.start(self.stopping):
            return
        while True:
            stopping = self.stopping.is_set()
            if self.feed is not None:
                if stopping:
                    return  # undelivered records stay in the log
                self.ask_for_more(self.feed)
            if self.take(flush=stopping):
                await self.settle()
            elif stopping:
                return
            else:
                await self.wait_for_batch()

    def take(self, flush: bool) -> bool:
        """Take the next batch if one is due."""
        with self.lock:
            batch = self.queue.take(monotonic_ms(), flush)
            self.delivery = self.delivery_of(batch) if batch else None
        return bool(batch)

    def delivery_of(self, batch: list[TelemetryRecord]) -> BatchDelivery:
        """The delivery of a batch. A malformed record cannot go to a plugin: it counts as lost at once."""
        if self.feed is None:
            return BatchDelivery(batch, self.settings, self.ledger, self.uniform, self.destination.given_up)
        ours = of_log(batch)
        good = [record for record in ours if not record.fault]
        delivery = BatchDelivery(
            good, self.settings, self.ledger, self.uniform, self.destination.given_up, buries=True
        )
        delivery.lose([record for record in ours if record.fault], MALFORMED)
        self.batch_ends = {record.partition: record.original.offset + 1 for record in ours}
        self.batch_generation = self.feed.generation
        return delivery

    def ask_for_more(self, feed: LogFeed) -> None:
        """Ask the feed for records while fewer than about two batches are queued."""
        queue, settings = self.queue, self.settings
        few = len(queue.waiting) < 2 * settings.batch_max_records
        if few and queue.waiting_bytes < 2 * settings.batch_max_bytes:
            feed.ask()

    def receive(self, chunks: list[Chunk]) -> None:
        """Queue records that the feed has read."""
        assert self.feed is not None
        assert self.loop is not None
        try:
            with self.lock:
                for chunk in chunks:
                    for record in self.feed.cursor.take(chunk):
                        self.queue.put(record, monotonic_ms())
        except WireError as error:  # the feed asks again later; until then the lag grows
            log.error(
                "telemetry log is damaged, trying again", extra={"plugin": self.name, "problem": str(error)}
            )
            self.loop.call_later(AGAIN_S, self.look.set)
        else:
            self.look.set()

    def restart(self, move: Callable[[list[SpooledRecord]], None]) -> None:
        """Continue at another position once the current batch is delivered."""
        with self.lock:
            waiting = of_log(record for record, _ in self.queue.waiting)
            self.queue.withdraw()
            move(waiting)
        self.look.set()

    async def wait_for_batch(self) -> None:
        """Sleep until a batch may be due. Clears the event before looking, so that it misses no offer."""
        self.look.clear()
        due_ms = self.queue.due_in_ms(monotonic_ms())
        if due_ms == 0 or self.stopping.is_set():
            return
        await waited(self.look, None if due_ms is None else due_ms)

    async def settle(self) -> None:
        """Deliver the current batch until no record of it is left."""
        delivery = self.delivery
        if self.labels is not None and delivery is not None:
            self.refuse(delivery, await self.labels.label(delivery.piece()))
        while delivery is not None and delivery.records:
            wait_ms = await self.bury(delivery) if delivery.lost else await self.calls.deliver(delivery)
            if self.feed is not None:
                await self.feed.settled(self.positions(delivery), self.batch_generation)
                if wait_ms and self.stopping.is_set():
                    return
            if wait_ms and self.stopping.is_set():
                await asyncio.sleep(wait_ms / 1000)
            elif wait_ms:
                await waited(self.stopping, wait_ms)

    def refuse(self, delivery: BatchDelivery, refused: Iterable[Refused]) -> None:
        """Give up records that cannot be labeled: no plugin can get them."""
        by_reason: dict[str, list[TelemetryRecord]] = {}
        for each in refused:
            by_reason.setdefault(each.reason, []).append(each.record)
        for reason, records in by_reason.items():
            with self.lock:
                delivery.reject(Reject(reason, records))

    def positions(self, delivery: BatchDelivery) -> dict[int, int]:
        """The position up to which all records are settled, by partition."""
        positions = dict(self.batch_ends)
        for record in of_log(delivery.records):
            offset = record.original.offset
            positions[record.partition] = min(positions[record.partition], offset)
        return positions

    async def bury(self, delivery: BatchDelivery) -> int:
        """Write dead letters for the records given up; a record leaves the accounts only after that."""
        assert self.feed is not None
        records, reason = delivery.lost[0]
        for batch in dead_letters(of_log(records), self.name, self.feed.source.topic_name, reason):
            await self.feed.bury(batch)
        with self.lock:
            delivery.buried()
        return 0

    # on either thread

    def give_up(self, reason: str) -> None:
        """Drop the queued records and the current batch, unless they are in the log."""
        if self.feed is not None:
            return
        with self.lock:
            left = self.delivery.abandon(reason) if self.delivery is not None else []
            while batch := self.queue.take(0, flush=True):
                self.ledger.drop(batch, reason)
                left += batch
        if left:
            self.destination.given_up(left, reason, DROPPED)


def of_log(records: Iterable[TelemetryRecord]) -> list[SpooledRecord]:
    """The same records; a feed yields no other kind."""
    return [record for record in records if isinstance(record, SpooledRecord)]
