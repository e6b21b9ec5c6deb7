"""A real Prometheus scrapes the series of recorded clients, and promtool checks the page."""

from __future__ import annotations

import re
import subprocess
import urllib.request
from collections import defaultdict
from pathlib import Path

import pytest
from contrib.capture.ports import free_ports

from odradek.testing.pushes import recorded
from odradek_prometheus.client_series import ClientSeries
from support.exposed_clients import Exposed
from support.prometheus_server import PrometheusServer, prometheus_server
from support.scrape_server import served
from support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_500)]
PATIENCE_S = 60.0
CONFIG = """
global:
  scrape_interval: 1s
scrape_configs:
- job_name: clients
  static_configs: [{{targets: ["127.0.0.1:{escaped}"]}}]
- job_name: dotted
  static_configs: [{{targets: ["127.0.0.1:{dotted}"]}}]
  metric_name_validation_scheme: utf8
"""
SENT = "org.apache.kafka.producer.record.send.total"
KAFKAS_NAMES = re.compile(
    r'org_apache_kafka_\w+ (non-counter metrics should not have "_total" suffix|'
    r'non-histogram and non-summary metrics should not have "_count" suffix|'
    r"metric names should not contain abbreviated units)"
)
"""What promtool says about names that are Kafka's choice."""


@pytest.fixture
def clients() -> list[ClientSeries]:
    exposed = Exposed()
    for push in recorded():
        exposed.deliver(push.record)
    return exposed.exposition.clients()


def series_of(
    server: PrometheusServer, instance: str
) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """The series of a client, without the labels of the scrape."""
    found = {}
    for labels, value in server.query(f'{{client_instance_id="{instance}", job="clients"}}'):
        rest = {name: text for name, text in labels.items() if name not in ("__name__", "job", "instance")}
        found[labels["__name__"], tuple(sorted(rest.items()))] = value
    return found


def has_all(server: PrometheusServer, client: ClientSeries) -> bool:
    """Whether Prometheus has exactly the series of a client, with their values."""
    found = series_of(server, dict(client.labels)["client_instance_id"])
    about_it = 4
    return len(found) == len(client) + about_it and all(
        found.get((each.family.name, each.labels)) == each.value for each in client.series()
    )


def clients_of(server: PrometheusServer) -> set[str]:
    found = server.query('kafka_client_info{job="clients"}')
    return {labels["client_instance_id"] for labels, _ in found}


def errors(server: PrometheusServer) -> set[str]:
    """The errors of the last scrape of each target."""
    return {target["lastError"] for target in server.get("/api/v1/targets")["data"]["activeTargets"]}


def test_prometheus_has_the_series_of_each_client(
    prometheus_program: Path, clients: list[ClientSeries], tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    config = tmp_path / "prometheus.yml"
    expected = {dict(client.labels)["client_instance_id"]: client for client in clients}

    with served(clients) as escaped, served(clients, utf8=True) as dotted:
        config.write_text(CONFIG.format(escaped=escaped, dotted=dotted))
        with prometheus_server(prometheus_program, config, port, tmp_path) as server:

            def wrong() -> list[str]:
                """A scrape that fails on a busy machine ends all series until the next one."""
                return [instance for instance, each in expected.items() if not has_all(server, each)]

            wait_until(lambda: clients_of(server) == set(expected), lambda: clients_of(server), PATIENCE_S)
            wait_until(lambda: not wrong(), wrong, PATIENCE_S)
            wait_until(lambda: errors(server) == {""}, lambda: errors(server), PATIENCE_S)
            by_dots = f'{{"{SENT}", job="dotted"}}'
            wait_until(lambda: bool(server.query(by_dots)), "no metric with dots", PATIENCE_S)

            gone = clients.pop()
            instance = dict(gone.labels)["client_instance_id"]
            rest = set(expected) - {instance}
            wait_until(lambda: clients_of(server) == rest, "an ended series is still there", PATIENCE_S)
            assert series_of(server, instance) == {}


def test_promtool_finds_only_kafkas_names(promtool: Path, clients: list[ClientSeries]) -> None:
    with served(clients) as port:
        request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics")
        with urllib.request.urlopen(request, timeout=30) as response:
            page = response.read()

    done = subprocess.run(
        [promtool, "check", "metrics"], input=page, capture_output=True, timeout=120, check=False
    )

    remarks = defaultdict(list)
    for line in done.stderr.decode().splitlines():
        remarks[bool(KAFKAS_NAMES.match(line))].append(line)
    assert done.returncode in (0, 3), done.stderr
    assert remarks[False] == []
