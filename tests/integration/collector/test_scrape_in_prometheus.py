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


def test_prometheus_has_the_series_of_each_client(
    prometheus_program: Path, clients: list[ClientSeries], tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    config = tmp_path / "prometheus.yml"
    expected = {dict(client.labels)["client_instance_id"]: client for client in clients}

    with served(clients) as escaped, served(clients, utf8=True) as dotted:
        config.write_text(CONFIG.format(escaped=escaped, dotted=dotted))
        with prometheus_server(prometheus_program, config, port, tmp_path) as server:
            wait_until(
                lambda: len(server.query('kafka_client_info{job="clients"}')) == len(clients),
                "the clients are not in Prometheus",
                PATIENCE_S,
            )
            counts = {
                labels["client_instance_id"]: value
                for labels, value in server.query(
                    'count by (client_instance_id) ({client_instance_id!="", job="clients"})'
                )
            }
            assert counts == {instance: len(client) + 4 for instance, client in expected.items()}
            for instance, client in expected.items():
                found = series_of(server, instance)
                for each in client.series():
                    assert found[each.family.name, each.labels] == each.value

            targets = server.get("/api/v1/targets")["data"]["activeTargets"]
            assert {target["lastError"] for target in targets} <= {""}
            by_dots = f'{{"{SENT}", job="dotted"}}'
            wait_until(lambda: bool(server.query(by_dots)), "no metric with dots", PATIENCE_S)

            gone = clients.pop()
            instance = dict(gone.labels)["client_instance_id"]
            wait_until(lambda: not series_of(server, instance), "an ended series is still there", PATIENCE_S)
            rest = server.query('kafka_client_info{job="clients"}')
            assert len(rest) == len(clients)


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
