"""A real OpenTelemetry collector that writes received data to a file."""

from __future__ import annotations

import socket
import struct
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from contrib.alertmanager.amtool import AMTOOL
from contrib.capture.ports import free_ports
from contrib.go_program import GoProgram, UnavailableError
from contrib.otelcol.collector import COLLECTOR
from contrib.prometheus.prometheus import PROMETHEUS
from contrib.prometheus.promtool import PROMTOOL
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData

from support.child_process import child_process

PATIENCE_S = 60.0
CONFIG = """
receivers:
{receivers}
exporters:
  file:
    path: {path}
    format: proto
    flush_interval: 50ms
{exporters}
service:
  telemetry:
    metrics:
      level: none
  pipelines:
    metrics:
      receivers: [{names}]
      exporters: [{to}]
"""
OTLP = """
  otlp:
    protocols:
      grpc:
        endpoint: 127.0.0.1:{grpc}
      http:
        endpoint: 127.0.0.1:{http}
"""

Point = tuple[bytes, bytes, bytes, bytes]
"""The resource, scope, metric and one of its data points."""


def points_of(data: MetricsData) -> Counter[Point]:
    """Every data point with all its context."""
    found: Counter[Point] = Counter()
    for entry in data.resource_metrics:
        for scope in entry.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                if kind is None:
                    continue
                points = getattr(metric, kind).data_points
                described = Metric()
                described.CopyFrom(metric)
                getattr(described, kind).ClearField("data_points")
                place = (
                    entry.resource.SerializeToString(deterministic=True),
                    scope.scope.SerializeToString(deterministic=True),
                    described.SerializeToString(deterministic=True),
                )
                found.update((*place, point.SerializeToString(deterministic=True)) for point in points)
    return found


@dataclass(frozen=True)
class Collector:
    """A running collector."""

    grpc_port: int
    http_port: int
    output: Path

    def points(self) -> Counter[Point]:
        """All messages written so far; each has a length prefix."""
        raw = self.output.read_bytes()
        found: Counter[Point] = Counter()
        position = 0
        while position + 4 <= len(raw):
            (size,) = struct.unpack_from(">I", raw, position)
            message = raw[position + 4 : position + 4 + size]
            if len(message) < size:
                break
            found += points_of(MetricsData.FromString(message))
            position += 4 + size
        return found

    def wait_for(self, expected: Counter[Point]) -> None:
        """Wait for as many points as expected; then compare them."""
        end_s = time.monotonic() + PATIENCE_S
        while (found := self.points()).total() < expected.total() and time.monotonic() < end_s:
            time.sleep(0.05)
        missing, extra = expected - found, found - expected
        assert not missing, f"{missing.total()} of {expected.total()} missing: {next(iter(missing))}"
        assert not extra, f"{extra.total()} too many: {next(iter(extra))}"


def wait_until_listening(process: subprocess.Popen[str], port: int) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert process.poll() is None, "the collector ended"
            assert time.monotonic() < end_s, "the collector does not listen"
            time.sleep(0.05)
        else:
            return


@contextmanager
def running(
    program: Path,
    folder: Path,
    receivers: str = "",
    names: str = "otlp",
    exporters: str = "",
    to: str = "file",
) -> Iterator[Collector]:
    grpc_port, http_port = free_ports(2)
    output = folder / "points.bin"
    output.touch()
    config = folder / "collector.yaml"
    config.write_text(
        CONFIG.format(
            receivers=OTLP.format(grpc=grpc_port, http=http_port) + receivers,
            path=output,
            names=names,
            exporters=exporters,
            to=to,
        )
    )
    with child_process([program, "--config", config], folder / "collector.log") as process:
        for port in (grpc_port, http_port) if "otlp" in names else ():
            wait_until_listening(process, port)
        yield Collector(grpc_port, http_port, output)


def built(program: GoProgram) -> Path:
    """The path of a program, which is built if it is not in the user's cache."""
    try:
        return program.path()
    except UnavailableError as reason:
        pytest.skip(f"no {program.name}: {reason}")


@pytest.fixture(scope="session")
def collector_program() -> Path:
    """The collector of contrib/otelcol."""
    return built(COLLECTOR)


@pytest.fixture(scope="session")
def prometheus_program() -> Path:
    """The Prometheus of contrib/prometheus."""
    return built(PROMETHEUS)


@pytest.fixture(scope="session")
def promtool() -> Path:
    """The promtool of contrib/prometheus."""
    return built(PROMTOOL)


@pytest.fixture(scope="session")
def amtool() -> Path:
    """The amtool of contrib/alertmanager."""
    return built(AMTOOL)


StartCollector = Callable[..., AbstractContextManager[Collector]]


@pytest.fixture
def start_collector(collector_program: Path, tmp_path: Path) -> StartCollector:
    """Use it in a ``with`` statement; ``receivers`` and ``names`` add receivers besides OTLP,
    ``exporters`` and ``to`` exporters besides the file."""
    return lambda **more: running(collector_program, tmp_path, **more)


@pytest.fixture
def points() -> Callable[[MetricsData], Counter[Point]]:
    return points_of


WaitUntilItListens = Callable[["subprocess.Popen[str]", int], None]


@pytest.fixture
def listening() -> WaitUntilItListens:
    return wait_until_listening
