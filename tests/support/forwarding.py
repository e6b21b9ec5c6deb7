"""``odradek forward`` in a thread of the test: forwarders on a topic of a host."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Self

from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.client.admin import AdminClient as OwnAdmin
from odradek.client.changelog import Changelog
from odradek.client.group_member import GroupTimes
from odradek.client.shared_topic import SharedTopic, SharedTopicSettings
from odradek.delivery.delivery_ledger import ForwarderStats
from odradek.delivery.spooled_record import RecordFormat
from odradek.hosting.group_feed import GroupFeed
from odradek.hosting.plugin_manager import HostPluginManager
from odradek.plugin import Forwarder, TelemetryRecord
from odradek.programs.config import load_config
from odradek.programs.forward import Forward
from odradek.topic import encode_headers, record_key
from support.hosts import ServeProcess
from support.kafka_export import record_of
from support.spooling import FarSide, Plugin
from support.waiting import wait_until

FLEET = "fleet"
GROUP = "forward"
QUICK = (
    "shutdown.timeout.ms=60000",
    "plugins.fake.batch.max.age.ms=20",
    "plugins.fake.retry.backoff.ms=10",
    "plugins.fake.retry.backoff.max.ms=50",
)
PATIENCE_S = 60.0
HELD_S = 60.0
TIMES = GroupTimes(heartbeat_interval_ms=100)


class HeldFarSide(FarSide):
    """A destination that holds its first batch until it is released."""

    def __init__(self) -> None:
        super().__init__(self.hold)
        self.held = threading.Event()
        self.released = threading.Event()

    def hold(self, batch: Sequence[TelemetryRecord]) -> None:
        if not self.held.is_set():
            self.held.set()
            assert self.released.wait(HELD_S)


def far_sides(**forwarders: Forwarder) -> HostPluginManager:
    """The plugin ``fake`` with these forwarders."""
    plugins = HostPluginManager()
    plugins.add("fake", Plugin(dict(forwarders)), "fake", "1")
    return plugins


class ThreadedForward:
    """One process's forwarders, started in a thread. A context manager: at its end they are stopped."""

    def __init__(
        self,
        bootstrap: str,
        plugins: HostPluginManager,
        *overrides: str,
        times: GroupTimes = TIMES,
        topic: str = FLEET,
        record_format: RecordFormat | None = None,
        **settings: Any,
    ) -> None:
        self.bootstrap = bootstrap
        self.plugins = plugins
        self.config = load_config(None, [*QUICK, *overrides])
        self.times = times
        self.topic = topic
        self.record_format = record_format
        self.settings = settings
        self.made: Future[Forward] = Future()
        self.started: Future[None] = Future()
        self.failure: Exception | None = None
        """Raised by `stop`."""
        self.thread = threading.Thread(target=lambda: asyncio.run(self.live()), daemon=True)

    async def live(self) -> None:
        self.stop_event = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        try:
            forward = Forward(self.config, GROUP, self.opened, self.totals, self.plugins, self.record_format)
            self.made.set_result(forward)
            try:
                await forward.start(self.stop_event)
                self.started.set_result(None)
                await self.stop_event.wait()
            finally:
                await forward.stop()
        except Exception as error:  # noqa: BLE001  raised again in the test
            self.failure = error
            for waiting in (self.made, self.started):
                if not waiting.done():
                    waiting.set_exception(error)

    def totals(self, group_id: str, name: str | None) -> Changelog:
        return Changelog(OwnAdmin(self.bootstrap, timeout_s=30), name or f"{group_id}.totals", self.topic)

    def opened(self, group_id: str) -> SharedTopic:
        settings = SharedTopicSettings(
            topic=self.topic,
            group_id=group_id,
            dead_letter_topic=f"{self.topic}_dead_letter",
            times=self.times,
            **self.settings,
        )
        return SharedTopic(OwnAdmin(self.bootstrap, timeout_s=30), settings)

    def __enter__(self) -> Self:
        self.thread.start()
        self.made.result(PATIENCE_S)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        if self.thread.is_alive():
            self.loop.call_soon_threadsafe(self.stop_event.set)
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive(), "the forwarders have not stopped"
        if self.failure is not None:
            raise self.failure

    close = stop

    @property
    def feeds(self) -> Sequence[GroupFeed]:
        return self.made.result(0).feeds

    @property
    def owned(self) -> frozenset[int]:
        """The partitions of the first forwarder."""
        return self.feeds[0].owned

    def stats(self, number: int = 0) -> ForwarderStats:
        """The accounts of a forwarder, which balance."""
        found = self.made.result(0).runners[number].stats()
        assert found.balanced, found
        return found


class ForwardProcess(ServeProcess):
    """The command in a process of its own. A context manager: at its end it is stopped."""

    command = "forward"
    ready_start = "odradek ready group="

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.terminate(PATIENCE_S)

    @property
    def metrics_url(self) -> str:
        """The address of the metrics, whose port the log tells."""
        (line,) = [each for each in self.errors if "metrics=http" in each]
        return line.split("metrics=")[1].split(" ")[0] + "/metrics"


def forwarding(bootstrap: str, far_side: FarSide, *overrides: str, **rest: Any) -> ThreadedForward:
    """One process with one forwarder."""
    return ThreadedForward(bootstrap, far_sides(all=far_side), *overrides, **rest)


def create_topic(bootstrap: str, partitions: int = 4, name: str = FLEET) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(PATIENCE_S)


@contextmanager
def producer_of(bootstrap: str) -> Iterator[Producer]:
    refused: list[str] = []

    def report(error: KafkaError | None, _message: object) -> None:
        if error is not None:
            refused.append(error.str())

    options = {"bootstrap.servers": bootstrap, "enable.metrics.push": False, "linger.ms": 0}
    producer = Producer({**options, "on_delivery": report})
    yield producer
    assert producer.flush(PATIENCE_S) == 0
    assert not refused, refused


def fill(
    bootstrap: str,
    numbers: range,
    partitions: int = 4,
    records: Sequence[TelemetryRecord] | None = None,
    topic: str = FLEET,
) -> None:
    """Write one record for each number, to the partitions in turn."""
    with producer_of(bootstrap) as producer:
        for number in numbers:
            record = record_of(number, instance=number % 100) if records is None else records[number]
            key = record_key(record.payload.client_instance_id)
            headers = encode_headers(record)
            producer.produce(topic, record.payload.data, key, headers=headers, partition=number % partitions)


def metrics(numbers: range) -> list[str]:
    return [f"org.apache.kafka.producer.metric.{number}" for number in numbers]


def until(condition: Any, *processes: ThreadedForward) -> None:
    """Wait for a condition; the accounts must balance at every check."""

    def holds() -> bool:
        for process in processes:
            process.stats()
        return bool(condition())

    wait_until(holds, lambda: [(each.owned, each.stats()) for each in processes], PATIENCE_S)
