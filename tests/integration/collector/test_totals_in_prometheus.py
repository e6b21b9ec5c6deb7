"""The totals of Java clients are those of their series in Prometheus, with the configurations of contrib."""

from __future__ import annotations

import os
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from contrib.capture.ports import free_ports

from integration.java.jvm import Jvm, built_classpath
from support.client_totals import check_totals, closed_clients
from support.hosts import running_host
from support.prometheus_server import prometheus_server

if TYPE_CHECKING:
    from integration.collector.conftest import WaitUntilItListens

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(1_500)]
ROOT = Path(__file__).resolve().parents[3]
HOST = (
    "subscriptions.all.preset=all",
    "subscriptions.all.interval.ms=1000",
    "plugins.otlp.batch.max.age.ms=50",
)


def test_through_the_collector(
    collector_program: Path,
    prometheus_program: Path,
    listening: WaitUntilItListens,
    tmp_path: Path,
) -> None:
    jvm = Jvm(built_classpath())
    port, grpc_port, http_port = free_ports(3)
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
        check_totals(closed_clients(jvm, host, prometheus), prometheus)


def test_through_the_otlp_endpoint_of_prometheus(prometheus_program: Path, tmp_path: Path) -> None:
    jvm = Jvm(built_classpath())
    (port,) = free_ports(1)
    config = ROOT / "contrib/prometheus/otlp.yml"
    with ExitStack() as stack:
        prometheus = stack.enter_context(
            prometheus_server(prometheus_program, config, port, tmp_path, "--web.enable-otlp-receiver")
        )
        destination = (
            f"plugins.otlp.endpoint={prometheus.url}/api/v1/otlp",
            f"plugins.otlp.totals.file={tmp_path / 'totals.db'}",
        )
        shipped = ROOT / "contrib/prometheus/odradek.toml"
        host = stack.enter_context(running_host(tmp_path / "data", *HOST, *destination, file=shipped))
        check_totals(closed_clients(jvm, host, prometheus), prometheus)
