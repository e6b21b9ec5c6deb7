"""Delta to cumulative by a collector: CPU per point and memory per series, for the clients of
`bench.temporality`.

The collector gets pushes of many clients in requests of 40, and drops them after its processors. It runs
twice, with the processor `deltatocumulative` and without it: the difference is the processor's part. Memory
is what the process holds after the last request, and after it was idle for some seconds.
"""

from __future__ import annotations

import http.client
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from contrib import go_program
from contrib.capture.ports import free_ports
from contrib.otelcol.collector import COLLECTOR

from bench.harness import cpu_ns, rss_bytes
from integration.collector.conftest import wait_until_listening

CLIENTS_PER_REQUEST = 40
IDLE_S = 5.0
PROCESSOR = "deltatocumulative"
CONFIG = """
receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:{port}
processors:
  deltatocumulative:
    max_stale: 1h
exporters:
  debug:
    verbosity: basic
    sampling_initial: 1
    sampling_thereafter: 1000000
service:
  telemetry:
    logs:
      level: error
    metrics:
      level: none
  pipelines:
    metrics:
      receivers: [otlp]
      processors: [{processors}]
      exporters: [debug]
"""
Pushes = Callable[[int], Iterable[bytes]]
"""The pushes of a round, one per client: each a serialized MetricsData."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of rounds of pushes for a collector, the first round not counted."""

    cpu_us: float
    """Per push."""
    held_bytes: int
    """More than before the first push."""


def cost(pushes: Pushes, rounds: int, *, converts: bool) -> Cost:
    """Send rounds of pushes to a new collector.

    Raises:
        UnavailableError: There is no collector.
    """
    processors = PROCESSOR if converts else ""
    with collector(COLLECTOR.path(), CONFIG, processors=processors) as (process, port):
        before_bytes = rss_bytes(process.pid)
        began_ns, count = cpu_ns(process.pid), 0
        for number in range(rounds):
            if number == 1:
                began_ns, count = cpu_ns(process.pid), 0
            count += send(port, pushes(number))
        spent_us = (cpu_ns(process.pid) - began_ns) / 1e3
        time.sleep(IDLE_S)
        return Cost(spent_us / count, rss_bytes(process.pid) - before_bytes)


@contextmanager
def collector(program: Path, text: str, **values: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A collector that takes OTLP over HTTP; yields it and its port.

    Args:
        program: Its path.
        text: The configuration, with ``{port}`` and other fields.
        values: Of the other fields.
    """
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "collector.yaml"
        config.write_text(text.format(port=port, **values))
        process = subprocess.Popen(
            [program, "--config", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True
        )
        try:
            wait_until_listening(process, port)
            yield process, port
        finally:
            process.kill()
            process.wait()


def send(port: int, pushes: Iterable[bytes]) -> int:
    """Send pushes in requests; return how many."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    count, waiting = 0, []
    for push in pushes:
        count += 1
        waiting.append(push)
        if len(waiting) == CLIENTS_PER_REQUEST:
            post(connection, waiting)
            waiting = []
    if waiting:
        post(connection, waiting)
    connection.close()
    return count


def post(connection: http.client.HTTPConnection, pushes: list[bytes]) -> None:
    """One request. Messages of protobuf one after another are one message with all their repeated fields."""
    connection.request("POST", "/v1/metrics", b"".join(pushes), {"content-type": "application/x-protobuf"})
    response = connection.getresponse()
    response.read()
    assert response.status == 200, response.status


def missing() -> str | None:
    """Why there is no collector; None if there is one."""
    try:
        COLLECTOR.path()
    except go_program.UnavailableError as reason:
        return str(reason)
    return None
