"""Delta to cumulative: time per point and memory per series of the engine, for a fleet of equal clients.

Each client sends the recorded pushes of a Java producer or consumer, labeled with a client id and a port of
its own. The engine adds and rewrites them, then its state is taken as bytes, and read again.

Usage, from the folder above: ``python -m bench.temporality [--series 1000000]``
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from bench.harness import head
from odradek.plugin import ClientTelemetryPayload, Origin, TelemetryRecord
from odradek.plugin.labeled_payload import labeler
from odradek.temporality import Engine, Limits
from odradek.testing.pushes import recorded

GOAL_POINT_US = 3.5
GOAL_SERIES_BYTES = 120
GOAL_COMMIT_MS = 1.0
COMMITTED_CLIENTS = 40
PUSHES = 200
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
    per_client = 41
    gc.collect()
    before = resident_bytes()
    began = time.process_time()
    clients = wanted // per_client
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
    for number in range(COMMITTED_CLIENTS):
        payload = replace(pushes[1].payload, client_instance_id=number.to_bytes(16, "big"))
        position = Origin("topic", 0, clients + number)
        engine.convert(replace(pushes[1], payload=payload, position=position))
    began = time.perf_counter()
    engine.take_changes()
    taken_ms = (time.perf_counter() - began) * 1e3
    print(
        f"  changes of {COMMITTED_CLIENTS} clients in {taken_ms:.2f} ms; goal of a commit {GOAL_COMMIT_MS} ms"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=1_000_000)
    arguments = parser.parse_args()
    print(head("temporality"))
    print(f"counters only, as for OTLP; goal {GOAL_POINT_US} us a point")
    for client in CLIENTS:
        time_per_point(client, keep_gauges=False)
    print("with gauges kept")
    for client in CLIENTS:
        time_per_point(client, keep_gauges=True)
    million_series(arguments.series)
    return 0


if __name__ == "__main__":
    sys.exit(main())
