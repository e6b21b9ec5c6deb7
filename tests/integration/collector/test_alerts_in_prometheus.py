"""``contrib/prometheus/alerts.yml`` in a real Prometheus that scrapes a host: rules load and find trouble."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from contrib.capture.ports import free_ports

from support.hosts import EVERYTHING, running_host
from support.probes import metrics_port
from support.prometheus_server import PrometheusServer, prometheus_server
from support.reference_page import ROOT
from support.waiting import wait_until
from support.wire_client import WireClient

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_500)]

RULES = ROOT / "contrib/prometheus/alerts.yml"
CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{rules}"]
scrape_configs:
  - job_name: odradek
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""
HOST = (
    *EVERYTHING,
    "metrics.listener=http://127.0.0.1:0",
    "plugins.otlp.endpoint=http://127.0.0.1:1",
    "telemetry.subscriptions.max=1",
)
TROUBLE = {"OdradekForwarderStalled": ["otlp"], "OdradekStateNearLimit": ["telemetry.subscriptions.max"]}
"""The alerts that this host sets off, with the plugin or setting of each."""
PATIENCE_S = 120.0


def rules(prometheus: PrometheusServer) -> dict[str, dict[str, Any]]:
    (group,) = prometheus.get("/api/v1/rules")["data"]["groups"]
    return {rule["name"]: rule for rule in group["rules"]}


def found(prometheus: PrometheusServer, alert: str) -> list[dict[str, str]]:
    """The labels of each series of an alert's expression."""
    return [labels for labels, _ in prometheus.query(rules(prometheus)[alert]["query"])]


def trouble(prometheus: PrometheusServer) -> dict[str, list[str | None]]:
    """By alert with series: the plugin or setting of each."""
    return {
        alert: [labels.get("plugin", labels.get("setting")) for labels in series]
        for alert in rules(prometheus)
        if (series := found(prometheus, alert))
    }


def test_every_rule_is_evaluated_and_trouble_is_found(prometheus_program: Path, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with ExitStack() as stack:
        host = stack.enter_context(running_host(tmp_path / "data", *HOST))
        config = tmp_path / "prometheus.yml"
        config.write_text(CONFIG.format(rules=RULES, port=metrics_port(host)))
        prometheus = stack.enter_context(prometheus_server(prometheus_program, config, port, tmp_path))
        with WireClient(host.address) as client:
            client.introduce()
            client.push(b"\x0a\x00")

        wait_until(lambda: trouble(prometheus) == TROUBLE, lambda: trouble(prometheus), PATIENCE_S)
        wait_until(lambda: all(rule["health"] == "ok" for rule in rules(prometheus).values()), "a rule fails")
        host.stop()
        down = wait_until(lambda: found(prometheus, "OdradekDown"), "no alert", PATIENCE_S)

    assert len(down) == 1
