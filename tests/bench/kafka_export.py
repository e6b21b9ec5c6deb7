"""The cost of exporting a push to a topic: records per CPU second of the plugin's forwarder, compared with a
bare confluent-kafka producer that sends the same records with the same options to the same broker.

The broker is librdkafka's mock cluster in its own process. CPU time is that of this process with all its
threads, so every figure includes librdkafka's compression and sockets. *Bare, waiting* sends a batch and
flushes it, as a forwarder must; *bare, streaming* never waits before the end.

Usage, from the folder above: ``python -m bench.kafka_export [--rounds 5] [--json]``
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from confluent_kafka import Producer

from bench.harness import UnavailableError, head, running, spread
from bench.payloads import librd6k
from odradek.plugin import (
    ClientTelemetryPayload,
    PluginConfig,
    TelemetryRecord,
)
from odradek.testing import request_context
from odradek_kafka.export_message import ExportMessage, export_message
from odradek_kafka.kafka_forwarder import KafkaForwarder
from odradek_kafka.kafka_settings import Encoding, KafkaSettings, Key, read_settings

BATCHES = (1, 10, 100)
RECORDS = {1: 400, 10: 2_000, 100: 6_000}
"""The values of one window, by batch size."""
TOPIC = "client_telemetry"
FLUSH_S = 30.0
FORWARDER, JSON, WAITING, STREAMING = (
    "odradek-kafka",
    "odradek-kafka, JSON",
    "bare, waiting",
    "bare, streaming",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    batch: int
    sender: str
    per_cpu_s: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.per_cpu_s)


def record_of(number: int, data: bytes) -> TelemetryRecord:
    request = request_context(
        correlation_id=number,
        client_id=f"client-{number % 100}",
        received_ms=1_760_000_000_000 + number,
        client_software_name="librdkafka",
        client_software_version="2.16.0",
    )
    payload = ClientTelemetryPayload(bytes([number % 100]) * 16, terminating=False, data=data)
    return TelemetryRecord(request, 1_000, payload)


def settings_of(port: int, encoding: Encoding) -> KafkaSettings:
    # The mock cluster creates topics on request and does not know CreateTopics.
    table = {"bootstrap.servers": f"127.0.0.1:{port}", "topic.create": False, "encoding": encoding.value}
    return read_settings(PluginConfig("plugins.kafka", table))


def batches_of(batch: int) -> list[list[TelemetryRecord]]:
    data = librd6k().raw
    records = [record_of(number, data) for number in range(RECORDS[batch])]
    return [records[at : at + batch] for at in range(0, len(records), batch)]


def forwarded(port: int, batch: int, encoding: Encoding = Encoding.PROTO) -> float:
    """Records per CPU second of the forwarder."""
    batches = batches_of(batch)

    async def run() -> float:
        forwarder = KafkaForwarder(settings_of(port, encoding))
        await forwarder.start()
        await forwarder.deliver(batches[0])
        began_s = time.process_time()
        for records in batches:
            await forwarder.deliver(records)
        cpu_s = time.process_time() - began_s
        await forwarder.close()
        return cpu_s

    return RECORDS[batch] / asyncio.run(run())


def bare(port: int, batch: int, wait: bool) -> float:
    """Records per CPU second of a producer; fails if a record is not acknowledged."""
    messages = [
        [export_message(record, TOPIC, Encoding.PROTO, Key.CLIENT_INSTANCE_ID) for record in records]
        for records in batches_of(batch)
    ]
    producer = Producer(dict(settings_of(port, Encoding.PROTO).options))
    acknowledged = 0

    def report(error: object, message: object) -> None:
        nonlocal acknowledged
        assert error is None, error
        acknowledged += 1

    produce(producer, messages[0], report)
    producer.flush(FLUSH_S)
    began_s = time.process_time()
    for group in messages:
        produce(producer, group, report)
        if wait:
            producer.flush(FLUSH_S)
        else:
            producer.poll(0)
    producer.flush(FLUSH_S)
    cpu_s = time.process_time() - began_s
    assert acknowledged == RECORDS[batch] + batch
    return RECORDS[batch] / cpu_s


def produce(producer: Producer, messages: Sequence[ExportMessage], report: Callable[..., None]) -> None:
    for message in messages:
        producer.produce(
            message.topic, message.value, message.key, headers=message.headers, on_delivery=report
        )


SENDERS: dict[str, Callable[[int, int], float]] = {
    FORWARDER: forwarded,
    JSON: partial(forwarded, encoding=Encoding.JSON),
    WAITING: partial(bare, wait=True),
    STREAMING: partial(bare, wait=False),
}


def measured(port: int, rounds: int) -> list[Row]:
    """All rows; the rounds of all senders are interleaved."""
    rows = [Row(batch, sender, []) for batch in BATCHES for sender in SENDERS]
    for _round in range(rounds):
        for row in rows:
            row.per_cpu_s.append(SENDERS[row.sender](port, row.batch))
    return rows


def table(rows: Sequence[Row]) -> str:
    bases = {row.batch: row.median for row in rows if row.sender == WAITING}
    lines = [f"{'batch':>5}  {'sender':<20}  {'records per CPU second':>34}  part of bare, waiting"]
    for row in rows:
        figure = spread(row.per_cpu_s, 0)
        lines.append(f"{row.batch:>5}  {row.sender:<20}  {figure:>34}  {row.median / bases[row.batch]:.2f}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="every window, for a comparison")
    options = parser.parse_args()
    print(head("kafka_export"), file=sys.stderr)
    try:
        with running([sys.executable, "-m", "bench.mock_broker"]) as broker:
            rows = measured(broker.port, options.rounds)
    except UnavailableError as reason:
        sys.exit(str(reason))
    print(
        json.dumps([[row.batch, row.sender, row.per_cpu_s] for row in rows]) if options.json else table(rows)
    )


if __name__ == "__main__":
    main()
