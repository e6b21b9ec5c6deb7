"""The forwarder: totals are committed, then their samples are sent, until the receiver has all of them.

A batch is added in parts with one record of each client, so that every push gets its samples. The parts keep
the order of the log: a record before the last position counts as added. A batch that comes again, because the
receiver was away, is not added again: its samples still wait in the outbox. After a sudden death it comes
again as well, and its clients' totals of then are sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import groupby

from odradek.endpoints.http_client import HttpClient, HttpTarget
from odradek.plugin import Reject, Retry, TelemetryRecord
from odradek.temporality import TotalsFigures, TotalsStore
from odradek_prometheus.exposition import Exposition
from odradek_prometheus.remote_write.outbox import Outbox
from odradek_prometheus.remote_write.receiver import Receiver
from odradek_prometheus.remote_write.remote_write_settings import RemoteWriteSettings
from odradek_prometheus.remote_write.sending import send_all
from odradek_prometheus.remote_write.series_samples import External

log = logging.getLogger(__name__)

LOOK_S = 5.0
"""Between two looks for series that have ended, or must be sent again."""
QUIET_S = 10.0
"""Without a record for so long, nothing waits in a partition: its time is the clock's."""
NO_PARTITION = -1
"""Of records without a position, and of the time before the first record."""


class RemoteWriteForwarder:
    """Keeps totals, and sends them to one receiver."""

    def __init__(self, settings: RemoteWriteSettings, exposition: Exposition, user_agent: str) -> None:
        self.remote = settings
        self.settings = settings.totals
        self.exposition = exposition
        self.outbox = Outbox(settings.requests_in_flight, External(settings.labels))
        self.client = HttpClient(target_of(settings), {"user-agent": user_agent})
        self.receiver = Receiver(self.client, settings.credentials(), settings.protocol)
        self.totals = exposition.wrap(Collector(self), settings.totals)
        self.taken: set[Hashable] = set()
        """The records of a batch that will be delivered again. Their samples are in the outbox, or were sent
        with another part of the batch."""
        self.refused: set[Hashable] = set()
        """The records among them that are not OTLP."""
        self.read: dict[int, tuple[int, float]] = {}
        """By partition: when the host received the newest record, and when that was settled, of the monotonic
        clock."""
        self.lock = asyncio.Lock()
        """Held while samples are taken or sent."""
        self.looking: asyncio.Task[None] | None = None

    @property
    def figures(self) -> TotalsFigures:
        """For metrics; any thread may read them."""
        return self.totals.figures

    @property
    def refused_points(self) -> Mapping[str, int]:
        """Samples that the receiver did not store, by reason; any thread may read them."""
        return self.receiver.counts.rejected

    def is_rebuilt(self) -> bool:
        """Whether the totals are to be built again from the beginning of the log. Call before the start."""
        return self.totals.is_rebuilt()

    def store_in(self, store: TotalsStore) -> None:
        """Store the totals here instead of in the file of the settings. Call before the start."""
        self.totals.store_in(store)

    def keep(self, parts: Collection[int]) -> None:
        """Forget other parts of the store than these: they belong to other processes."""
        self.totals.keep(parts)

    async def start(self) -> None:
        """Open the totals, and create the client without connecting. A second start begins again."""
        await self.stop_looking()
        await self.totals.start()
        await self.client.close()
        await self.client.open()
        self.read = {NO_PARTITION: (0, time.monotonic())}
        self.looking = asyncio.create_task(self.look_again_and_again())

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        """Add a batch to the totals, and send the samples.

        Raises:
            Retry: The totals cannot be stored, or the receiver cannot accept the samples now.
            Reject: Records are not OTLP.
        """
        async with self.lock:
            await self.client.refresh()
            keys = set(map(key_of, batch))
            if self.taken.isdisjoint(keys):
                # An earlier batch was given up, and will not come again.
                self.taken.clear()
                self.refused.clear()
            await self.add([record for record in batch if key_of(record) not in self.taken])
            await self.send()
            refused = [record for record in batch if key_of(record) in self.refused]
            self.taken -= keys
            self.refused -= keys
            settled_s = time.monotonic()
            self.read |= {partition_of(each): (each.context.received_ms, settled_s) for each in batch}
        if refused:
            raise Reject("not OTLP", refused, [record for record in batch if record not in refused])

    async def add(self, records: Sequence[TelemetryRecord]) -> None:
        """Add records to the totals, and take their samples."""
        for part in parts(records):
            try:
                await self.totals.deliver(part)
            except Reject as error:
                self.refused.update(map(key_of, error.records))
            self.taken.update(map(key_of, part))

    def take(self, batch: Sequence[TelemetryRecord]) -> None:
        """Take the samples of records that were committed."""
        update = self.exposition.update(batch)
        too_wide = sum([self.outbox.add(client) for client in update.touched])
        if too_wide:
            self.receiver.leave_out(too_wide)
        self.outbox.end(update.ended)
        for client in update.touched:
            if self.exposition.client(client.instance_id) is None:
                self.outbox.end_facts(client.instance_id, client.received_ms)

    async def send(self) -> None:
        """Send all samples.

        Raises:
            Retry: The receiver did not accept all of them.
        """
        if self.outbox:
            await send_all(self.outbox, self.receiver, self.remote.samples_per_request)

    async def close(self) -> None:
        """Close all connections, then the totals; also without or after a failed start."""
        await self.stop_looking()
        try:
            await self.client.close()
        finally:
            await self.totals.close()

    async def stop_looking(self) -> None:
        task, self.looking = self.looking, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def look_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            async with self.lock:
                if self.taken:
                    continue  # a batch waits for the receiver, and will be delivered again
                try:
                    self.look(self.time_of_log_ms(time.monotonic(), int(time.time() * 1000)))
                    await self.send()
                except Retry as error:
                    log.debug("samples wait for the next batch", extra={"problem": str(error)})
                except Exception:
                    # If this task ended, stale series would stay until the next start.
                    log.exception("silent series were not ended; trying again", extra={"after_s": LOOK_S})

    def time_of_log_ms(self, monotonic_s: float, now_ms: int) -> int:
        """The time up to which all partitions were read. Clients that wait in one of them are not silent."""
        busy = [read_ms for read_ms, settled_s in self.read.values() if monotonic_s - settled_s <= QUIET_S]
        return min(busy, default=now_ms)

    def look(self, now_ms: int) -> None:
        """Take markers of silent series, and live series that were not sent for long.

        While samples wait for the receiver, the log is behind: nothing has ended.
        """
        if self.outbox or not now_ms:
            return
        self.outbox.end(self.exposition.expire(now_ms))
        for instance_id in [each for each in self.outbox.facts if self.exposition.client(each) is None]:
            if self.exposition.engine_of(instance_id) is None:
                self.outbox.leave(instance_id)
            else:
                self.outbox.end_facts(instance_id, now_ms)
        for client in self.exposition.clients() if self.remote.resend_ms else ():
            if now_ms - self.outbox.last_ms(client.instance_id) >= self.wait_ms(client.interval_ms):
                self.outbox.resend(client, now_ms)
        self.outbox.forget_before(now_ms - self.settings.limits.retain_ms)

    def wait_ms(self, interval_ms: int) -> int:
        """The time after which the values of a client are sent again, unless its next push is due soon."""
        resend_ms = self.remote.resend_ms
        return resend_ms if interval_ms > 2 * resend_ms else resend_ms + interval_ms


class Collector:
    """Gets the committed batches, and only takes their samples."""

    def __init__(self, forwarder: RemoteWriteForwarder) -> None:
        self.forwarder = forwarder

    async def start(self) -> None:
        """Make pictures of the stored clients."""
        exposition = self.forwarder.exposition
        exposition.load(int(time.time() * 1000))
        self.forwarder.outbox.continue_after(exposition.clients())

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        """Take the samples of a batch."""
        self.forwarder.take(batch)

    async def close(self) -> None:
        """Nothing is open."""


def target_of(settings: RemoteWriteSettings) -> HttpTarget:
    return HttpTarget(
        url=settings.url,
        secure=settings.secure,
        tls=settings.tls,
        timeout_ms=settings.timeout_ms,
        connect_timeout_ms=min(settings.connect_timeout_ms, settings.timeout_ms),
        connections=settings.requests_in_flight,
    )


def key_of(record: TelemetryRecord) -> Hashable:
    """The same for a record that is delivered again. Records of several clients may have one position."""
    position = record.position
    return (position, record.payload.client_instance_id) if position is not None else record


def partition_of(record: TelemetryRecord) -> int:
    return record.position.partition if record.position is not None else NO_PARTITION


def parts(records: Sequence[TelemetryRecord]) -> Iterator[list[TelemetryRecord]]:
    """The records in the order of the log, in parts in which each client has one.

    All pushes of a record of the log are in one part: its position is committed with all of them.
    """
    part: list[TelemetryRecord] = []
    clients: set[bytes] = set()
    for _, pushes in groupby(records, lambda record: record.position or id(record)):
        found = list(pushes)
        instances = {record.payload.client_instance_id for record in found}
        if not clients.isdisjoint(instances):
            yield part
            part, clients = [], set()
        part += found
        clients |= instances
    if part:
        yield part
