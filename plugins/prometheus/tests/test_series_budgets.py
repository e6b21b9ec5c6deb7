"""Series over budget, as Prometheus gets them."""

from __future__ import annotations

import logging

import pytest

from odradek.plugin import ConfigError, PluginConfig
from odradek.settings import read_settings
from odradek.temporality.budgets.policy import BudgetLimits
from odradek_prometheus.apps import Apps, read_apps
from odradek_prometheus.text_format import Format, Page
from support.budget_clients import instance
from support.delta_clients import counter, d, gauge, ms, point
from support.exposed_clients import Exposed, names


def shown(exposed: Exposed) -> dict[tuple[str, ...], float]:
    """All series by name, client, principal and app."""
    found: dict[tuple[str, ...], float] = {}
    for client in exposed.exposition.clients():
        for series in client.series():
            labels = dict(series.labels)
            key = (series.family.name, labels["client_id"], labels["principal"], labels.get("app", ""))
            found[key] = series.value
    return found


def push(exposed: Exposed, number: int, value: float = 1, at: float = 60, client_id: str = "") -> list[str]:
    update = exposed.push(
        d(value, at - 60, at),
        gauge(number, time=at),
        at=at,
        instance=instance(number),
        labels={"client_id": client_id or f"shop-{number}"},
        context={"client_id": client_id or f"shop-{number}"},
    )
    return names(update.ended)


def test_clients_over_budget_are_one_instance_without_facts_of_its_own() -> None:
    exposed = Exposed(budgets=BudgetLimits(app_series=2))
    push(exposed, 1)

    push(exposed, 2, 5)
    push(exposed, 3, 7)

    user = "User:ANONYMOUS"
    assert shown(exposed) == {
        ("c_total", "shop-1", user, ""): 1,
        ("g", "shop-1", user, ""): 1,
        ("c_total", "other", user, "shop"): 12,
        ("g", "other", user, "shop"): 2,
    }
    page = b"".join(Page(exposed.exposition.clients(), ms(61), Format(openmetrics=False)).pieces()).decode()
    assert page.count("kafka_client_info{") == 1
    assert 'c_total{app="shop",client_id="other",client_instance_id="other"' in page


def test_a_restart_shows_the_same_series_and_goes_on() -> None:
    exposed = Exposed(budgets=BudgetLimits(app_series=2))
    for number in (1, 2, 3):
        push(exposed, number, 5)
    before = shown(exposed)

    exposed.restart(61)
    again = shown(exposed)
    push(exposed, 2, 1, at=120)

    assert again == before
    assert shown(exposed)["c_total", "other", "User:ANONYMOUS", "shop"] == 11


def test_a_client_that_returns_over_budget_has_ended_before() -> None:
    exposed = Exposed(budgets=BudgetLimits(app_series=2))
    push(exposed, 1)
    for at in range(60, 420, 60):
        push(exposed, 2, at=at)
    exposed.expire(400)

    push(exposed, 1, 4, at=460)

    assert shown(exposed)["c_total", "other", "User:ANONYMOUS", "shop"] == 6 + 4
    assert ("c_total", "shop-1", "User:ANONYMOUS", "") not in shown(exposed)


def test_the_first_points_of_other_are_new_once() -> None:
    exposed = Exposed(budgets=BudgetLimits(app_series=2))
    push(exposed, 1)
    is_new = []

    for at in (60, 120, 180):
        if at == 180:
            exposed.restart(130)
        update = exposed.push(d(1, at - 60, at), at=at, instance=instance(2), context={"client_id": "shop-2"})
        [other] = update.touched
        is_new.append(other.is_new(0))

    assert is_new == [True, False, False]


def test_other_ends_when_its_clients_are_silent() -> None:
    exposed = Exposed(budgets=BudgetLimits(app_series=2))
    push(exposed, 1)
    push(exposed, 2)

    assert names(exposed.expire(60 + 154)) == []
    assert sorted(names(exposed.expire(60 + 156))) == ["c_total", "c_total", "g", "g"]


def test_a_budget_that_is_exceeded_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    exposed = Exposed(budgets=BudgetLimits(app_series=2))
    push(exposed, 1)

    with caplog.at_level(logging.WARNING):
        push(exposed, 2)
        push(exposed, 3)

    [record] = [each for each in caplog.records if "over budget" in each.getMessage()]
    assert record.getMessage() == "series over budget are part of others"
    assert (record.__dict__["budget"], record.__dict__["scope"]) == ("app", "User:ANONYMOUS/shop")


def test_labels_over_budget_keep_their_name() -> None:
    exposed = Exposed(budgets=BudgetLimits(label_values=1))

    exposed.push(counter(*[point(1, 0, 60, {"user": f"u{number}"}) for number in range(3)]))

    found = {dict(series.labels)["user"]: series.value for series in exposed.series()}
    assert found == {"u0": 1, "other": 2}


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"client_id": "shop-12"}, "shop"),
        ({"client_id": "shop"}, "shop"),
        ({"client_id": "shop-c0ffee00-0000-4000-8000-00000000c0de"}, "shop"),
        ({"client_id": "shop-12", "group_id": "billing"}, "billing"),
        ({"client_id": "batch-7", "principal": "User:etl"}, "nightly"),
        ({}, ""),
    ],
)
def test_the_app_of_a_client(attributes: dict[str, str], expected: str) -> None:
    rules = read_apps(PluginConfig("prometheus", {"budget.apps.nightly": "principal=^User:etl$"}))

    assert rules.app(attributes) == expected


def test_the_settings_of_budgets() -> None:
    values = {
        "budget.series": 1,
        "budget.principal.series": 2,
        "budget.app.series": 3,
        "budget.client.series": 4,
        "budget.label.values": 0,
        "budget.over": "refuse",
    }

    assert read_settings(BudgetLimits, PluginConfig("prometheus", values)) == BudgetLimits(
        series=1, principal_series=2, app_series=3, client_series=4, label_values=0, refuse=True
    )
    assert read_settings(BudgetLimits, PluginConfig("prometheus", {})) == BudgetLimits()


@pytest.mark.parametrize("text", ["shop", "user=x", "client_id=("])
def test_a_rule_of_an_app_that_is_none(text: str) -> None:
    with pytest.raises(ConfigError, match=r"budget\.apps\.shop: expected"):
        read_apps(PluginConfig("prometheus", {"budget.apps.shop": text}))


def test_no_rules() -> None:
    assert read_apps(PluginConfig("prometheus", {})) == Apps()
