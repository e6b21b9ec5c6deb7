"""Unit tests of the rules for ``promtool test rules``.

For each alert there is a client that makes it fire, one that is just below its threshold, and one that is
just below and reports the metrics of two levels, of which a careless sum would count everything twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Final

from contrib.grafana.alerts import Alert, alerts, identity
from contrib.grafana.causes import alert_labels
from contrib.grafana.conditions import INCIDENTS_S, TERMINATED, is_incident
from contrib.grafana.promql import duration, has_two_levels, number, series_name, window_s
from contrib.grafana.rules import written

from odradek.findings.client_metrics import client_metrics
from odradek.findings.troubles import BY_ID, CONSUMER, COORDINATOR, FETCH, JAVA, PRODUCER, Trouble

SOFTWARE: Final = {"client_software_name": JAVA, "client_software_version": "4.3.1"}
SCRAPE: Final = {"instance": "host:9464", "job": "kafka-clients"}
STEPS: Final = 45
AT_STEP: Final = 40
"""The longest alert looks back 15 minutes and waits as long."""
LABEL: Final = re.compile(r"\$labels\.(\w+)")
FIRES, BELOW, TWO_LEVELS = "fires", "below", "two-levels"
OVER, UNDER, TWICE = 1.02, 0.98, 0.97
"""Shares of the threshold that these clients have."""
LAG: Final = 4_821
"""Records that a group has not read."""


@dataclass(frozen=True, slots=True)
class Series:
    """One series of input: a name in OTLP or Prometheus, labels besides the client's, and its values."""

    name: str
    values: str
    labels: dict[str, str]


def constant(name: str, value: float, /, **labels: str) -> Series:
    return Series(name, f"{number(value)}x{STEPS}", labels)


def growing(name: str, by: float, /, **labels: str) -> Series:
    """A series that grows by so much in each step, from 1 100."""
    return Series(name, f"1100+{number(by)}x{STEPS}", labels)


def facts(client: str, name: str) -> dict[str, str]:
    """The labels of a client on a series: a consumer has a group, a producer transactions."""
    return dict.fromkeys(identity(name), client) | SOFTWARE


def labeled(name: str, labels: Mapping[str, str]) -> str:
    """A series in the notation of Prometheus."""
    return name + "{" + ",".join(f'{key}="{value}"' for key, value in sorted(labels.items())) + "}"


def notation(client: str, series: Series) -> dict[str, str]:
    """A series of input for promtool."""
    known = client_metrics().get(series.name)
    name = series_name(known) if known else series.name
    labels = facts(client, series.name) | SCRAPE | series.labels
    return {"series": labeled(name, labels), "values": series.values}


def of_trouble(trouble: Trouble, interval_s: int, share: float) -> Iterator[Series]:
    """A client at a share of the threshold: 1.02 of it is beyond, 0.98 is below."""
    metric = trouble.metrics[JAVA]
    labels = dict.fromkeys(trouble.labels, "1")
    per_step = trouble.threshold * (interval_s / trouble.over_s if trouble.over_s and not trouble.per else 1)
    if trouble.per:
        per_step *= 1_000
        yield (growing if trouble.over_s else constant)(trouble.per, 1_000)
    for each in trouble.also:
        yield constant(each.metric, each.threshold)
    side = share if trouble.op.startswith(">") else 2 - share
    value = per_step * side if trouble.threshold else max(0.0, side - 1) * 25
    yield (growing if trouble.over_s else constant)(metric, value, **labels)


def lag(_: int, share: float, moves: bool) -> Iterator[Series]:
    """A consumer in trouble, or one whose lag shrinks sometimes."""
    place = {"topic": "orders", "partition": "0"}
    trouble = (growing if moves else constant)(FETCH + "records.lag", 20, **place)
    yield trouble if share > 1 else Series(FETCH + "records.lag", "10 20 " * STEPS, place)
    yield constant(FETCH + "records.lag", 0, topic="orders", partition="1")
    yield growing(FETCH + "records.consumed.total", 10 * moves, topic="orders")


def group(_: int, share: float, progress: str) -> Iterator[Series]:
    """A group with members, which moves so or catches up."""
    found = {"group": f"group-{share}", "topic": "orders"}
    yield constant("odradek_group_progress", 1, progress=progress if share > 1 else "catching up", **found)
    yield constant("odradek_group_topic_lag_sum", LAG, **found)
    yield constant("odradek_group_members", 2, group=found["group"])


def silent(_: int, share: float) -> Iterator[Series]:
    """A client that ends, one that goes on, and one that ends with a goodbye."""
    is_closed = share == TWICE
    values = f"{int(is_closed)}x{AT_STEP - 5} stale" if share > 1 or is_closed else f"0x{STEPS}"
    yield Series(TERMINATED, values, {})


def rebalances(_: int, share: float) -> Iterator[Series]:
    """Two members of a group that stay."""
    for member in "12":
        labels = {"client_instance_id": member}
        yield constant(TERMINATED, 0, **labels)
        yield growing(COORDINATOR + "rebalance.total", share > 1, **labels)


def broker(_: int, share: float) -> Iterator[Series]:
    """Three producers of a broker."""
    for instance, latency_ms in zip("123", (2_000, 2_000 if share > 1 else 500, 500), strict=True):
        labels = {"client_instance_id": instance, "node_id": str(share)}
        yield constant(PRODUCER + "node.request.latency.avg", latency_ms, **labels)


SPECIAL: Final[Mapping[str, Callable[[int, float], Iterator[Series]]]] = {
    "silent": silent,
    "rebalance-storm": rebalances,
    "slow-broker": broker,
    "group-behind": partial(group, progress="falling behind"),
    "group-stalled": partial(group, progress="stalled"),
    "behind": partial(lag, moves=True),
    "stalled": partial(lag, moves=False),
}
"""The series of alerts that are not troubles of one metric, by push interval and share of the threshold."""


def two_levels() -> Iterator[Series]:
    """The metrics that are reported for the client and again for each topic or partition."""
    for metric in client_metrics().values():
        for level in metric.levels if has_two_levels(metric) else ():
            yield growing(metric.name, 60, **dict.fromkeys(level, "0"))


def rendered(text: str, labels: Mapping[str, str]) -> str:
    """A template of a rule's label with the labels of the client."""
    found = LABEL.findall(text)
    return labels[found[0]] if found else text


def expected(alert: Alert, client: str, series: list[Series]) -> str:
    """The labels of the alert that fires, in the notation of series."""
    own = facts(client, series[0].name)
    for each in series:
        own |= each.labels
    labels = {label: own[label] for label in alert.labels}
    labels |= {name: rendered(text, own) for name, text in alert_labels(alert).items()}
    labels |= {"alertname": alert.name, "alertstate": "firing"}
    return labeled("ALERTS", labels)


def alert_test(alert: Alert, interval_s: int) -> dict[str, Any]:
    if alert.id in BY_ID and is_incident(BY_ID[alert.id]):
        interval_s = min(interval_s, INCIDENTS_S // 2)  # they do not come with pushes

    def at(share: float) -> list[Series]:
        own = SPECIAL.get(alert.id)
        return list(own(interval_s, share) if own else of_trouble(BY_ID[alert.id], interval_s, share))

    fires, below, twice = at(OVER), at(UNDER), chain(at(TWICE), two_levels())
    given = [(FIRES, each) for each in fires] + [(BELOW, each) for each in below]
    given += [(TWO_LEVELS, each) for each in twice]
    return {
        "name": alert.name,
        "interval": duration(interval_s),
        "input_series": [notation(client, each) for client, each in given],
        "promql_expr_test": [
            {
                "expr": f'ALERTS{{alertname="{alert.name}",alertstate="firing"}}',
                "eval_time": duration(AT_STEP * interval_s),
                "exp_samples": [{"labels": expected(alert, FIRES, fires), "value": 1}],
            }
        ],
    }


def text_test(interval_s: int) -> dict[str, Any]:
    """The texts of alerts, as people read them in a place that Prometheus knows."""
    known_alerts = {each.id: each for each in alerts(interval_s)}
    alert, of_group = known_alerts["slow-commits"], known_alerts["group-stalled"]
    own = {**dict.fromkeys(alert.labels, FIRES), **SOFTWARE}
    stalled = {"group": f"group-{OVER}", "topic": "orders"}
    place = {"client_source_address": "10.1.2.3", "client_source_port": "5000"}
    given = [
        constant(COORDINATOR + "commit.latency.max", 6_200),
        Series("kafka_client_info", f"1x{STEPS}", place),
    ]
    known = {
        "kafka_bootstrap": "kafka1:9092",
        "runbook_base": "https://wiki/runbook",
        "console_base": "https://console",
    }
    return {
        "name": "texts",
        "interval": duration(interval_s),
        "external_labels": known,
        "input_series": [notation(FIRES, each) for each in (*given, *group(interval_s, OVER, "stalled"))],
        "alert_rule_test": [
            {
                "alertname": alert.name,
                "eval_time": duration(AT_STEP * interval_s),
                "exp_alerts": [
                    {
                        "exp_labels": own | {"severity": "warning", "cause": "client", "cause_key": FIRES},
                        "exp_annotations": {
                            "summary": f"{FIRES} (group {FIRES}) commits offsets slowly: 6200 ms "
                            f"({alert.condition})",
                            "description": alert.advice,
                            "address": "10.1.2.3:5000 ",
                            "next_step": "odradek watch --bootstrap-server kafka1:9092 "
                            f"--instance={FIRES} --metrics {CONSUMER}",
                            "runbook_url": "https://wiki/runbook#slow-commits",
                            "console_url": f"https://console/clients/{FIRES}",
                        },
                    }
                ],
            },
            {
                "alertname": of_group.name,
                "eval_time": duration(AT_STEP * interval_s),
                "exp_alerts": [
                    {
                        "exp_labels": stalled
                        | {"severity": "warning", "cause": "group", "cause_key": stalled["group"]},
                        "exp_annotations": {
                            "summary": f"The group {stalled['group']} has stopped reading orders: "
                            f"4.821k records ({of_group.condition})",
                            "description": of_group.advice,
                            "next_step": "odradek groups --bootstrap-server kafka1:9092 --describe --members "
                            f"--group {stalled['group']}",
                            "runbook_url": "https://wiki/runbook#group-stalled",
                            "console_url": f"https://console/groups/{stalled['group']}",
                        },
                    }
                ],
            },
        ],
    }


def alert_tests(interval_s: int) -> str:
    """``client-alerts.test.yml``."""
    return written(
        {
            "rule_files": ["client-alerts.yml"],
            "evaluation_interval": duration(interval_s),
            "tests": [
                *(alert_test(alert, interval_s) for alert in alerts(interval_s)),
                text_test(interval_s),
            ],
        }
    )


def recording_test(interval_s: int) -> dict[str, Any]:
    """Two instances of a client: rates are added by level, maxima are not."""
    window = duration(window_s(interval_s))
    total, largest = FETCH + "records.consumed.total", FETCH + "records.lag.max"
    given = [
        growing(name, interval_s * rate, client_instance_id=instance, **level)
        for instance, rate in (("1", 1), ("2", 2))
        for name in (total, largest)
        for level in ({}, {"topic": "orders"})
    ]
    recorded = {
        f"app:{series_name(client_metrics()[total])}:rate{window}": 3,
        f"app:{series_name(client_metrics()[largest])}": 1_100 + 2 * interval_s * AT_STEP,
    }
    own = facts(FIRES, total) | {"job": SCRAPE["job"]}
    del own["client_instance_id"]
    return {
        "name": "by-app",
        "interval": duration(interval_s),
        "input_series": [notation(FIRES, each) for each in given],
        "promql_expr_test": [
            {
                "expr": name,
                "eval_time": duration(AT_STEP * interval_s),
                "exp_samples": [
                    {"labels": labeled(name, own | level), "value": value}
                    for level in ({}, {"topic": "orders"})
                ],
            }
            for name, value in recorded.items()
        ],
    }


def recording_tests(interval_s: int) -> str:
    """``client-recording.test.yml``."""
    return written(
        {
            "rule_files": ["client-recording.yml"],
            "evaluation_interval": duration(interval_s),
            "tests": [recording_test(interval_s)],
        }
    )
