"""kill -9 of ``odradek serve`` while its collector fails: accepted pushes arrive."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from contrib.capture.ports import free_port

from odradek.topic import decode_record
from support.accounts import Accounts, assert_served_accounts_balance
from support.hosts import EVERYTHING, ServeProcess, serving
from support.otlp_collector import (
    Collector,
    Mood,
    busy,
    busy_for_a_second,
    closing,
    collecting,
    hanging,
    is_poison,
    picky,
    slow,
    well,
)
from support.pushers import Pushers, pushing
from support.spooling import name_of
from support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
PATIENCE_S = 60.0
LOOK_S = 0.25
THREADS = 6
BATCH_RECORDS = 40
FAST = (
    *EVERYTHING,
    "telemetry.topic.partitions=2",
    "telemetry.linger.ms=5",
    "plugins.otlp.batch.max.age.ms=20",
    f"plugins.otlp.batch.max.records={BATCH_RECORDS}",
    "plugins.otlp.retry.backoff.ms=50",
    "plugins.otlp.retry.backoff.max.ms=200",
)


@dataclass(eq=False)
class Life:
    """One data directory through several runs, with clients that push all the time."""

    data_dir: Path
    pushers: Pushers
    settings: tuple[str, ...]
    kills: int = 0
    port: int = field(default_factory=free_port)

    @contextmanager
    def run(self) -> Iterator[ServeProcess]:
        """A run of the host; the accounting is balanced at its end, unless it was killed."""
        told = (*FAST, *self.settings, f"metrics.listener=http://127.0.0.1:{self.port}")
        with serving(self.data_dir, *(part for setting in told for part in ("--set", setting))) as serve:
            self.pushers.bootstrap = serve.bootstrap
            yield serve
            if serve.process.poll() is None:
                self.accounts()

    def accounts(self) -> Accounts:
        return assert_served_accounts_balance(f"http://127.0.0.1:{self.port}/metrics")

    def kill(self, serve: ServeProcess) -> None:
        self.pushers.bootstrap = None
        serve.kill()
        self.kills += 1

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition; the accounting must be balanced at every check."""

        def holds() -> bool:
            self.accounts()
            return condition()

        wait_until(holds, self.accounts, PATIENCE_S)


@contextmanager
def living(data_dir: Path, collector: Collector, *settings: str) -> Iterator[Life]:
    with pushing(THREADS) as pushers:
        yield Life(data_dir, pushers, (f"plugins.otlp.endpoint={collector.url}", *settings))


def assert_arrived(life: Life, collector: Collector) -> None:
    """Assert that every accepted push arrived. For each killed run, at most the batch in flight arrived
    twice; other extra pushes are those whose answer did not reach the client.
    """
    accepted = {name for name in life.pushers.accepted if collector.mood is not picky or not is_poison(name)}
    extra = collector.seen.keys() - accepted
    assert collector.missing(accepted) == set()
    assert collector.duplicates <= life.kills * BATCH_RECORDS, collector.duplicates
    assert len(extra) <= life.kills * THREADS, extra
    assert life.pushers.refused == {}


def test_thousands_of_pushes_survive_a_collector_that_stops_and_a_host_that_is_killed_twice(
    tmp_path: Path,
) -> None:
    total = 3_000
    with collecting() as collector, living(tmp_path, collector) as life:
        accepted = life.pushers.accepted
        with life.run() as serve:
            life.until(lambda: len(accepted) > total / 5)
            life.kill(serve)
        with life.run() as serve:
            life.until(lambda: len(accepted) > total / 3)
            collector.down()
            life.until(lambda: len(accepted) > total / 2)
            life.kill(serve)
        with life.run():
            life.until(lambda: len(collector.missing(life.pushers.names())) > total / 4)
            waiting = collector.missing(life.pushers.names())
            collector.up()
            life.until(lambda: len(accepted) > total)
            life.pushers.stop()
            life.until(lambda: life.accounts()["forwarder_queued", "otlp"] == 0)
            accounts = life.accounts()

    print(f"{len(accepted)} accepted, {len(waiting)} waited, {collector.duplicates} came twice")
    assert len(waiting) > total / 4
    assert_arrived(life, collector)
    assert accounts["forwarder_dropped", "otlp"] == accounts["forwarder_rejected", "otlp"] == 0


@pytest.mark.parametrize(
    "mood",
    [
        *(None, hanging, picky),
        *(pytest.param(each, marks=pytest.mark.nightly) for each in (slow, busy, busy_for_a_second, closing)),
    ],
)
def test_every_accepted_push_arrives_whenever_the_host_is_killed(tmp_path: Path, mood: Mood | None) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    impatient = ("plugins.otlp.timeout.ms=1000",) if mood is hanging else ()
    with collecting() as collector, living(tmp_path, collector, *impatient) as life:
        if mood is None:
            collector.down()
        else:
            collector.mood = mood
        for _kill in range(2):
            with life.run() as serve:
                time.sleep(chance.uniform(0.1, 1.5))
                life.kill(serve)
        with life.run() as serve:
            if mood is not picky:
                collector.mood = well
            collector.up()
            time.sleep(chance.uniform(0.1, 1.5))
            life.until(lambda: len(life.pushers.accepted) > 100)
            life.pushers.stop()
            life.until(lambda: life.accounts()["forwarder_queued", "otlp"] == 0)
            letters = dead_letters(serve.bootstrap)

    print(f"{len(life.pushers.accepted)} accepted, {collector.duplicates} came twice")
    assert_arrived(life, collector)
    poison = {name for name in life.pushers.accepted if is_poison(name)} if mood is picky else set()
    assert poison <= set(letters)
    assert all(is_poison(name) for name in letters) if mood is picky else not letters


def dead_letters(bootstrap: str) -> list[str]:
    """The records in the dead-letter topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.metrics.push": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition("__client_telemetry_dead_letter", 0, 0)])
    found = []
    while (message := consumer.poll(PATIENCE_S)) is not None and not message.error():
        record = decode_record(message.key(), message.value(), message.headers() or [])
        found.append(name_of(record.payload.data))
    consumer.close()
    return found


def test_a_hanging_forwarder_delays_no_other_and_loses_nothing_in_a_kill(tmp_path: Path) -> None:
    with collecting() as bad, collecting() as good, pushing(THREADS) as pushers:
        bad.mood = hanging
        table = "plugins.otlp.destinations"
        settings = (f"{table}.bad.endpoint={bad.url}", f"{table}.good.endpoint={good.url}")
        # Longer than the host waits: the plugin itself hangs, and is cancelled.
        patient = ("plugins.otlp.deliver.timeout.ms=2000", f"{table}.bad.timeout.ms=60000")
        life = Life(tmp_path, pushers, (*settings, *patient))
        for _kill in range(2):
            with life.run() as serve:
                seen, asked = len(good.seen), bad.asked
                life.until(lambda seen=seen: len(good.seen) > seen + 200)  # type: ignore[misc]
                life.until(lambda asked=asked: bad.asked > asked + 2)  # type: ignore[misc]
                life.kill(serve)
        taken = len(bad.seen)
        bad.mood = well
        bad.released.set()
        with life.run():
            life.until(lambda: len(pushers.accepted) > 1_000)
            pushers.stop()
            for destination in ("otlp.bad", "otlp.good"):
                life.until(lambda name=destination: life.accounts()["forwarder_queued", name] == 0)  # type: ignore[misc]

    assert taken == 0
    assert_arrived(life, good)
    assert_arrived(life, bad)
