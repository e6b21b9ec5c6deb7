#!/usr/bin/env python3
"""Record what real clients push, decompressed and without labels, into ``tests/conformance/golden/pushes``.

    python contrib/capture/pushes.py

Each file is one push: ``<client>_<number>.otlp``, a serialized MetricsData. Wants confluent-kafka, and Java
with Maven for the Java client (``contrib/java``).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from odradek.plugin import ClientTelemetryPayload, RequestContext  # noqa: E402
from support.hosts import EVERYTHING, running_host  # noqa: E402

GOLDEN = ROOT / "tests" / "conformance" / "golden" / "pushes"
KEPT = 2
"""Pushes of each client: the first says little yet."""
SECONDS = 4


class Recorder:
    """A receiver that sorts pushes by client id."""

    def __init__(self) -> None:
        self.pushes: dict[str, list[bytes]] = {}

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        self.pushes.setdefault(context.client_id or "unnamed", []).append(payload.data)


def librdkafka(bootstrap: str) -> None:
    """A producer and a consumer."""
    client = {"bootstrap.servers": bootstrap}
    producer = Producer(client | {"client.id": "librdkafka-producer"})
    consumer = Consumer(client | {"client.id": "librdkafka-consumer", "group.id": "readers"})
    consumer.subscribe(["recorded"])
    end_s = time.monotonic() + SECONDS
    while time.monotonic() < end_s:
        producer.produce("recorded", b"value")
        producer.poll(0)
        consumer.poll(0.05)
    producer.flush(5)
    consumer.close()
    producer.close()


def java(bootstrap: str) -> None:
    """A producer."""
    classpath = subprocess.run(
        [sys.executable, ROOT / "contrib" / "java" / "classpath.py"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    main_class = ["odradek.TelemetryProducer", bootstrap, "recorded", str(SECONDS), "java-producer"]
    subprocess.run(["java", "-Xmx256m", "-cp", classpath, *main_class], check=True)


def main() -> None:
    recorder = Recorder()
    overrides = (*EVERYTHING, "subscriptions.all.interval.ms=1000", "plugins.enrich.enabled=false")
    with (
        tempfile.TemporaryDirectory() as folder,
        running_host(
            Path(folder) / "data",
            *overrides,
            before_start=lambda host: host.receivers.add_receiver("recorder", recorder),
        ) as host,
    ):
        librdkafka(host.bootstrap)
        java(host.bootstrap)
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for client, pushes in sorted(recorder.pushes.items()):
        for number, data in enumerate(pushes[1 : 1 + KEPT], start=1):
            (GOLDEN / f"{client}_{number}.otlp").write_bytes(data)
            print(f"{client}_{number}.otlp: {len(data)} bytes")


if __name__ == "__main__":
    main()
