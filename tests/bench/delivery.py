"""Forwarding over OTLP: CPU per push for batches of 1, 10 and 40, over HTTP and gRPC, compared with a
collector.

The figure of *odradek* is the CPU time of a process that has labeled pushes in memory and hands them to the
plugin's forwarder, one request at a time. The *collector* gets the same requests from that process over the
same protocol and forwards them with its own exporter, without queue and batching: its figure is its own CPU
time, receiving included. Both send to an endpoint that does not parse them.

Usage, from the folder above: ``python -m bench.delivery [--rounds 3] [--seconds 1.5] [--payload java25k]``
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from contrib import go_program
from contrib.capture.ports import free_ports
from contrib.otelcol.collector import COLLECTOR

from bench.comparison import Comparison, Goal, compared
from bench.harness import UnavailableError, cores, cpu_ns, head, running, skip, spread
from integration.collector.conftest import wait_until_listening

BATCHES = (1, 10, 40)
UNARY = "batches of 1 over gRPC"
GOALS = (Goal(peer="collector", most=1), Goal(peer=UNARY, most=0.1))
DELIVERED = ("java25k", "librd6k")
SECONDS = 1.5
PROTOCOLS = {"http": "http/protobuf", "grpc": "grpc"}
CONFIG = """
receivers:
  otlp:
    protocols:
      grpc:
        endpoint: 127.0.0.1:{grpc}
        max_recv_msg_size_mib: 64
      http:
        endpoint: 127.0.0.1:{http}
exporters:
  otlp_{kind}:
    endpoint: {sink}
    compression: none
    sending_queue:
      enabled: false
    tls:
      insecure: true
service:
  telemetry:
    metrics:
      level: none
  pipelines:
    metrics:
      receivers: [otlp]
      exporters: [otlp_{kind}]
"""

Row = tuple[str, str, int]
"""Sender, protocol, batch size."""


@dataclass
class Report:
    """CPU microseconds per push of each row, one value per round."""

    rows: dict[Row, list[float]] = field(default_factory=dict)

    def add(self, row: Row, value_us: float) -> None:
        self.rows.setdefault(row, []).append(value_us)

    def median(self, row: Row) -> float:
        return statistics.median(self.rows[row])


def source(endpoint: str, protocol: str, batch: int, payload: str, seconds: float) -> tuple[int, float]:
    """Run a source on the second core; return delivered pushes and CPU microseconds per push."""
    arguments = [endpoint, PROTOCOLS[protocol], str(batch), payload, str(seconds)]
    done = subprocess.run(
        [sys.executable, "-m", "bench.delivery_source", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise UnavailableError(done.stderr.strip().splitlines()[-1])
    count, cost_us = done.stdout.split()
    return int(count), float(cost_us)


@contextmanager
def collector(program: Path, protocol: str, sink_port: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A collector between source and sink; yields the endpoint to send to."""
    grpc_port, http_port = free_ports(2)
    scheme = "http://" if protocol == "http" else ""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "collector.yaml"
        config.write_text(
            CONFIG.format(
                grpc=grpc_port, http=http_port, kind=protocol, sink=f"{scheme}127.0.0.1:{sink_port}"
            )
        )
        process = subprocess.Popen([program, "--config", config], stderr=subprocess.DEVNULL, text=True)
        try:
            port = grpc_port if protocol == "grpc" else http_port
            wait_until_listening(process, port)
            yield process, f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(20)


def collector_program() -> Path | None:
    try:
        return COLLECTOR.path()
    except go_program.UnavailableError as reason:
        skip("collector", reason)
        return None


def measure(report: Report, program: Path | None, payload: str, seconds: float) -> None:
    """Run one round of every row."""
    core, _ = cores()
    for protocol in PROTOCOLS:
        with ExitStack() as stack:
            sink = stack.enter_context(
                running([sys.executable, "-m", "bench.delivery_sink", protocol], core=core)
            )
            for batch in BATCHES:
                direct = f"http://127.0.0.1:{sink.port}"
                report.add(("odradek", protocol, batch), source(direct, protocol, batch, payload, seconds)[1])
            if program is None:
                continue
            process, endpoint = stack.enter_context(collector(program, protocol, sink.port))
            for batch in BATCHES:
                before_ns = cpu_ns(process.pid)
                count, _ = source(endpoint, protocol, batch, payload, seconds)
                time.sleep(0.05)
                report.add(("collector", protocol, batch), (cpu_ns(process.pid) - before_ns) / 1e3 / count)


def show(report: Report, payload: str) -> None:
    print(f"\n{payload}: CPU µs per push, and pushes per CPU second")
    for who, protocol, batch in sorted(report.rows, key=lambda row: (row[0] != "odradek", row[1], row[2])):
        row = (who, protocol, batch)
        print(
            f"  {who:<10}{protocol:<6}{batch:>3}  {spread(report.rows[row]):>26}"
            f"{1e6 / report.median(row):>10.0f}"
        )
    for line in compare(report, payload):
        print(f"  {line}")


def compare(report: Report, payload: str) -> Iterator[Comparison]:
    """Each batch beside the collector's, and the largest one beside a batch of one over gRPC."""
    for protocol in PROTOCOLS:
        for batch in BATCHES:
            costs = {
                who: report.median((who, protocol, batch))
                for who in ("odradek", "collector")
                if (who, protocol, batch) in report.rows
            }
            if batch == BATCHES[-1]:
                costs[UNARY] = report.median(("odradek", "grpc", 1))
            title = f"delivery, {payload}, {protocol}, batches of {batch}"
            yield from compared(title, "µs", costs, ("odradek",), GOALS)


def comparisons(rounds: int) -> Iterator[Comparison]:
    """The lines of the table."""
    for payload, report in reports(rounds, SECONDS, DELIVERED):
        yield from compare(report, payload)


def reports(rounds: int, seconds: float, payloads: Iterable[str]) -> Iterator[tuple[str, Report]]:
    """Measure and print each payload."""
    program = collector_program()
    for payload in payloads:
        report = Report()
        for _ in range(rounds):
            measure(report, program, payload, seconds)
        show(report, payload)
        yield payload, report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--payload", action="append", help="default: java25k and librd6k")
    options = parser.parse_args()
    print(head("delivery"), file=sys.stderr)
    for _ in reports(options.rounds, options.seconds, options.payload or DELIVERED):
        continue


if __name__ == "__main__":
    main()
