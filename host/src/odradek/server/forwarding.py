"""One forwarder on a thread and an event loop of its own, fed from the host's loop through a bounded queue.

Whatever the plugin does there (raise, hang, ignore its cancellation, block the thread) is bounded, is counted
and stays there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable
from threading import Lock, Thread

from odradek.delivery.batch_delivery import BatchDelivery
from odradek.delivery.batch_queue import BatchQueue, Offer
from odradek.delivery.delivery_ledger import DeliveryLedger, ForwarderStats
from odradek.delivery.forwarder_settings import ForwarderSettings
from odradek.plugin.context import ClientTelemetryContext
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.plugin.protocols import Forwarder, Reject, Retry, TelemetryRecord

log = logging.getLogger(__name__)

CANCEL_GRACE_S = 0.2
"""How long a call that was cancelled may take to notice."""
FLUSH_SHARE = 0.75
"""Of the time to stop; the rest is for ``close``."""


def monotonic_ms() -> int:
    """The clock of ages: it does not jump."""
    return time.monotonic_ns() // 1_000_000


class ForwarderRunner:
    """Drives one `Forwarder`. It is a `ClientTelemetryExporter`, so it joins the host's chain like any other.

    Lifecycle: `start` and `stop` return whatever the plugin does; ``close`` of the plugin is called once if
    `start` was. `offer` before `start` only queues, after `stop` only counts.

    Accounting: `stats` is balanced at any moment when it is read on the thread that offers; elsewhere it may
    miss the one record that is being offered right then.
    """

    def __init__(
        self,
        name: str,
        forwarder: Forwarder,
        settings: ForwarderSettings | None = None,
        uniform: Callable[[], float] = random.random,
    ) -> None:
        self.name = name
        self.forwarder = forwarder
        self.settings = settings or ForwarderSettings()
        self.uniform = uniform
        self.ledger = DeliveryLedger()
        self.queue = BatchQueue(self.settings, self.ledger)
        self.delivery: BatchDelivery | None = None
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

    # on the host's loop

    def start(self) -> None:
        """Start the thread; does not wait for the plugin."""
        self.loop = asyncio.new_event_loop()
        self.thread = Thread(target=self.live, name=f"odradek-forwarder-{self.name}", daemon=True)
        self.thread.start()

    def export_metrics(self, context: ClientTelemetryContext, payload: ClientTelemetryPayload) -> None:
        """Offer one push."""
        self.offer(TelemetryRecord(context.request, context.push_interval_ms, payload))

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
            dropped = dict(queue.dropped)
            for reason, records in ledger.dropped.items():
                dropped[reason] = dropped.get(reason, 0) + records
            return ForwarderStats(
                offered=queue.offered,
                delivered=ledger.delivered,
                dropped=dropped,
                rejected=dict(ledger.rejected),
                retries=ledger.retries,
                failures=ledger.failures,
                queued=len(queue.waiting),
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
            await self.bounded(self.forwarder.close, self.close_s)
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
            await self.bounded(self.forwarder.start, self.settings.deliver_timeout_ms / 1000)
        except Exception as error:
            raise StartError(f"start failed: {described(error)}") from error
        while True:
            stopping = self.stopping.is_set()
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
            self.delivery = BatchDelivery(batch, self.settings, self.ledger, self.uniform) if batch else None
        return bool(batch)

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
            wait_ms = await self.attempt(delivery)
            if wait_ms and self.stopping.is_set():
                await asyncio.sleep(wait_ms / 1000)
            elif wait_ms:
                await waited(self.stopping, wait_ms)

    async def attempt(self, delivery: BatchDelivery) -> int:
        """One call of ``deliver``; milliseconds to wait for the next."""
        batch = list(delivery.records)
        try:
            await self.bounded(lambda: self.forwarder.deliver(batch), self.settings.deliver_timeout_ms / 1000)
        except Retry as error:
            self.report(error, batch)
            with self.lock:
                return delivery.retry(error)
        except Reject as error:
            self.report(error, batch)
            with self.lock:
                delivery.reject(error)
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

    async def bounded(self, work: Callable[[], Awaitable[None]], timeout_s: float) -> None:
        """Call the plugin.

        Raises:
            TimeoutError: It took too long. When it ignores its cancellation too, it is left behind.
        """
        task = asyncio.ensure_future(guarded(work))
        try:
            await asyncio.wait({task}, timeout=timeout_s)
        except asyncio.CancelledError:
            await self.cancel(task)
            raise
        if not task.done():
            await self.cancel(task)
        if not task.done() or task.cancelled():
            raise TimeoutError(f"cancelled, or took longer than {timeout_s:g} s")
        task.result()

    async def cancel(self, task: asyncio.Future[None]) -> None:
        """Cancel and wait, but not long."""
        task.cancel()
        await asyncio.wait({task}, timeout=CANCEL_GRACE_S)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    # on either thread

    def give_up(self, reason: str) -> None:
        """Drop what waits and what is in hand."""
        with self.lock:
            if self.delivery is not None:
                self.delivery.abandon(reason)
            while batch := self.queue.take(0, flush=True):
                self.ledger.drop(batch, reason)


class StartError(Exception):
    """The plugin's ``start`` raised or took too long."""


async def guarded(work: Callable[[], Awaitable[None]]) -> None:
    """Await the plugin; what would end the whole thread becomes an ordinary error."""
    try:
        await work()
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(described(error)) from error


async def waited(event: asyncio.Event, timeout_ms: int | None) -> None:
    """Until the event or the time, whichever is first."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
            await event.wait()


def described(error: BaseException) -> str:
    """Kind and message in one line."""
    return f"{type(error).__name__}: {error}"
