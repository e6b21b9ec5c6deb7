"""The engine of the console with many clients: memory, time of a push, of a full list, of one client.

5000 clients with 200 series each push once a minute for some hours; the times after the first pushes count.
Fails above the goals.

Usage, from the folder above: ``python -m bench.console [--clients 5000] [--series 200] [--pushes 60]``
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, MetricsData

from bench.harness import head
from odradek.plugin import (
    ClientTelemetryPayload,
    ConnectionContext,
    Origin,
    RequestContext,
    TelemetryRecord,
)
from odradek.plugin.client_metrics import client_metrics
from odradek.plugin.troubles import JAVA
from odradek_console.engine.fleet import Fleet
from odradek_console.figures import figures_of
from odradek_console.pictures import client_detail, client_row

GOAL_MIB = 1024
GOAL_LIST_S = 0.2
GOAL_ONE_S = 0.2
EPOCH_S = 1_760_000_000
INTERVAL_S = 60
NAMES = 120


def template(series: int) -> MetricsData:
    """A push of a Java producer with this many series, most of them with a label."""
    data = MetricsData()
    entry = data.resource_metrics.add()
    label = entry.resource.attributes.add()
    label.key, label.value.string_value = "client_instance_id", "-" * 22
    metrics = entry.scope_metrics.add().metrics
    known = [each for each in client_metrics().values() if ".producer." in each.name][:NAMES]
    for number in range(series):
        metric = metrics.add(name=known[number % len(known)].name)
        if known[number % len(known)].kind == "sum":
            metric.sum.is_monotonic, metric.sum.aggregation_temporality = (
                True,
                AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA,
            )
            point = metric.sum.data_points.add()
        else:
            point = metric.gauge.data_points.add()
        if number >= len(known):
            attribute = point.attributes.add()
            attribute.key, attribute.value.string_value = "topic", f"orders-{number // len(known)}"
    return data


def push(data: MetricsData, client: int, turn: int, offset: int) -> TelemetryRecord:
    """The push of a client in a turn."""
    at_s = EPOCH_S + turn * INTERVAL_S + client * INTERVAL_S // 100_000
    entry = data.resource_metrics[0]
    entry.resource.attributes[0].value.string_value = f"{client:022d}"
    for metric in entry.scope_metrics[0].metrics:
        points = metric.sum.data_points or metric.gauge.data_points
        points[0].start_time_unix_nano = (at_s - INTERVAL_S) * 10**9
        points[0].time_unix_nano = at_s * 10**9
        points[0].as_double = random.random() * 100
    connection = ConnectionContext(
        connection_id=f"c{client}",
        listener_name="PLAINTEXT",
        security_protocol="PLAINTEXT",
        client_address="127.0.0.1",
        client_port=40_000,
        node_id=1,
        client_software_name=JAVA,
        client_software_version="4.3.0",
    )
    request = RequestContext(
        connection=connection,
        api_key=72,
        api_version=0,
        correlation_id=0,
        client_id=f"orders-{client}",
        received_ms=at_s * 1000,
    )
    payload = ClientTelemetryPayload(client.to_bytes(16, "big"), False, data.SerializeToString())
    record = TelemetryRecord(request, INTERVAL_S * 1000, payload)
    record.position = Origin("t", 0, offset)
    return record


def memory_mib() -> float:
    """Resident memory of this process."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) / 1024


def timed(act: Callable[[], object]) -> float:
    """The seconds that a call takes."""
    began_s = time.perf_counter()
    act()
    return time.perf_counter() - began_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=5_000)
    parser.add_argument("--series", type=int, default=200)
    parser.add_argument("--pushes", type=int, default=60)
    options = parser.parse_args()
    print(head("console"))
    before_mib, fleet, data, spent_s, offset = memory_mib(), Fleet(), template(options.series), 0.0, 0
    for turn in range(options.pushes):
        for client in range(options.clients):
            record = push(data, client, turn, offset)
            offset += 1
            began_s = time.process_time()
            fleet.add(record)
            spent_s += (time.process_time() - began_s) * (turn > 0)
    now_ms = (EPOCH_S + options.pushes * INTERVAL_S) * 1000
    clients = list(fleet.clients.values())
    held_mib = fleet.held_bytes / 2**20

    def listed() -> None:
        for each in clients:
            client_row(fleet, each, now_ms)

    first_s, again_s = timed(listed), timed(listed)
    figures_s = timed(lambda: [figures_of(fleet.series(each)) for each in clients])
    one_s = timed(lambda: client_detail(fleet, clients[0], now_ms))
    used_mib = memory_mib() - before_mib
    print(f"{options.clients} clients x {options.series} series, {options.pushes} pushes each")
    print(
        f"  memory          {used_mib:8.0f} MiB, counted {held_mib:.0f} MiB, histories at {fleet.scale:.2f}"
    )
    print(f"  a push          {spent_s / max(1, offset - options.clients) * 1e6:8.0f} µs of CPU")
    print(f"  list, findings  {first_s * 1e3:8.0f} ms")
    print(f"  list again      {again_s * 1e3:8.0f} ms")
    print(f"  figures of top  {figures_s * 1e3:8.0f} ms")
    print(f"  one in full     {one_s * 1e3:8.0f} ms")
    if used_mib > GOAL_MIB or again_s > GOAL_LIST_S or one_s > GOAL_ONE_S:
        sys.exit("above the goals")


if __name__ == "__main__":
    main()
