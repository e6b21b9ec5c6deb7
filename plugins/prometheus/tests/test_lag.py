"""The lag of groups as series: its labels, and the end of those that are gone."""

from __future__ import annotations

from odradek.lag.group_lag import GroupLag, PartitionLag, TopicLag
from odradek.lag.report import ended, group_points, payloads
from odradek.lag.standing import Ends, standing
from support.exposed_clients import Exposed

NOW_MS = 1_700_000_000_000


def group(*topics: str) -> GroupLag:
    read = PartitionLag(0, 40, standing(40, Ends(0, 100, 100)), 12_500)
    lag = TopicLag(partitions=[read])
    return GroupLag(group="g", type="classic", state="Empty", members=0, topics=dict.fromkeys(topics, lag))


def test_a_lag_has_the_cluster_and_ends_with_its_topic() -> None:
    exposed, both, one = Exposed(), group("orders", "bills"), group("bills")
    nobody = {"client_id": None, "client_software_name": "odradek", "client_address": ""}
    for data in payloads(group_points(both), NOW_MS, "east"):
        exposed.push(data=data, context=nobody)
    shown = {
        (series.family.name, labels["topic"]): (series.value, labels)
        for series in exposed.series()
        if "topic" in (labels := dict(series.labels))
    }

    value, labels = shown["odradek_group_lag", "orders"]
    assert value == 60
    assert {"group", "topic", "partition", "cluster_name"} < labels.keys()
    assert labels["cluster_name"] == "east"
    assert shown["odradek_group_lag_time_seconds", "bills"][0] == 12.5

    for data in payloads(ended(group_points(both), group_points(one)), NOW_MS, "east"):
        exposed.push(data=data, context=nobody)
    assert {dict(each.labels).get("topic") for each in exposed.series()} == {None, "bills"}
