"""Delta to cumulative: time per point and memory per series of the engine, for a fleet of equal clients.

Each client sends the recorded pushes of a Java producer or consumer, labeled with a client id and a port of
its own. The engine adds and rewrites them, then its state is taken as bytes, and read again. Then the same
for clients whose series have labels of their own, a collector with the same pushes, and commits to a file.

Usage, from the folder above: ``python -m bench.temporality [--series 1000000] [--part memory]``
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, MetricsData

from bench import temporality_collector
from bench.comparison import figure
from bench.harness import CACHE, head
from odradek.otlp.labeled_payload import labeler
from odradek.plugin import ClientTelemetryPayload, Origin, TelemetryRecord
from odradek.temporality import Engine, Limits, StateFile
from odradek.testing.pushes import recorded

GOAL_POINT_US = 3.5
GOAL_SERIES_BYTES = 120
GOAL_COMMIT_MS = 1.0
COMMITTED_CLIENTS = 40
COMMITS = 50
PUSHES = 200
ROUNDS = 2
PARTS = ("time", "memory", "file", "collector")
COUNTERS = 41
"""Of a Java producer."""
DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
OWN_NAMES, OWN_PARTITIONS = 10, 10
CLIENTS = ("java-producer", "java-consumer", "librdkafka-consumer")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def labeled_push(client: str, number: int, push: int) -> TelemetryRecord:
    """A recorded push as another client's."""
    found = recorded(client)[push]
    label = labeler({"client_id": f"orders-{number}", "client_source_port": str(10_000 + number)})
    instance_id = number.to_bytes(16, "big")
    return replace(found.record, payload=ClientTelemetryPayload(instance_id, False, label(found.data)))


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


def time_per_point(client: str, *, keep_gauges: bool) -> None:
    """Print how long a point takes when the layout is known, and when it is not."""
    for limits, name in ((Limits(), "known layout"), (Limits(max_layouts=0), "any layout")):
        engine = Engine(limits, keep_gauges=keep_gauges)
        records = [labeled_push(client, number, push) for number in range(20) for push in (2, 3)]
        for record in records:
            engine.convert(record)
        added = engine.counts.added_points
        count = PUSHES // len(records)
        began = time.process_time()
        for _ in range(count):
            for record in records:
                engine.convert(record)
        spent_us = (time.process_time() - began) * 1e6
        sums = (engine.counts.added_points - added) / (count * len(records))
        per_push = spent_us / (count * len(records))
        points = all_points(client)
        print(
            f"  {client:20} {name:13} {per_push:7.1f} us/push, {points} points: "
            f"{per_push / points:5.2f} us/point, {per_push / sums:5.2f} us per counter"
        )


def all_points(client: str) -> int:
    """The number of points in a push, gauges included."""
    engine = Engine(keep_gauges=True)
    record = labeled_push(client, 0, 2)
    engine.convert(record)
    return len(list(engine.series(record.payload.client_instance_id))) or 1


def million_series(wanted: int) -> None:
    """Print memory per series, and the cost of taking and reading the state."""
    engine = Engine(Limits(max_streams=2 * wanted, max_bytes=4 << 30))
    pushes = [labeled_push("java-producer", 0, push) for push in (2, 3)]
    gc.collect()
    before = resident_bytes()
    began = time.process_time()
    clients = wanted // COUNTERS
    for number in range(clients):
        instance_id = number.to_bytes(16, "big")
        payload = replace(pushes[0].payload, client_instance_id=instance_id)
        engine.convert(replace(pushes[0], payload=payload, position=Origin("topic", 0, number)))
    spent_s = time.process_time() - began
    gc.collect()
    series = engine.clients.streams
    used = (resident_bytes() - before) / series
    print(
        f"  {series} series of {clients} clients in {spent_s:.1f} s: {used:.0f} bytes a series (resident), "
        f"{engine.held_bytes / series:.0f} by the engine's own account; goal {GOAL_SERIES_BYTES}"
    )
    began = time.process_time()
    changes, _ = engine.take_changes()
    taken_s = time.process_time() - began
    states = {key: state for key, state in changes.clients.items() if state is not None}
    stored = sum(map(len, states.values()))
    began = time.process_time()
    other = Engine(Limits(max_streams=2 * wanted, max_bytes=4 << 30))
    other.restore(changes.shapes, states, [])
    restored_s = time.process_time() - began
    print(
        f"  all of it as bytes in {taken_s:.2f} s, {stored / series:.0f} bytes a series; "
        f"read again in {restored_s:.2f} s"
    )


def own_series(wanted: int) -> None:
    """Print memory per series for clients whose series nobody else has, as those of Kafka Streams."""
    engine = Engine(Limits(max_streams=2 * wanted, max_bytes=4 << 30))
    record = labeled_push("java-producer", 0, 2)
    clients = wanted // (OWN_NAMES * OWN_PARTITIONS)
    gc.collect()
    before_bytes = resident_bytes()
    for number in range(clients):
        payload = replace(
            record.payload, client_instance_id=number.to_bytes(16, "big"), data=own_push(number)
        )
        engine.convert(replace(record, payload=payload, position=Origin("topic", 0, number)))
    gc.collect()
    series, used_bytes = engine.clients.streams, resident_bytes() - before_bytes
    layouts_mib = engine.layouts.held_bytes / (1 << 20)
    print(
        f"  {series} series of {clients} clients with labels of their own: {used_bytes / series:.0f} bytes a "
        f"series (resident); by the engine's own account {engine.clients.held_bytes / series:.0f} and "
        f"{layouts_mib:.0f} MiB of layouts; goal {GOAL_SERIES_BYTES}"
    )


def own_push(number: int) -> bytes:
    """A push of 100 counters with labels that no other client has."""
    data = MetricsData()
    entry = data.resource_metrics.add()
    attribute = entry.resource.attributes.add(key="client_id")
    attribute.value.string_value = f"orders-{number}"
    scope = entry.scope_metrics.add()
    for name in range(OWN_NAMES):
        for partition in range(OWN_PARTITIONS):
            metric = scope.metrics.add(name=f"org.apache.kafka.consumer.fetch.manager.metric.{name}.total")
            metric.sum.is_monotonic = True
            metric.sum.aggregation_temporality = DELTA
            point = metric.sum.data_points.add(start_time_unix_nano=1, time_unix_nano=2, as_double=1.0)
            for key, text in (("topic", f"orders-{number}"), ("partition", str(partition))):
                point.attributes.add(key=key).value.string_value = text
    return data.SerializeToString()


def commits(folder: Path) -> None:
    """Print the time of a commit of 40 clients to a file, with and without fsync."""
    pushes = [labeled_push("java-producer", number, 2) for number in range(COMMITTED_CLIENTS)]
    for mode in ("off", "normal", "full"):
        path = folder / f"totals-{os.getpid()}-{mode}.db"
        store, engine = StateFile(path), Engine()
        store.connection.execute(f"pragma synchronous = {mode}")
        taken_ms = []
        for turn in range(COMMITS):
            for number, push in enumerate(pushes):
                offset = turn * COMMITTED_CLIENTS + number
                engine.convert(replace(push, position=Origin("topic", 0, offset)))
            began = time.perf_counter()
            store.commit(engine)
            taken_ms.append((time.perf_counter() - began) * 1e3)
        store.close()
        for file in folder.glob(f"{path.name}*"):
            file.unlink()
        goal = f"; goal {GOAL_COMMIT_MS}" if mode == "normal" else ""
        print(
            f"  commit of {COMMITTED_CLIENTS} clients, synchronous={mode}: {statistics.median(taken_ms):.2f} "
            f"ms, slowest of {COMMITS} {max(taken_ms):.2f} ms{goal}"
        )


def beside_collector(wanted: int) -> None:
    """Print the cost of the same pushes for a collector, and for the engine."""
    if (reason := temporality_collector.missing()) is not None:
        print(f"  without a collector: {reason}")
        return
    client, points = "java-producer", all_points("java-producer")
    clients = wanted // COUNTERS

    def pushes(turn: int) -> Iterator[bytes]:
        return (labeled_push(client, number, 2 + turn).payload.data for number in range(clients))

    engine = Engine(Limits(max_streams=2 * wanted, max_bytes=4 << 30))
    for turn in range(ROUNDS):
        records = (labeled_push(client, number, 2 + turn) for number in range(clients))
        spent_s = 0.0
        for record in records:
            began = time.process_time()
            engine.convert(record)
            spent_s += time.process_time() - began
    ours_us = spent_s * 1e6 / clients
    plain = temporality_collector.cost(pushes, ROUNDS, converts=False)
    theirs = temporality_collector.cost(pushes, ROUNDS, converts=True)
    counters = clients * COUNTERS
    print(f"  {clients} clients with {counters} counters, {points} points a push; us of CPU a point:")
    print(f"    engine, reading and writing included   {ours_us / points:6.2f}")
    print(f"    collector, receiving included          {theirs.cpu_us / points:6.2f}")
    print(f"    collector, deltatocumulative alone     {figure((theirs.cpu_us - plain.cpu_us) / points):>6}")
    print(
        f"    the collector's memory: {theirs.held_bytes / counters:.0f} bytes a series, "
        f"{figure((theirs.held_bytes - plain.held_bytes) / counters)} more than without the processor"
    )


def times() -> None:
    """Print the time per point for each kind of client."""
    print(f"counters only, as for OTLP; goal {GOAL_POINT_US} us a point")
    for client in CLIENTS:
        time_per_point(client, keep_gauges=False)
    print("with gauges kept")
    for client in CLIENTS:
        time_per_point(client, keep_gauges=True)


def memory(series: int) -> None:
    """Print the memory of equal clients, and of clients with series of their own."""
    print("memory")
    for part in (million_series, own_series):  # in new processes: memory that is free again would count
        process = get_context("spawn").Process(target=part, args=(series,))
        process.start()
        process.join()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=1_000_000)
    parser.add_argument("--part", action="append", choices=PARTS, help="default: all")
    arguments = parser.parse_args()
    parts = arguments.part or PARTS
    print(head("temporality"))
    if "time" in parts:
        times()
    if "memory" in parts:
        memory(arguments.series)
    if "file" in parts:
        print("a file")
        CACHE.mkdir(parents=True, exist_ok=True)
        commits(CACHE)
    if "collector" in parts:
        print("beside a collector")
        beside_collector(arguments.series)
    return 0


if __name__ == "__main__":
    sys.exit(main())
