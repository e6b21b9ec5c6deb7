"""The lag of groups as series: its labels, and the end of those that are gone. A group is no client."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from odradek.lag.group_lag import GroupLag, PartitionLag, TopicLag
from odradek.lag.report import Point, ended, group_points, payloads
from odradek.lag.standing import Ends, standing
from odradek.plugin import LAG_SOURCE
from odradek.temporality.budgets.policy import BudgetLimits
from odradek_prometheus.client_facts import FACTS, client_facts
from support.delta_clients import A, B, d
from support.exposed_clients import Exposed

NOW_MS = 1_700_000_000_000
NOBODY: dict[str, Any] = {"client_id": None, "client_software_name": "odradek", "client_address": ""}


def group(*topics: str, partitions: int = 1) -> GroupLag:
    where = standing(40, Ends(0, 100, 100))
    read = [PartitionLag(number, 40, where, 12_500) for number in range(partitions)]
    lag = TopicLag(partitions=read)
    return GroupLag(group="g", type="classic", state="Empty", members=0, topics=dict.fromkeys(topics, lag))


def tell(exposed: Exposed, points: Iterable[Point]) -> None:
    for data in payloads(points, NOW_MS, "east"):
        record = exposed.record(data=data, context=NOBODY)
        record.source = LAG_SOURCE
        exposed.deliver(record)


def test_a_lag_has_the_cluster_and_ends_with_its_topic() -> None:
    exposed, both, one = Exposed(), group("orders", "bills"), group("bills")
    tell(exposed, group_points(both))
    shown = {
        (series.family.name, labels["topic"]): (series.value, labels)
        for series in exposed.series()
        if "topic" in (labels := dict(series.labels))
    }

    value, labels = shown["odradek_group_lag", "orders"]
    assert value == 60
    assert labels == {"group": "g", "topic": "orders", "partition": "0", "cluster_name": "east"}
    assert shown["odradek_group_lag_time_seconds", "bills"][0] == 12.5

    tell(exposed, ended(group_points(both), group_points(one)))
    assert {dict(each.labels).get("topic") for each in exposed.series()} == {None, "bills"}


def test_a_group_is_no_client_and_has_no_budget_of_clients() -> None:
    exposed = Exposed(budgets=BudgetLimits(app_series=5, client_series=5))
    tell(exposed, group_points(group("orders", partitions=10)))
    exposed.restart(0)
    tell(exposed, group_points(group("orders", partitions=10)))
    exposed.push(d(1, 0, 60), instance=B)

    of_group, of_client = (exposed.exposition.client(each) for each in (A, B))
    assert of_group is not None
    assert of_client is not None
    assert client_facts(of_group, NOW_MS) == []
    assert len(client_facts(of_client, NOW_MS)) == len(FACTS)
    assert len([each for each in of_group.series() if each.family.name == "odradek_group_lag"]) == 10
