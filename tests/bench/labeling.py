"""Labeling a payload: odradek's single pass over the bytes compared with a loop over protobuf attributes.

Both get the decompressed payload and the same eight labels, and both return bytes that parse to the same
metrics with the same labels; the bench checks that before it measures.

Usage, from the folder above: ``python -m bench.labeling [--rounds 5]``
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from bench import attribute_loop
from bench.harness import head, spread
from bench.payloads import PAYLOADS
from odradek.plugin.labeled_payload import PayloadLimits
from odradek.plugin.labels import encode_labels
from odradek.telemetry.payload import label

GOAL = 10.0
GOAL_PAYLOAD = "java25k"
WINDOW_S = 0.2
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


def contestants(raw: bytes) -> dict[str, Labeled]:
    return {
        "attribute loop": partial(attribute_loop.label, raw, LABELS),
        "odradek": partial(label, raw, encode_labels(LABELS), PayloadLimits()),
    }


def seen(data: bytes) -> Seen:
    """The labels of the Resources, which must all be the same, and all metrics in order."""
    entries = MetricsData.FromString(data).resource_metrics
    labels = [{a.key: a.value.string_value for a in entry.resource.attributes} for entry in entries]
    assert all(each == labels[0] for each in labels)
    metrics = [m.SerializeToString() for e in entries for scope in e.scope_metrics for m in scope.metrics]
    return labels[0], metrics


def cpu_us(work: Labeled) -> float:
    """CPU microseconds of one call, over a window of calls."""
    calls = 0
    begin = time.process_time()
    while (spent := time.process_time() - begin) < WINDOW_S:
        work()
        calls += 1
    return spent / calls * 1e6


def compare(name: str, rounds: int) -> None:
    """Alternate the contestants; the ratio is one of medians."""
    raw = PAYLOADS[name]().raw
    works = contestants(raw)
    assert len({repr(seen(work())) for work in works.values()}) == 1, "the contestants disagree"
    spent: dict[str, list[float]] = {who: [] for who in works}
    for _ in range(rounds):
        for who, work in works.items():
            spent[who].append(cpu_us(work))
    print(f"\n{name}: {len(raw)} bytes")
    for who, work in works.items():
        print(f"  {who:<16}{spread(spent[who]):>24} µs, {len(work()):>7} bytes out")
    ratio = statistics.median(spent["attribute loop"]) / statistics.median(spent["odradek"])
    verdict = ""
    if name == GOAL_PAYLOAD:
        verdict = f" ({'reached' if ratio >= GOAL else 'MISSED'}: goal {GOAL})"
    print(f"  {ratio:.1f} times faster{verdict}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    print(head("labeling"), file=sys.stderr)
    for name in PAYLOADS:
        compare(name, rounds)


if __name__ == "__main__":
    main()
