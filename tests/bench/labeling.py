"""Labeling a payload: odradek's pass over the bytes, compared with a plain copy and check and with a loop
over protobuf attributes.

All get the decompressed payload. *copy and check* copies its bytes and parses them with protobuf's C parser,
as a host without labels does. The others set the same eight labels, and return bytes that parse to the same
metrics with the same labels; the bench checks that before it measures. A push of librdkafka, or a small one,
is usually as long as the one before it, whose layout odradek remembers; *odradek, another size* has nothing
to remember. The exit status is 1 if labeling costs more than the goal.

Usage, from the folder above: ``python -m bench.labeling [--rounds 5] [--recorded]``
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from bench import attribute_loop
from bench.comparison import Comparison, Goal, compared
from bench.harness import head, spread
from bench.payloads import PAYLOADS
from odradek.otlp.labeled_payload import PayloadLimits
from odradek.otlp.labels import NO_LAYOUT, EncodedLabels, encode_labels
from odradek.telemetry.payload import label
from odradek.testing.pushes import recorded, recorded_clients

PLAIN, LOOP, USUAL = "copy and check", "attribute loop", "odradek"
OURS = (USUAL, "odradek, another size")
GOAL = 1.5
"""Of labeling, in times of the plain copy and check."""
WINDOW_S = 0.2
CALLS = 20
LABELS = {
    "client_instance_id": "AAECAwQFBgcICQoLDA0ODw",
    "client_id": "orders-producer-7",
    "client_software_name": "apache-kafka-java",
    "client_software_version": "4.3.0",
    "client_source_address": "10.20.30.40",
    "client_source_port": "53211",
    "principal": "User:orders",
    "broker_node_id": "1",
}

Labeled = Callable[[], bytes]
Seen = tuple[dict[str, str], list[bytes]]


def copied(received: memoryview) -> bytes:
    """The payload as it comes out of a frame, checked."""
    data = bytes(received)
    MetricsData.FromString(data)
    return data


def labeled_after_another(raw: bytes, labels: EncodedLabels) -> bytes:
    """Label a payload that is not laid out like the last one."""
    labels.layout = NO_LAYOUT
    return label(raw, labels, PayloadLimits())


def contestants(raw: bytes, labels: EncodedLabels) -> dict[str, Labeled]:
    return {
        PLAIN: partial(copied, memoryview(raw)),
        USUAL: partial(label, raw, labels, PayloadLimits()),
        OURS[1]: partial(labeled_after_another, raw, encode_labels(LABELS)),
        LOOP: partial(attribute_loop.label, raw, LABELS),
    }


def seen(data: bytes) -> Seen:
    """The labels of the Resources, which must all be the same, and all metrics in order."""
    entries = MetricsData.FromString(data).resource_metrics
    labels = [{a.key: a.value.string_value for a in entry.resource.attributes} for entry in entries]
    assert all(each == labels[0] for each in labels)
    metrics = [m.SerializeToString() for e in entries for scope in e.scope_metrics for m in scope.metrics]
    return labels[0], metrics


def cpu_us(works: Sequence[Labeled]) -> float:
    """CPU microseconds of one call, over a window of calls of each in turn."""
    calls = 0
    begin = time.process_time()
    while (spent := time.process_time() - begin) < WINDOW_S:
        # Reading the clock costs as much as a small payload.
        for _ in range(CALLS):
            for work in works:
                work()
        calls += CALLS * len(works)
    return spent / calls * 1e6


def compare(name: str, payloads: Sequence[bytes], rounds: int) -> dict[str, float]:
    """Alternate the contestants, which get the payloads of one client in turn; return their medians."""
    labels = encode_labels(LABELS)
    spent: dict[str, list[float]] = {}
    sizes: dict[str, int] = {}
    works = [contestants(raw, labels) for raw in payloads]
    for each in works:
        assert len({repr(seen(work())) for who, work in each.items() if who != PLAIN}) == 1, "they disagree"
    for who in works[0]:
        sizes[who] = sum(len(each[who]()) for each in works) // len(works)
    for _ in range(rounds):
        for who in works[0]:
            spent.setdefault(who, []).append(cpu_us([each[who] for each in works]))
    medians = {who: statistics.median(values) for who, values in spent.items()}
    print(f"\n{name}: {sum(map(len, payloads)) // len(payloads)} bytes")
    for who, values in spent.items():
        times = medians[who] / medians[PLAIN]
        print(f"  {who:<24}{spread(values, 2):>24} µs{times:>8.2f} times{sizes[who]:>9} bytes out")
    print(f"  {medians[LOOP] / medians[USUAL]:.1f} times faster than the attribute loop")
    return medians


def comparisons(rounds: int) -> Iterator[Comparison]:
    """The lines of the table."""
    for name, make in PAYLOADS.items():
        medians = compare(name, [make().raw], rounds)
        yield from compared(f"labeling, {name}", "µs", medians, OURS, [Goal(peer=PLAIN, most=GOAL)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--recorded", action="store_true", help="pushes of real clients, too; without a goal")
    arguments = parser.parse_args()
    print(head("labeling"), file=sys.stderr)
    lines = list(comparisons(arguments.rounds))
    for client in recorded_clients() if arguments.recorded else ():
        compare(f"recorded {client}", [push.data for push in recorded(client)[1:-1]], arguments.rounds)
    print()
    for line in lines:
        print(line)
    return 1 if any(line.is_open for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
