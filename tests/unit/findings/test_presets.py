"""Presets ask for metrics that clients have, and the one for all clients for those that the alerts need."""

from __future__ import annotations

import pytest
from contrib.grafana.alerts import alerts
from contrib.grafana.promql import INTERVAL_S, metrics_in

from odradek.findings.client_metrics import MADE_BY, client_metrics
from odradek.findings.incidents import OBSERVED
from odradek.findings.presets import (
    ESSENTIAL,
    EVERYTHING,
    PRESETS,
    STREAMS,
    UnknownPreset,
    expanded,
    metrics_text,
    prefixes_of,
    selects,
)
from odradek.findings.troubles import TROUBLES
from odradek.gateway.observation.names import ALL_NAMES

CLIENTS = {each.name for each in client_metrics().values() if MADE_BY not in each.software}
KNOWN = CLIENTS | {*ALL_NAMES}


def test_the_alerts_need_nothing_but_essential_metrics() -> None:
    needed = {
        metric.name
        for alert in alerts(INTERVAL_S)
        for metric in metrics_in(alert.expr)
        if MADE_BY not in metric.software
    }
    needed |= {name for each in TROUBLES for name in (*each.metrics.values(), each.per) if name in KNOWN}

    needed = {name for name in needed if not name.startswith(OBSERVED)}  # no subscription selects incidents

    assert len(needed) > len(TROUBLES) / 2
    assert {name for name in needed if not selects(PRESETS["essential"].metrics, name)} == set()


@pytest.mark.parametrize("name", PRESETS)
def test_each_prefix_selects_a_metric_that_clients_have(name: str) -> None:
    prefixes = set(PRESETS[name].metrics) - {STREAMS, EVERYTHING}

    assert {each for each in prefixes if not any(known.startswith(each) for known in KNOWN)} == set()


@pytest.mark.parametrize("name", PRESETS)
def test_no_prefix_is_part_of_another(name: str) -> None:
    metrics = PRESETS[name].metrics

    assert [each for each in metrics if sum(each.startswith(other) for other in metrics) != 1] == []


def test_a_preset_of_a_role_answers_what_essential_does_for_it() -> None:
    essential = [each for each in CLIENTS if selects(PRESETS["essential"].metrics, each)]

    for role in ("producer", "consumer"):
        own = [each for each in essential if each.startswith(f"org.apache.kafka.{role}.")]
        assert own
        assert [each for each in own if not selects(PRESETS[role].metrics, each)] == []
    assert {*ESSENTIAL} < {*PRESETS["streams"].questions}


def test_a_preset_stands_for_its_metrics_and_its_interval() -> None:
    found = expanded({"preset": "debug", "match": "client_id=a"})
    faster = expanded({"preset": "debug", "interval.ms": "1000"})

    assert found == {
        "metrics": "org.apache.kafka.,io.odradek.observed.client.",
        "interval.ms": "10000",
        "match": "client_id=a",
    }
    assert faster["interval.ms"] == "1000"
    assert expanded({"metrics": "a."}) == {"metrics": "a."}


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"preset": "most"}, "expected one of essential, consumer, .*, found 'most'"),
        ({"preset": "all", "metrics": "a."}, "expected either preset or metrics, found both"),
    ],
)
def test_a_wrong_preset_is_refused(properties: dict[str, str], message: str) -> None:
    with pytest.raises(UnknownPreset, match=message):
        expanded(properties)


def test_people_read_the_name_of_a_preset_instead_of_its_prefixes() -> None:
    stored = ",".join(reversed(prefixes_of("essential")))

    assert metrics_text(stored) == "essential"
    assert metrics_text("a., b.") == "a., b."
    assert prefixes_of("a., b.") == ("a.", "b.")
    assert metrics_text("essential") == "essential"
