"""The configuration for Alertmanager names alerts and labels that the rules have."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from contrib.grafana.alerts import alerts
from contrib.grafana.causes import CONSEQUENCES, CRITICAL, Consequences, alert_labels
from contrib.grafana.promql import INTERVAL_S

from support.reference_page import ROOT

ALERTS = {alert.id: alert for alert in alerts(INTERVAL_S)}
CONFIG: dict[str, Any] = yaml.safe_load((ROOT / "contrib/alertmanager/client-alerts.yml").read_text())
RULES = [
    rule
    for file in ("alerts.yml", "client-alerts.yml")
    for group in yaml.safe_load((ROOT / "contrib/prometheus" / file).read_text())["groups"]
    for rule in group["rules"]
]
MATCHER = re.compile(r'alertname=~?"([\w|]+)"')
OF_CLUSTER = "cluster_name"


def test_matchers_name_alerts_that_prometheus_sends() -> None:
    names = {rule["alert"] for rule in RULES if "alert" in rule}

    for rule in CONFIG["inhibit_rules"]:
        for matchers in (rule["source_matchers"], rule["target_matchers"]):
            found = [MATCHER.fullmatch(each) for each in matchers]
            assert all(found)
            assert {name for each in found if each for name in each[1].split("|")} <= names


@pytest.mark.parametrize("each", CONSEQUENCES, ids=lambda each: each.cause)
def test_a_cause_and_its_consequences_have_the_labels_in_which_they_agree(each: Consequences) -> None:
    involved = [ALERTS[name] for name in (each.cause, *each.of) if name in ALERTS]

    assert len(involved) >= len(each.of)
    assert {alert.id for alert in involved if not {*each.equal} <= {*alert.labels}} == set()


def test_a_loss_of_records_is_never_held_back_and_no_alert_holds_itself_back() -> None:
    assert ALERTS.keys() > CRITICAL
    assert CRITICAL.isdisjoint(name for each in CONSEQUENCES for name in each.of)
    for each in CONSEQUENCES:
        front, behind = {*each.of}, set[str]()
        while front - behind:
            behind |= front
            front = {name for other in CONSEQUENCES if other.cause in behind for name in other.of}
        assert each.cause not in behind


def test_one_notification_for_one_cause() -> None:
    by = {*CONFIG["route"]["group_by"]}

    assert {"alertname", "cause", "cause_key", OF_CLUSTER} == by
    for alert in ALERTS.values():
        assert {"severity", "cause", "cause_key"} == alert_labels(alert).keys()
    assert {alert_labels(alert)["cause"] for alert in ALERTS.values()} == {
        "broker",
        "client",
        "group",
        "principal",
        "quota",
        "topic",
        "user",
    }
