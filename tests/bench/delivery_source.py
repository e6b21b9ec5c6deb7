"""Deliver labeled pushes of forty clients through odradek-otlp, and print the cost to this process.

Usage: ``python -m bench.delivery_source ENDPOINT PROTOCOL BATCH PAYLOAD SECONDS``; prints the number of
payloads and CPU microseconds per payload, all threads included.
"""

from __future__ import annotations

import asyncio
import sys
import time

from bench.payloads import PAYLOADS
from odradek.otlp.labeled_payload import PayloadLimits
from odradek.otlp.labels import encode_labels
from odradek.plugin import (
    ClientTelemetryPayload,
    PluginConfig,
    TelemetryRecord,
)
from odradek.telemetry.payload import label
from odradek.testing import request_context
from odradek_otlp import odradek_forwarder
from odradek_otlp.otlp_forwarder import OtlpForwarder

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
CLIENTS = 40
WARM_UP = 20


def records(payload: str) -> list[TelemetryRecord]:
    """One push of each client, as the host gives it to a forwarder."""
    raw = PAYLOADS[payload]().raw
    request = request_context(client_id=None)
    found = []
    for number in range(CLIENTS):
        labels = encode_labels(LABELS | {"client_id": f"orders-producer-{number}"})
        data = label(raw, labels, PayloadLimits())
        pushed = ClientTelemetryPayload(number.to_bytes(16), terminating=False, data=data)
        found.append(TelemetryRecord(request, 1_000, pushed))
    return found


async def delivered(
    endpoint: str, protocol: str, size: int, payload: str, seconds: float
) -> tuple[int, float]:
    """The number of payloads, and CPU seconds."""
    forwarder = odradek_forwarder(
        PluginConfig("plugins.otlp", {"endpoint": endpoint, "protocol": protocol, "requests.in.flight": 1})
    )
    assert isinstance(forwarder, OtlpForwarder)
    pushes = records(payload)
    batches = [pushes[start : start + size] for start in range(0, CLIENTS, size)]
    await forwarder.start()
    for number in range(WARM_UP):
        await forwarder.deliver(batches[number % len(batches)])
    count = 0
    begin_cpu_s, end_s = time.process_time(), time.monotonic() + seconds
    while time.monotonic() < end_s:
        for batch in batches:
            await forwarder.deliver(batch)
            count += len(batch)
    spent_s = time.process_time() - begin_cpu_s
    await forwarder.close()
    return count, spent_s


def main() -> None:
    endpoint, protocol, size, payload, seconds = sys.argv[1:]
    count, spent_s = asyncio.run(delivered(endpoint, protocol, int(size), payload, float(seconds)))
    print(count, spent_s / count * 1e6)


if __name__ == "__main__":
    main()
