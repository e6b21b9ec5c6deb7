"""The decoder against protobuf, in one run: ``python plugins/spark/bench/decode.py``.

Peers, on the same payloads: protobuf's C parser alone (the minimum cost of everything built on it), and a
straightforward decoder on top of it (one list of values per column, converted to Arrow). CPU time, best of
five.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, MetricsData

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from spark_payloads import RECEIVED_MS, TIME_NS, topic_record

from odradek_tables.decoder.decode import Decoder
from odradek_tables.decoder.topic_record import TopicRecord

PAYLOADS = 1000
CLIENTS = 100
TIMES = 5
LAYOUTS = 68
"""Number of layouts, each of which a cold run has to learn."""
SUBJECTS = ("batch.size", "request.latency", "record.send", "bufferpool.wait.time", "outgoing.byte")
PREFIX = "org.apache.kafka.producer."


def java_like(source: random.Random, points: int = 150) -> MetricsData:
    """A payload with one metric and the same resource in each ResourceMetrics."""
    data = MetricsData()
    for index in range(points):
        group = data.resource_metrics.add()
        for key in ("client_rack", "team", "principal"):
            group.resource.attributes.add(key=key).value.string_value = f"{key}-of-a-service"
        add_metric(group.scope_metrics.add().metrics.add(), index, source)
    return data


def librdkafka_like(source: random.Random, points: int = 99) -> MetricsData:
    """A payload with all metrics in one ResourceMetrics."""
    data = MetricsData()
    scoped = data.resource_metrics.add().scope_metrics.add()
    scoped.scope.name = "rdkafka#producer-1"
    for index in range(points):
        add_metric(scoped.metrics.add(), index, source)
    return data


def add_metric(metric: Any, index: int, source: random.Random) -> None:
    metric.name = f"{PREFIX}{SUBJECTS[index % len(SUBJECTS)]}.{index}"
    points = metric.gauge.data_points
    if index % 2:
        metric.sum.aggregation_temporality = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
        metric.sum.is_monotonic = True
        points = metric.sum.data_points
    point = points.add(time_unix_nano=TIME_NS + source.randrange(10**9), start_time_unix_nano=TIME_NS)
    point.as_double = source.random()
    point.attributes.add(key="node_id").value.string_value = str(index % 3)


def records(
    make: Callable[[random.Random, int], MetricsData], layouts: int, points: int
) -> list[TopicRecord]:
    """Pushes of many clients in several layouts."""
    source = random.Random(1)
    return [
        topic_record(
            make(source, points - offset % layouts).SerializeToString(),
            offset,
            client=offset % CLIENTS,
            received_ms=RECEIVED_MS + offset,
        )
        for offset in range(PAYLOADS)
    ]


def parse_only(found: Sequence[TopicRecord]) -> None:
    for record in found:
        MetricsData.FromString(record.value or b"")


def by_lists(found: Sequence[TopicRecord]) -> pa.RecordBatch:
    """A straightforward decoder: 16 columns of plain text."""
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    add = [columns[name].append for name in COLUMNS]
    for record in found:
        client = dict(record.headers)
        identity = [record.key, client["client_id"], client["principal"], record.partition, record.offset]
        for group in MetricsData.FromString(record.value or b"").resource_metrics:
            resource = json.dumps({each.key: each.value.string_value for each in group.resource.attributes})
            for scoped in group.scope_metrics:
                for metric in scoped.metrics:
                    which = metric.WhichOneof("data")
                    data = metric.gauge if which == "gauge" else metric.sum
                    for point in data.data_points:
                        attributes = {each.key: each.value.string_value for each in point.attributes}
                        values = [
                            *identity,
                            metric.name,
                            metric.unit,
                            which,
                            which == "sum" and metric.sum.is_monotonic,
                            json.dumps(attributes, sort_keys=True),
                            resource,
                            scoped.scope.name,
                            point.time_unix_nano,
                            point.start_time_unix_nano,
                            point.as_double,
                            attributes.get("node_id"),
                        ]
                        for append, value in zip(add, values, strict=True):
                            append(value)
    return pa.RecordBatch.from_pydict(columns)


COLUMNS = (
    *("key", "client_id", "principal", "partition", "offset", "name", "unit", "kind", "monotonic"),
    *("attrs", "resource", "scope", "time", "start", "value", "node_id"),
)


def cpu_s(*actions: Callable[[], object]) -> list[float]:
    """The shortest CPU time of each action. They take turns, so that other load affects all of them."""
    best = [float("inf")] * len(actions)
    for _ in range(TIMES):
        for index, action in enumerate(actions):
            before = time.process_time()
            action()
            best[index] = min(best[index], time.process_time() - before)
    return best


def main() -> None:
    print(f"{PAYLOADS} payloads of {CLIENTS} clients; CPU time of one core, best of {TIMES}\n")
    print(
        f"{'':16}{'kB':>6}{'points':>8}{'parse':>12}{'lists':>12}{'cold':>12}{'warm':>12}{'M points/s':>12}"
    )
    ratios = {}
    for name, make, points in (("Java-like", java_like, 175), ("librdkafka-like", librdkafka_like, 99)):
        many, one = records(make, LAYOUTS, points), records(make, 1, points)
        decoder = Decoder()
        rows = decoder.decode(one).points.num_rows
        cold_rows = Decoder().decode(many).points.num_rows
        ways = (partial(each, one) for each in (parse_only, by_lists, decoder.decode))
        parse, lists, warm, cold = cpu_s(*ways, lambda: Decoder().decode(many))  # noqa: B023
        cold *= rows / cold_rows
        print(
            f"{name:16}{len(one[0].value or b'') / 1000:6.1f}{rows / PAYLOADS:8.0f}"
            + "".join(f"{PAYLOADS / each:10.0f}/s" for each in (parse, lists, cold, warm))
            + f"{rows / warm / 1e6:12.2f}"
        )
        ratios[name] = parse / warm, lists / warm, lists / cold
    print()
    for name, (to_parse, to_lists, cold_to_lists) in ratios.items():
        goal = " (goal: at least 1)" if name == "Java-like" else ""
        print(
            f"{name}: warm {to_parse:.2f}x parse{goal}, {to_lists:.0f}x lists (goal: at least 20); "
            f"cold {cold_to_lists:.1f}x lists (goal: at least 6)"
        )


if __name__ == "__main__":
    main()
