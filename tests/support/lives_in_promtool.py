"""Lives of clients as a test of promtool: series as a scrape sees them, and as remote write sends them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, Literal

from contrib.grafana.conditions import TERMINATED
from contrib.grafana.promql import series_name
from contrib.grafana.rule_tests import labeled

from odradek.findings.client_metrics import client_metrics
from odradek.temporality.clients import silence_ms
from support.client_lives import Actor, ClientLife, Told

Way = Literal["scrape", "remote-write"]
STEP_S: Final = 10
LINGER_S: Final = 300
"""After a goodbye, a scrape sees the last values for so long."""
NONE, STALE = "_", "stale"


def life_test(life: ClientLife, way: Way) -> dict[str, Any]:
    """One test: no alert but those that are told, from when to when."""
    end_s = int(life.until_s) + 100
    return {
        "name": f"{life.name} {way}",
        "interval": f"{STEP_S}s",
        "input_series": [series for actor in life.actors for series in of_actor(actor, life, way, end_s)],
        "promql_expr_test": list(asked(life, end_s)),
    }


def of_actor(actor: Actor, life: ClientLife, way: Way, end_s: int) -> Iterator[dict[str, str]]:
    pushes = list(actor.pushes(life.interval_s, life.until_s, life.away))
    if not pushes:
        return
    closes = actor.end is not None and not actor.is_killed
    own = {
        "client_id": actor.name,
        "client_instance_id": actor.name,
        "client_software_name": "apache-kafka-java",
        "client_software_version": "4.3.1",
        "principal": f"User:{actor.name}",
    }
    if actor.group:
        own["group_id"] = actor.group
    if way == "scrape":
        own |= {"instance": "host:9464", "job": "clients"}
    ended = {at: float(closes and at == pushes[-1]) for at in pushes}
    yield {"series": labeled(TERMINATED, own), "values": samples(ended, closes, life, way, end_s)}
    for (name, labels), value in actor.values.items():
        metric = series_name(client_metrics()[f"org.apache.kafka.{name}"])
        values = samples({at: value(at) for at in pushes}, closes, life, way, end_s)
        yield {"series": labeled(metric, own | dict(labels)), "values": values}


def samples(values: dict[float, float], closes: bool, life: ClientLife, way: Way, end_s: int) -> str:
    """The samples of a series in each step: after its last push it ends."""
    by_step = {math.ceil(at / STEP_S): value for at, value in values.items()}
    found, last, seen_s = [], "", 0
    silence_s = silence_ms(int(life.interval_s * 1000)) / 1000
    for step in range(end_s // STEP_S + 1):
        at = step * STEP_S
        is_new = step in by_step
        if is_new:
            last, seen_s = f"{by_step[step]:.6g}", at
        is_over = closes and step >= max(by_step)
        ends_s = (LINGER_S if way == "scrape" else STEP_S) if is_over else silence_s
        if last and not is_new and at - seen_s >= ends_s:
            found.append(STALE)
            last = ""
        else:
            is_away = any(begin <= at < begin + long for begin, long in life.away.items())
            found.append(last if last and (is_new or way == "scrape") and not is_away else NONE)
    return " ".join(found)


def alert_name(told: Told) -> str:
    """The alert about a client, or about what several have in common."""
    begin = "KafkaClients" if told.many_of and told.id != "slow-broker" else "KafkaClient"
    return begin + "".join(map(str.capitalize, told.id.split("-")))


def asked(life: ClientLife, end_s: int) -> Iterator[dict[str, Any]]:
    """The alerts that have fired until the end, and those that fire at some times."""
    told = life.told
    name = alert_name(told) if told is not None else ""
    fired = [{"labels": labeled("", {"alertname": name}), "value": 1}] if told is not None else []
    yield {
        "expr": f'group by (alertname) (count_over_time(ALERTS{{alertstate="firing"}}[{end_s}s]))',
        "eval_time": f"{end_s}s",
        "exp_samples": fired,
    }
    if told is None or told.alert_by_s is None:
        return
    firing = 'group by (alertname) (ALERTS{alertstate="firing"})'
    yield {"expr": firing, "eval_time": f"{told.alert_by_s:g}s", "exp_samples": fired}
    yield {"expr": firing, "eval_time": f"{told.begins_s:g}s", "exp_samples": []}
    if told.over_s is not None:
        yield {"expr": firing, "eval_time": f"{told.over_s + 120:g}s", "exp_samples": []}
