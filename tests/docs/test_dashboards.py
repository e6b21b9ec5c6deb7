"""The dashboards in ``contrib/grafana``: their JSON, and the metrics, labels and units that they name."""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import Any

import pytest
from contrib.grafana import pictures
from contrib.grafana.alerts import alerts
from contrib.grafana.dashboards import JAVA_ONLY, STANDARD, Dashboard, dashboards
from contrib.grafana.panels import DATA_SOURCE, GRAFANA_UNITS, Panel
from contrib.grafana.promql import INTERVAL_S, NAME, by_series_name, has_two_levels, metrics_in

from docs.test_alerts import in_prometheus
from docs.test_alerts import labels as labels_of_host
from docs.test_client_rules import OF_SUMS, bare
from odradek.findings.client_metrics import PREFIX, client_metrics
from odradek.findings.incidents import OBSERVED
from odradek.findings.presets import PRESETS, selects
from odradek.findings.troubles import CONSUMER, JAVA, LIBRDKAFKA, PRODUCER
from odradek.lag.report import PREFIX as LAG_PREFIX
from odradek.lag.report import UNITS
from odradek.plugin.context_labels import CONTEXT_LABELS
from odradek.temporality import Kind
from odradek_prometheus.metric_names import escaped_name
from support.offenders import offenders
from support.reference_page import ROOT, page

DASHBOARDS = {each.id: each for each in dashboards(INTERVAL_S)}
PANELS = [(each.id, panel) for each in DASHBOARDS.values() for row in each.rows for panel in row.panels]
HOST_METRIC = re.compile(r"\b(?:odradek|kafka_server|kafka_network)_\w+")
LEGEND = re.compile(r"\{\{(\w+)\}\}")
VARIABLE = re.compile(r"\$(\w+)")
LAG_METRICS = {escaped_name(LAG_PREFIX + name, unit, Kind.GAUGE) for name, unit in UNITS.items()}
OF_GROUPS = {"group", "topic", "partition", "progress", "client_id", "address", "client_address"}
OF_CLIENTS = {*CONTEXT_LABELS, "group_id", "transactional_id"}


def content(dashboard: Dashboard) -> dict[str, Any]:
    path = ROOT / f"contrib/grafana/dashboards/{dashboard.id}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    return (
        one["x"] < other["x"] + other["w"]
        and other["x"] < one["x"] + one["w"]
        and one["y"] < other["y"] + other["h"]
        and other["y"] < one["y"] + one["h"]
    )


@pytest.mark.parametrize("dashboard", DASHBOARDS.values(), ids=DASHBOARDS)
def test_panels_have_their_own_ids_and_places(dashboard: Dashboard) -> None:
    panels = content(dashboard)["panels"]

    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [panel["gridPos"] for panel in panels]
    assert not any(overlap(one, other) for one, other in combinations(places, 2))
    assert all(place["x"] >= 0 and place["x"] + place["w"] <= 24 for place in places)


@pytest.mark.parametrize("dashboard", DASHBOARDS.values(), ids=DASHBOARDS)
def test_a_dashboard_is_what_grafana_imports(dashboard: Dashboard) -> None:
    found = content(dashboard)

    assert (found["uid"], found["schemaVersion"]) == (f"odradek-{dashboard.id}", 39)
    names = [each["name"] for each in found["templating"]["list"]]
    for panel in found["panels"]:
        assert {"id", "type", "title", "gridPos"} <= panel.keys()
        assert panel["type"] in ("row", "timeseries", "table", "stat")
        if panel["type"] == "row":
            continue
        defaults = panel["fieldConfig"]["defaults"]
        assert defaults["unit"] in {*GRAFANA_UNITS.values(), "short"}
        assert defaults["noValue"]
        assert defaults["thresholds"]["steps"][0]["value"] is None
        references = [target["refId"] for target in panel["targets"]]
        assert references == sorted(set(references))
        assert references
        for target in panel["targets"]:
            assert target["datasource"] == panel["datasource"] == DATA_SOURCE
            assert set(VARIABLE.findall(target["expr"])) <= set(names)


def names_metrics_that_exist(_id: str, panel: Panel) -> None:
    of_clients, of_host = by_series_name(), in_prometheus()

    for query in panel.queries:
        mine = set(NAME.findall(query.expr))
        groups = set(HOST_METRIC.findall(query.expr)) & LAG_METRICS
        hosts = set(HOST_METRIC.findall(query.expr)) - mine - groups
        assert mine <= of_clients.keys()
        assert hosts <= of_host.keys()
        assert mine or hosts or groups
        sums = {name for name in mine if of_clients[name].kind == "sum"}
        assert sums == mine & set(OF_SUMS.findall(query.expr))
        two_levels = [metric for metric in metrics_in(query.expr) if has_two_levels(metric)]
        assert not any(bare(metric, query.expr) for metric in two_levels)
        labels = OF_CLIENTS | {label for name in mine for level in of_clients[name].levels for label in level}
        if hosts:
            labels = {"instance"}.union(*(labels_of_host(name) for name in hosts))
        if groups:
            labels = OF_GROUPS
        assert set(LEGEND.findall(query.legend)) <= labels


def test_a_panel_names_metrics_that_exist() -> None:
    assert offenders(names_metrics_that_exist, PANELS) == {}


def test_rows_tell_which_software_fills_them() -> None:
    for dashboard in DASHBOARDS.values():
        for row in dashboard.rows:
            for panel in row.panels:
                if row.title == STANDARD:
                    assert LIBRDKAFKA not in panel.missing
                if row.title.endswith(JAVA_ONLY):
                    assert panel.no_value.startswith("not asked for (preset ")
                    assert panel.no_value.endswith("), or not sent by librdkafka")
                    assert JAVA not in panel.missing


def test_a_dashboard_says_which_presets_fill_it() -> None:
    said = {name: content(each)["description"].partition("Needs ")[2] for name, each in DASHBOARDS.items()}

    assert said == {
        "fleet": "subscriptions with these presets: essential, consumer, producer.",
        "client": "subscriptions with these presets: essential, consumer, producer.",
        "library-versions": "subscriptions with these presets: essential.",
        "groups": "",
        "host": "",
    }
    for _, panel in PANELS:
        names = {metric.name for query in panel.queries for metric in metrics_in(query.expr)}
        mine = {name for name in names if name.startswith((PRODUCER, CONSUMER))}
        asked = [prefix for name in panel.presets for prefix in PRESETS[name].metrics]
        assert {name for name in mine if not selects(asked, name)} == set()
        assert bool(panel.presets) is bool(mine)


def test_the_fleet_answers_the_question_of_each_alert() -> None:
    titles = {panel.title for name, panel in PANELS if name == "fleet"}

    assert {alert.question for alert in alerts(INTERVAL_S)} <= titles


def test_a_line_of_a_client_leads_to_its_dashboard() -> None:
    (link,) = {
        link["url"].partition("?")[0]
        for panel in content(DASHBOARDS["fleet"])["panels"]
        if panel["type"] == "timeseries" and "{{client_id}}" in panel["targets"][0]["legendFormat"]
        for link in panel["fieldConfig"]["defaults"]["links"]
    }

    found = content(DASHBOARDS["client"])
    assert link == f"/d/{found['uid']}"
    assert {"client_id", "client_instance_id"} <= {each["name"] for each in found["templating"]["list"]}


def test_the_runbook_shows_panels_of_each_dashboard() -> None:
    text = page("reference/runbook.md")

    assert pictures.SHOWN.keys() == DASHBOARDS.keys() - {"groups"}
    for name, titles in pictures.SHOWN.items():
        assert set(titles) <= {panel.title for each, panel in PANELS if each == name}
        assert (pictures.FOLDER / f"{name}.png").exists()
        assert f"](../pictures/{name}.png)" in text


def test_a_panel_of_a_standard_metric_is_for_all_software() -> None:
    shown = {
        metric.name
        for _, panel in PANELS
        if LIBRDKAFKA not in panel.missing
        for query in panel.queries
        for metric in metrics_in(query.expr)
    }

    assert {name for name, metric in client_metrics().items() if metric.standard} <= shown
    ours = (OBSERVED, "kafka_client_", "odradek_client_")
    assert all(name.startswith((PREFIX, *ours)) for name in shown)
