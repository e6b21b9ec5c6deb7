"""Rules, dashboards and the runbook about clients: generated from the reference, and in agreement with it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from contrib.grafana import __main__ as command
from contrib.grafana.alerts import Alert, alerts
from contrib.grafana.promql import INTERVAL_S, NAME, by_series_name, has_two_levels, metrics_in
from contrib.grafana.rules import Place, alert_rule

from odradek.findings.client_metrics import ClientMetric, client_metrics
from odradek.findings.troubles import BY_ID, JAVA, TROUBLES
from support.command_lines import parsed
from support.reference_page import ROOT

OF_SUMS = re.compile(r"\b(?:rate|increase)\((\w+)")
OF_GAUGES = re.compile(r"\b(?:deriv|delta)\((\w+)")
PRESENT = re.compile(r"unless on \(client_instance_id\) last_over_time\((\w+)")
WINDOW = re.compile(r"\b(?:rate|increase|resets)\([^\[\]]*\[(\d+)([smh])\]")
SECONDS = {"s": 1, "m": 60, "h": 3600}
TEMPLATE = re.compile(r"\$labels\.(\w+)")
INCIDENT = "io_odradek_observed_client_"
LABEL = re.compile(r"\{\{ \$labels\.\w+ \}\}")
ALERTS = {alert.id: alert for alert in alerts(INTERVAL_S)}
RECORDED = [
    rule
    for group in yaml.safe_load((ROOT / "contrib/prometheus/client-recording.yml").read_text())["groups"]
    for rule in group["rules"]
]
EXPRESSIONS = [*(alert.expr for alert in ALERTS.values()), *(rule["expr"] for rule in RECORDED)]


def bare(metric: ClientMetric, expression: str) -> bool:
    """Whether the expression mixes the two levels of a metric."""
    name = next(name for name, each in by_series_name().items() if each is metric)
    return re.search(rf'\b{name}(?!\w|\{{[^}}]*topic(?:!=|=)"")', expression) is not None


def test_all_files_are_written_by_one_command() -> None:
    assert command.outdated(command.files(INTERVAL_S)) == []


@contextmanager
def changed(row: object, field: str, value: object) -> Iterator[None]:
    """A row of the reference or of the table of troubles with another value."""
    before = getattr(row, field)
    object.__setattr__(row, field, value)
    try:
        yield
    finally:
        object.__setattr__(row, field, before)


COMMITS = client_metrics()["org.apache.kafka.consumer.coordinator.commit.latency.max"]
CHANGES = [
    (BY_ID["slow-commits"], "threshold", 4_321.0, {"client-alerts", "client-alerts.test", "runbook"}),
    (COMMITS, "unit", "s", {"fleet", "client"}),
    (COMMITS, "help", "Changed.", {"client"}),
    (COMMITS, "software", frozenset({JAVA}), {"fleet", "runbook"}),
]


@pytest.mark.parametrize(("row", "field", "value", "files"), CHANGES, ids=[change[1] for change in CHANGES])
def test_a_change_of_the_reference_changes_the_files(
    row: object, field: str, value: object, files: set[str]
) -> None:
    with changed(row, field, value):
        found = command.outdated(command.files(INTERVAL_S))

    assert files <= {path.rpartition("/")[2].rpartition(".")[0] for path in found}


@pytest.mark.parametrize("interval_s", [10, 60, 300])
def test_functions_fit_the_kinds_of_metrics(interval_s: int) -> None:
    known = by_series_name()

    for expression in (*EXPRESSIONS, *(alert.expr for alert in alerts(interval_s))):
        sums, gauges = set(OF_SUMS.findall(expression)), set(OF_GAUGES.findall(expression))
        assert {known[name].kind for name in sums} <= {"sum"}
        assert {known[name].kind for name in gauges} <= {"gauge"}
        used = {name for name in NAME.findall(expression) if known[name].kind == "sum"}
        assert used - {*PRESENT.findall(expression)} <= sums
        assert all(int(size) * SECONDS[unit] >= 120 for size, unit in WINDOW.findall(expression))


@pytest.mark.parametrize("interval_s", [60, 300])
def test_windows_have_at_least_four_push_intervals(interval_s: int) -> None:
    for alert in alerts(interval_s):
        if INCIDENT in alert.expr:
            continue  # incidents do not come with pushes
        for size, unit in WINDOW.findall(alert.expr):
            assert int(size) * SECONDS[unit] >= 4 * interval_s


@pytest.mark.parametrize("alert", ALERTS.values(), ids=ALERTS)
def test_an_alert_keeps_the_levels_of_a_metric_apart(alert: Alert) -> None:
    assert not any(bare(metric, alert.expr) for metric in metrics_in(alert.expr) if has_two_levels(metric))


@pytest.mark.parametrize("alert", ALERTS.values(), ids=ALERTS)
def test_the_texts_of_an_alert_use_its_labels(alert: Alert) -> None:
    rule = alert_rule(alert, Place())
    texts = "".join([*rule["labels"].values(), *rule["annotations"].values()])

    assert set(TEMPLATE.findall(texts)) <= set(alert.labels)
    assert "\n" not in rule["annotations"]["summary"]


@pytest.mark.parametrize("alert", ALERTS.values(), ids=ALERTS)
def test_the_next_step_is_a_command_that_works_as_written(
    alert: Alert, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("client.properties").touch()
    place = Place(
        "kafka1.example:9092 --command-config client.properties",
        "https://wiki.example/runbook",
        "https://console.example",
    )
    annotations = alert_rule(alert, place)["annotations"]

    program, *arguments = shlex.split(LABEL.sub("-a", annotations["next_step"]))
    name, options = parsed(arguments)
    (servers,) = (value for name, value in options.items() if name.startswith("bootstrap_server"))

    assert program == "odradek"
    assert name != "client-metrics"
    assert (servers, str(options["command_config"])) == ("kafka1.example:9092", "client.properties")
    assert annotations["runbook_url"] == f"https://wiki.example/runbook#{alert.id}"
    assert annotations["console_url"].startswith("https://console.example/")


def test_rules_without_a_place_ask_the_external_labels_of_prometheus() -> None:
    text = (ROOT / "contrib/prometheus/client-alerts.yml").read_text()

    assert "localhost" not in text
    assert text.count("{{ or $externalLabels.kafka_bootstrap ") == text.count("- alert: ") >= len(ALERTS)


@pytest.mark.parametrize("alert", ALERTS.values(), ids=ALERTS)
def test_the_texts_of_an_alert_keep_their_commas(alert: Alert) -> None:
    texts = (alert.question, alert.summary, alert.condition, alert.source, alert.advice)

    assert [text for text in texts if "  " in text] == []


def test_each_trouble_has_an_alert_with_its_name() -> None:
    assert {trouble.id for trouble in TROUBLES} <= ALERTS.keys()
    assert len({alert.name for alert in ALERTS.values()}) == len(ALERTS)


def test_each_counter_and_each_maximum_is_recorded_by_application() -> None:
    metrics = [metric for rule in RECORDED for metric in metrics_in(rule["expr"])]

    assert {metric.name for metric in metrics} == {
        metric.name
        for metric in client_metrics().values()
        if metric.kind == "sum" or metric.name.endswith(".max")
    }
    assert len(metrics) == len(RECORDED)
