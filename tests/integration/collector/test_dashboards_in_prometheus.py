"""Each query of each dashboard and rule runs on a real Prometheus, which scrapes metrics of real clients.

A query returns series of a client's software, or the panel says that the software does not send them.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import pytest
from contrib.capture import librdkafka_client
from contrib.capture.ports import free_ports
from contrib.grafana.dashboards import dashboards
from contrib.grafana.panels import Panel
from contrib.grafana.promql import INTERVAL_S, NAME, software_of

import odradek_enrich
import odradek_prometheus
from integration.java.jvm import Jvm, built_classpath
from odradek.findings.troubles import JAVA, LIBRDKAFKA
from odradek.hosting.plugin_manager import HostPluginManager
from support.hosts import ThreadedHost, running_host
from support.probes import metrics_port
from support.prometheus_server import PrometheusServer, prometheus_server
from support.reference_page import ROOT
from support.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(1_500)]
RULES = ("alerts.yml", "client-alerts.yml", "client-recording.yml")
CONFIG = """
global: {{scrape_interval: 500ms, evaluation_interval: 2s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: odradek
    static_configs: [{{targets: ["127.0.0.1:{host}"]}}]
  - job_name: kafka-clients
    static_configs: [{{targets: ["127.0.0.1:{clients}"]}}]
"""
HOST = (
    "subscriptions.all.metrics=*",
    "subscriptions.all.interval.ms=500",
    "metrics.listener=http://127.0.0.1:0",
)
PATIENCE_S = 120.0
JAVA_KINDS = ("producer", "consumer", "share", "admin")
LIBRDKAFKA_KINDS = ("producer", "consumer")
CLIENTS = {
    JAVA: [f"java-{kind}" for kind in JAVA_KINDS],
    LIBRDKAFKA: [f"librdkafka-{kind}" for kind in LIBRDKAFKA_KINDS],
}
SENT_NAMES = {JAVA: JAVA, LIBRDKAFKA: "confluent-kafka-python"}
"""Bindings of librdkafka send names of their own."""
LAST = {
    "java-producer": "org_apache_kafka_producer_topic_record_send_total",
    "java-consumer": "org_apache_kafka_consumer_coordinator_commit_latency_max",
    "java-share": "org_apache_kafka_consumer_share_fetch_manager_fetch_latency_max",
    "java-admin": "org_apache_kafka_admin_client_node_request_latency_max",
    "librdkafka-producer": "org_apache_kafka_producer_node_request_latency_max",
    "librdkafka-consumer": "org_apache_kafka_consumer_coordinator_assigned_partitions",
}
"""A metric that a client has only after a while."""


class Case(NamedTuple):
    """One query of a panel."""

    dashboard: str
    panel: Panel
    expr: str

    def of(self, software: str, instances: list[str]) -> str:
        """The query with the choices of one software."""
        chosen = {"cluster": ".*", "software": SENT_NAMES[software], "principal": ".*", "client_id": ".*"}
        found = self.expr.replace("$client_instance_id", "|".join(instances))
        for name, value in chosen.items():
            found = found.replace(f"${name}", value)
        return found


CASES = [
    Case(dashboard.id, panel, query.of_cluster)
    for dashboard in dashboards(INTERVAL_S)
    for row in dashboard.rows
    for panel in row.panels
    for query in panel.queries
]


def plugins() -> HostPluginManager:
    """odradek-prometheus of this tree, and odradek-enrich, which labels pushes for it."""
    found = HostPluginManager()
    for name, module in {"enrich": odradek_enrich, "prometheus": odradek_prometheus}.items():
        found.add(name, module, f"odradek-{name}", "1")
    return found


@contextmanager
def living(command: list[str]) -> Iterator[None]:
    """A client that is closed at the end."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        try:
            yield
        finally:
            process.kill()


def commands(host: ThreadedHost) -> Iterator[list[str]]:
    jvm = Jvm(built_classpath())
    for kind in JAVA_KINDS:
        yield jvm.command("odradek.TelemetryClient", host.bootstrap, "orders", f"java-{kind}", kind)
    for kind in LIBRDKAFKA_KINDS:
        program = [sys.executable, str(Path(librdkafka_client.__file__))]
        yield [*program, host.bootstrap, "orders", f"librdkafka-{kind}", kind]


@pytest.fixture(scope="module")
def filled(prometheus_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    """A Prometheus with some scrapes of four Java clients, two of librdkafka, and their host."""
    folder = tmp_path_factory.mktemp("dashboards")
    port, clients_port = free_ports(2)
    with ExitStack() as stack:
        scraped = (
            f"plugins.prometheus.listener=http://127.0.0.1:{clients_port}",
            f"plugins.prometheus.totals.file={folder / 'totals.db'}",
        )
        host = stack.enter_context(running_host(folder / "data", *HOST, *scraped, plugins=plugins()))
        config = folder / "prometheus.yml"
        rules = ", ".join(f'"{ROOT / "contrib/prometheus" / name}"' for name in RULES)
        config.write_text(CONFIG.format(rules=rules, host=metrics_port(host), clients=clients_port))
        prometheus = stack.enter_context(prometheus_server(prometheus_program, config, port, folder))
        for command in commands(host):
            stack.enter_context(living(command))
        for client, metric in LAST.items():
            wait_until(
                partial(has_samples, prometheus, client, metric), f"no metrics of {client}", PATIENCE_S
            )
        yield prometheus


def has_samples(prometheus: PrometheusServer, client: str, metric: str) -> bool:
    """Whether a metric of a client was scraped often enough for a rate."""
    return bool(prometheus.query(f'count_over_time({metric}{{client_id="{client}"}}[5m]) > 2'))


def series(prometheus: PrometheusServer, query: str) -> list[object]:
    """The series of a query at any time of the last minutes: some metrics have values only after an event."""
    end_s = time.time()
    given = {"query": query, "start": end_s - 300, "end": end_s, "step": 1}
    found: list[object] = prometheus.get(f"/api/v1/query_range?{urlencode(given)}")["data"]["result"]
    return found


def instances(prometheus: PrometheusServer, software: str) -> list[str]:
    """The client instances, also after a scrape that failed, which ends all series until the next one.

    An instance whose labels change has several series.
    """
    info = f'kafka_client_info{{client_software_name="{SENT_NAMES[software]}"}}'
    found = prometheus.query(f"last_over_time({info}[5m])")
    return sorted({labels["client_instance_id"] for labels, _ in found})


def wrong_panels(prometheus: PrometheusServer, software: str) -> list[tuple[str, str, str, int]]:
    """The dashboard, panel, query and series of what a panel promises and Prometheus does not return."""
    mine = instances(prometheus, software)
    wrong = []
    for case in CASES:
        if not NAME.search(case.expr) or case.panel.is_of_incidents:
            continue
        found = series(prometheus, case.of(software, mine))
        sent_by = software_of(case.expr)
        if bool(found) is not (software in sent_by or not sent_by):
            wrong.append((case.dashboard, case.panel.title, case.expr, len(found)))
        if software in case.panel.missing and f"not sent by {software}" not in case.panel.no_value:
            wrong.append((case.dashboard, case.panel.title, case.panel.no_value, len(found)))
    return wrong


@pytest.mark.parametrize("software", CLIENTS)
def test_a_query_returns_series_or_the_panel_says_why_not(filled: PrometheusServer, software: str) -> None:
    """A busy machine misses scrapes, so a rate may take a while."""
    wait_until(lambda: not wrong_panels(filled, software), lambda: wrong_panels(filled, software), PATIENCE_S)

    assert len(instances(filled, software)) == len(CLIENTS[software])


def test_a_query_about_the_host_returns_series_or_the_panel_says_why_not(filled: PrometheusServer) -> None:
    def empty() -> list[str]:
        return [
            case.expr
            for case in CASES
            if not NAME.search(case.expr) and not case.panel.empty
            if not series(filled, case.expr.replace("$cluster", ".*"))
        ]

    wait_until(lambda: not empty(), empty, PATIENCE_S)


def test_all_rules_are_evaluated(filled: PrometheusServer) -> None:
    groups = filled.get("/api/v1/rules")["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]

    wait_until(
        lambda: all(
            rule["health"] == "ok"
            for group in filled.get("/api/v1/rules")["data"]["groups"]
            for rule in group["rules"]
        ),
        "a rule fails",
        PATIENCE_S,
    )
    recorded = filled.query('count by (__name__) (last_over_time({__name__=~"app:.+"}[5m]))')

    assert len(rules) > 100
    assert len(recorded) > 80
