"""The totals of Java clients are those of their series in Prometheus, with the configurations of contrib."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from integration.java.jvm import Jvm, built_classpath
from support.hosts import ThreadedHost, running_host
from support.prometheus_server import PrometheusServer, prometheus_server

if TYPE_CHECKING:
    from integration.collector.conftest import FreePorts, WaitUntilItListens

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(1_500)]
ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 30.0
HOST = (
    "subscriptions.all.metrics=*",
    "subscriptions.all.interval.ms=1000",
    "plugins.otlp.batch.max.age.ms=50",
)
KINDS = ("producer", "consumer")
Key = tuple[str, str]
"""The name of a series, and its labels that differ between the series of a client."""
SAME_FOR_A_CLIENT = re.compile(
    r"__name__|job|instance|client_(?!source_port).*|principal|broker_node_id|group_(instance_)?id|otel_scope_.*"
)


def series_name(otlp: str) -> str:
    """The name of a counter in Prometheus (OpenTelemetry's rules, with suffixes)."""
    words = [word for word in re.split(r"[^a-zA-Z0-9]+", otlp) if word not in ("", "total")]
    return "_".join([*words, "total"])


def reported(lines: list[str]) -> dict[Key, float]:
    """The totals that a client prints."""
    found = {}
    for line in lines:
        name, labels, value = line.split("\t")
        found[series_name(name), labels] = float(value)
    return found


def stored(prometheus: PrometheusServer, client_id: str) -> list[tuple[Key, float]]:
    """The totals of a client in Prometheus, with all of its series."""
    found = []
    for labels, value in prometheus.query(f'{{__name__=~".+_total",client_id="{client_id}"}}'):
        own = sorted(
            f"{name}={text}" for name, text in labels.items() if not SAME_FOR_A_CLIENT.fullmatch(name)
        )
        found.append(((labels["__name__"], ",".join(own)), value))
    return found


@dataclass
class JavaClient:
    """A running Java client."""

    client_id: str
    process: subprocess.Popen[str]

    def totals(self) -> dict[Key, float]:
        """Close the client and return the totals of its last push."""
        out, _ = self.process.communicate("end\n", timeout=PATIENCE_S)
        assert self.process.returncode == 0
        return reported(out.splitlines())


@contextmanager
def java_client(jvm: Jvm, host: ThreadedHost, kind: str) -> Iterator[JavaClient]:
    client_id = f"java-{kind}"
    command = jvm.command("odradek.TelemetryClient", host.bootstrap, "orders", client_id, kind, "totals")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield JavaClient(client_id, process)
        finally:
            process.kill()


def differences(expected: dict[Key, float], found: list[tuple[Key, float]]) -> list[str]:
    """A line for each total that is not exactly one series with its value."""
    times = Counter(key for key, _ in found)
    lines = [f"{key}: {count} series" for key, count in times.items() if count > 1]
    values = dict(found)
    lines += [
        f"{key}: the client has {expected.get(key)}, Prometheus {values.get(key)}"
        for key in expected.keys() | values.keys()
        if expected.get(key) != values.get(key)
    ]
    return sorted(lines)


def check_totals(jvm: Jvm, host: ThreadedHost, prometheus: PrometheusServer) -> None:
    """Run a producer and a consumer, and compare all of their totals."""
    with ExitStack() as stack:
        clients = [stack.enter_context(java_client(jvm, host, kind)) for kind in KINDS]
        for client in clients:
            wait_for_pushes(prometheus, client)
        expected = {client.client_id: client.totals() for client in clients}

    end_s = time.monotonic() + PATIENCE_S
    while True:
        wrong = [
            f"{client_id}: {line}"
            for client_id, totals in expected.items()
            for line in differences(totals, stored(prometheus, client_id))
        ]
        if not wrong or time.monotonic() > end_s:
            break
        time.sleep(0.2)
    assert "\n".join(wrong) == ""
    assert min(map(len, expected.values())) > 30


def wait_for_pushes(prometheus: PrometheusServer, client: JavaClient) -> None:
    """Wait until some pushes of a client are in Prometheus."""
    end_s = time.monotonic() + PATIENCE_S
    name = f"org_apache_kafka_{client.client_id.removeprefix('java-')}_request_total"
    requests = f'max({name}{{client_id="{client.client_id}"}})'
    while not any(value > 60 for _, value in prometheus.query(requests)):
        assert client.process.poll() is None
        assert time.monotonic() < end_s, f"no pushes of {client.client_id}: {prometheus.log.read_text()}"
        time.sleep(0.2)


def test_through_the_collector(
    collector_program: Path,
    prometheus_program: Path,
    free_port_numbers: FreePorts,
    listening: WaitUntilItListens,
    tmp_path: Path,
) -> None:
    jvm = Jvm(built_classpath())
    port, grpc_port, http_port = free_port_numbers(3)
    config = tmp_path / "prometheus.yml"
    config.touch()
    environment = os.environ | {
        "PROMETHEUS": f"http://127.0.0.1:{port}/api/v1/write",
        "OTLP_GRPC": f"127.0.0.1:{grpc_port}",
        "OTLP_HTTP": f"127.0.0.1:{http_port}",
    }
    shipped = [
        "--config",
        str(ROOT / "contrib/otelcol/otlp.yaml"),
        "--set=service.telemetry.metrics.level=none",
    ]

    with ExitStack() as stack:
        prometheus = stack.enter_context(
            prometheus_server(
                prometheus_program, config, port, tmp_path, "--web.enable-remote-write-receiver"
            )
        )
        log = stack.enter_context((tmp_path / "collector.log").open("w"))
        collector = stack.enter_context(
            subprocess.Popen(
                [collector_program, *shipped], env=environment, stdout=log, stderr=log, text=True
            )
        )
        stack.callback(collector.terminate)
        listening(collector, http_port)
        endpoint = f"plugins.otlp.endpoint=http://127.0.0.1:{http_port}"
        host = stack.enter_context(running_host(tmp_path / "data", *HOST, endpoint))
        check_totals(jvm, host, prometheus)


def test_through_the_otlp_endpoint_of_prometheus(
    prometheus_program: Path, free_port_numbers: FreePorts, tmp_path: Path
) -> None:
    jvm = Jvm(built_classpath())
    (port,) = free_port_numbers(1)
    config = ROOT / "contrib/prometheus/otlp.yml"
    options = ("--web.enable-otlp-receiver", "--enable-feature=otlp-deltatocumulative")

    with ExitStack() as stack:
        prometheus = stack.enter_context(
            prometheus_server(prometheus_program, config, port, tmp_path, *options)
        )
        endpoint = f"plugins.otlp.endpoint={prometheus.url}/api/v1/otlp"
        host = stack.enter_context(
            running_host(tmp_path / "data", *HOST, endpoint, file=ROOT / "contrib/prometheus/odradek.toml")
        )
        check_totals(jvm, host, prometheus)
