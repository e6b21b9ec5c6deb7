"""Remote write: CPU per 100 000 series and bytes on the wire, in requests of 2000 samples.

Clients with the series of a Java producer push twice; the second push of all is measured. *odradek* is a
process with the forwarder of odradek-prometheus: deltas to totals, commit, samples, requests. *collector* is
an OpenTelemetry collector, compiled without optimization as contrib/otelcol does, that gets the same pushes
as totals over OTLP/HTTP, 40 in a request, and sends remote write 1.0, its exporter's default. Both send to a
receiver that reads and answers, in a process of its own. Series of odradek have eight labels of the client,
those of the collector two.

Usage, from the folder above: ``python -m bench.remote_write [--series 100000]``
"""

from __future__ import annotations

import argparse
import asyncio
import socketserver
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Thread
from typing import Any

import snappy
from contrib.go_program import UnavailableError as NotBuilt
from contrib.otelcol.collector import COLLECTOR

from bench.harness import cpu_ns, head, running
from bench.temporality import labeled_push
from bench.temporality_collector import collector
from odradek.plugin import Origin, PluginConfig, TelemetryRecord
from odradek.temporality import Engine, Limits
from odradek_prometheus import odradek_forwarder
from odradek_prometheus.remote_write.remote_write_forwarder import RemoteWriteForwarder
from support.remote_write_messages import V1, V2

SERIES_OF_A_CLIENT = 108
"""Of the recorded Java producer. Instead of gauges that are NaN, odradek sends facts about the client."""
BATCH = 500
"""Records that the host gives to a forwarder at a time."""
RECORDS_OF_A_REQUEST = 40
CONFIG = """
receivers:
  otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}
exporters:
  prometheus_remote_write:
    endpoint: {url}
    resource_to_telemetry_conversion: {{enabled: true}}
    max_batch_size_bytes: 3000000
service:
  telemetry: {{metrics: {{level: none}}, logs: {{level: error}}}}
  pipelines: {{metrics: {{receivers: [otlp], exporters: [prometheus_remote_write]}}}}
"""


class Sink(BaseHTTPRequestHandler):
    """Reads requests and accepts them; a GET returns the sums of samples, raw bytes and received bytes."""

    protocol_version = "HTTP/1.1"
    samples = raw_bytes = sent_bytes = 0

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        raw = snappy.uncompress(body)
        is_v2 = "v2" in self.headers["content-type"]
        request: Any = (V2["Request"] if is_v2 else V1["WriteRequest"]).FromString(raw)
        count = sum([len(each.samples) for each in request.timeseries])
        Sink.samples += count
        Sink.raw_bytes += len(raw)
        Sink.sent_bytes += len(body)
        self.send_response(204)
        if is_v2:
            self.send_header("X-Prometheus-Remote-Write-Samples-Written", str(count))
        self.end_headers()

    def do_GET(self) -> None:
        text = f"{Sink.samples} {Sink.raw_bytes} {Sink.sent_bytes}".encode()
        self.send_response(200)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *arguments: object) -> None:
        """Write no access log."""


def sums(url: str) -> tuple[int, int, int]:
    """The sums of the sink: samples, raw bytes, compressed bytes."""
    with urllib.request.urlopen(url, timeout=10) as response:
        samples, raw_bytes, sent_bytes = map(int, response.read().split())
    return samples, raw_bytes, sent_bytes


def pushes(clients: int, round_number: int) -> list[TelemetryRecord]:
    now_ms = int(time.time() * 1000)
    found = []
    for number in range(clients):
        record = labeled_push("java-producer", number, 2 + round_number)
        context = replace(record.context, received_ms=now_ms + round_number)
        position = Origin("topic", 0, round_number * clients + number)
        found.append(replace(record, context=context, position=position))
    return found


def report(name: str, cpu_s: float, before: tuple[int, int, int], after: tuple[int, int, int]) -> float:
    """Print a row; return the CPU seconds per 100 000 samples."""
    samples, raw_bytes, sent_bytes = [late - early for early, late in zip(before, after, strict=True)]
    per = 100_000 / samples
    print(
        f"  {name:28} {cpu_s * per:6.2f} s CPU, {raw_bytes * per / 1e6:6.2f} MB raw, "
        f"{sent_bytes * per / 1e6:6.2f} MB sent   ({samples} samples)"
    )
    return cpu_s * per


async def ours(url: str, folder: Path, protocol: str, clients: int) -> float:
    """CPU per 100 000 samples of this process, whose forwarder sends to the sink."""
    table = {
        "remote_write.url": f"{url}/write",
        "remote_write.totals.file": str(folder / f"totals-{protocol}.db"),
        "remote_write.protocol": protocol,
        "remote_write.totals.max.series": 10_000_000,
        "remote_write.totals.max.bytes": 4 << 30,
    }
    found = odradek_forwarder(PluginConfig("plugins.prometheus", table))
    assert isinstance(found, dict)
    forwarder = found["remote_write"]
    assert isinstance(forwarder, RemoteWriteForwarder)
    await forwarder.start()
    cpu_s = 0.0
    for round_number in range(2):
        records = pushes(clients, round_number)
        before, began = sums(url), time.process_time()
        for first in range(0, len(records), BATCH):
            await forwarder.deliver(records[first : first + BATCH])
        cpu_s = time.process_time() - began
    after = sums(url)
    await forwarder.close()
    return report(f"odradek, {protocol}", cpu_s, before, after)


def theirs(program: Path, url: str, clients: int) -> float:
    """CPU per 100 000 samples of a collector."""
    engine = Engine(Limits(max_streams=10_000_000, max_bytes=4 << 30))
    with collector(program, CONFIG, url=f"{url}/write") as (process, port):
        endpoint = f"http://127.0.0.1:{port}/v1/metrics"
        for round_number in range(2):
            totals = [engine.convert(record) for record in pushes(clients, round_number)]
            before, began_ns = sums(url), cpu_ns(process.pid)
            for first in range(0, len(totals), RECORDS_OF_A_REQUEST):
                post(endpoint, b"".join(totals[first : first + RECORDS_OF_A_REQUEST]))
            settled(url)
            spent_s = (cpu_ns(process.pid) - began_ns) / 1e9
        return report("collector, 1.0", spent_s, before, sums(url))


def post(endpoint: str, body: bytes) -> None:
    headers = {"content-type": "application/x-protobuf"}
    urllib.request.urlopen(urllib.request.Request(endpoint, body, headers), timeout=30).close()


def settled(url: str) -> None:
    """Wait until the sink has received nothing for a while."""
    before = -1
    while (samples := sums(url)[0]) != before:
        before = samples
        time.sleep(1.0)


def serve() -> int:
    """Be the sink until standard input closes."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Sink) as server:
        server.daemon_threads = True
        print(f"ready port={server.server_address[1]}", flush=True)
        Thread(target=server.serve_forever, daemon=True).start()
        sys.stdin.read()
        server.shutdown()
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=100_000)
    parser.add_argument("--sink", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.sink:
        return serve()
    print(head("remote write"))
    clients = -(-chosen.series // SERIES_OF_A_CLIENT)
    with (
        tempfile.TemporaryDirectory() as folder,
        running([sys.executable, "-m", "bench.remote_write", "--sink"]) as sink,
    ):
        url, path = f"http://127.0.0.1:{sink.port}", Path(folder)
        ours_s = [asyncio.run(ours(url, path, protocol, clients)) for protocol in ("2.0", "1.0")]
        try:
            theirs_s = theirs(COLLECTOR.path(), url, clients)
        except NotBuilt as reason:
            print(f"without a collector: {reason}", file=sys.stderr)
            return 0
        print(f"  CPU of odradek with 1.0 / collector: {ours_s[1] / theirs_s:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
