"""The bytes that records of each source take in the telemetry topic: observed clients, and the lag of groups.

``odradek serve`` with its defaults, but for shorter intervals, and clients of librdkafka that push nothing.
Usage, from the folder above: ``python -m bench.topic_bytes [--seconds 60]``. The bytes of a push are measured
by ``python -m bench.parts``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import confluent_kafka as kafka

from bench.harness import head
from odradek.client.admin import AdminClient
from odradek.client.fetch import fetch
from odradek.client.group_offsets import CommittedOffset
from odradek.client.leaders import Partition
from odradek.client.resources import EARLIEST, LATEST, NewTopic
from odradek.testing.data_points import data_points
from support.hosts import serving

TOPIC, TELEMETRY = "orders", "__client_telemetry"
PARTITIONS, GROUPS, CLIENTS = 10, 100, 10
INTERVAL_S = 10
OF_CLIENTS = (
    "telemetry.lag=none",
    "telemetry.observe=all",
    "subscriptions.all.metrics=*",
    f"subscriptions.all.interval.ms={INTERVAL_S * 1000}",
)
OF_GROUPS = ("telemetry.observe=none", f"lag.export.interval.ms={INTERVAL_S * 1000}")


def client_settings(bootstrap: str, **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": bootstrap, "enable.metrics.push": False, **more}


def produce(producers: Sequence[Any]) -> None:
    for number, producer in enumerate(producers):
        for index in range(PARTITIONS):
            producer.produce(TOPIC, b"v" * 100, partition=(number + index) % PARTITIONS)
        producer.poll(0)


def observed(bootstrap: str, admin: AdminClient, stack: ExitStack) -> Callable[[], None]:
    """Producers and consumers without telemetry."""
    names = range(CLIENTS)
    producers = [kafka.Producer(client_settings(bootstrap, **{"client.id": f"p-{i}"})) for i in names]
    consumers = [
        kafka.Consumer(client_settings(bootstrap, **{"group.id": f"g-{i}", "client.id": f"c-{i}"}))
        for i in names
    ]
    for each in consumers:
        stack.callback(each.close)
        each.subscribe([TOPIC])

    def work() -> None:
        produce(producers)
        for each in consumers:
            each.consume(1000, 0.01)

    return work


def groups(bootstrap: str, admin: AdminClient, stack: ExitStack) -> Callable[[], None]:
    """Groups that all move between two rounds, and stay a little behind."""
    producers = [kafka.Producer(client_settings(bootstrap))]
    at = 0

    def work() -> None:
        nonlocal at
        produce(producers)
        at += 1
        if at % (2 * INTERVAL_S // 3):
            return
        for number in range(GROUPS):
            offsets = {
                (TOPIC, index): CommittedOffset(max(at - number % 7, 0)) for index in range(PARTITIONS)
            }
            admin.offset_commit(f"billing-service-{number}", offsets)

    return work


def measured(
    settings: Sequence[str],
    begin: Callable[[str, AdminClient, ExitStack], Callable[[], None]],
    seconds: float,
) -> tuple[int, int, int]:
    """The records, the data points and the bytes in the topic."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        given = [part for each in settings for part in ("--set", each)]
        serve = stack.enter_context(serving(Path(folder), *given))
        admin = stack.enter_context(AdminClient(serve.bootstrap))
        admin.create_topics([NewTopic(name=TOPIC, partitions=PARTITIONS)])
        work = begin(serve.bootstrap, admin, stack)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            work()
            time.sleep(1)
        records = list(read(admin))
        logs = Path(folder).rglob(f"{TELEMETRY}-*/*.log")
        return len(records), sum(records), sum(each.stat().st_size for each in logs)


def read(admin: AdminClient) -> Iterator[int]:
    """The data points of each record of the topic."""
    (topic,) = admin.describe_topics([TELEMETRY])
    partitions: list[Partition] = [(TELEMETRY, row.index) for row in topic.partitions]
    starts, ends = (admin.list_offsets(dict.fromkeys(partitions, at)) for at in (EARLIEST, LATEST))
    for partition in partitions:
        for record in fetch(admin.cluster, partition, starts[partition].offset, ends[partition].offset):
            yield len(list(data_points(record.value or b"")))


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench.topic_bytes")
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args(arguments)
    print(head("bench.topic_bytes"))
    for name, settings, begin in (("observed", OF_CLIENTS, observed), ("lag", OF_GROUPS, groups)):
        records, points, size = measured(settings, begin, given.seconds)
        print(f"{name}: {records} records, {points} points, {size} bytes: ", end="")
        print(f"{size / records:.0f} bytes a record, {size / max(points, 1):.1f} bytes a point")


if __name__ == "__main__":
    main(sys.argv[1:])
