"""The lag of groups as series: its labels, and the end of those that are gone. A group is no client."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from odradek.lag.group_lag import GroupLag, Owner, PartitionLag, TopicEnds, TopicLag
from odradek.lag.report import Point, ended, group_points, payloads, topic_end_points
from odradek.lag.standing import Ends, standing
from odradek.plugin import LAG_SOURCE
from odradek.temporality.budgets.policy import BudgetLimits
from odradek_prometheus.client_facts import FACTS, client_facts
from odradek_prometheus.compatible_lag import ALIASES
from odradek_prometheus.text_format import Format, Page
from support.delta_clients import A, B, d
from support.exposed_clients import Exposed

NOW_MS = 1_700_000_000_000
NOBODY: dict[str, Any] = {"client_id": None, "client_software_name": "odradek", "client_address": ""}


def group(*topics: str, partitions: int = 1) -> GroupLag:
    where = standing(40, Ends(0, 100, 100))
    read = [PartitionLag(number, 40, where, 12_500) for number in range(partitions)]
    lag = TopicLag(partitions=read)
    return GroupLag(group="g", type="classic", state="Empty", members=0, topics=dict.fromkeys(topics, lag))


def tell(exposed: Exposed, points: Iterable[Point], instance: bytes = A) -> None:
    for data in payloads(points, NOW_MS, "east"):
        record = exposed.record(data=data, context=NOBODY, instance=instance)
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


def test_other_exporters_names_are_on_the_page_if_they_are_asked_for() -> None:
    exposed = Exposed()
    read = [
        PartitionLag(0, 40, standing(40, Ends(50, 100, 100)), 12_500),
        PartitionLag(1, 120, standing(120, Ends(0, 100, 100)), 0),
    ]
    topic = TopicLag(partitions=read, assigned=1, owners={0: Owner("m-1", "billing-1", "10.0.0.1")})
    lag = GroupLag(group="g", type="classic", state="Stable", members=1, topics={"orders": topic})
    tell(exposed, group_points(lag))
    tell(exposed, topic_end_points(TopicEnds("orders", [(0, 50, 100), (1, 0, 100)])), B)
    clients = exposed.exposition.clients()

    def page(*exporters: str) -> dict[str, dict[str, float]]:
        text = b"".join(Page(clients, NOW_MS, Format(), exporters).pieces()).decode()
        return {
            family.name: {"/".join(sample.labels.values()): sample.value for sample in family.samples}
            for family in text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
            if "odradek" not in family.name
        }

    assert page() == {}
    assert page("kafka_exporter") == {
        "kafka_consumergroup_lag": {"east/g/0/orders": 60, "east/g/1/orders": 0},
        "kafka_consumergroup_current_offset": {"east/g/0/orders": 40, "east/g/1/orders": 120},
        "kafka_consumergroup_lag_sum": {"east/g/orders": 60},
        "kafka_consumergroup_current_offset_sum": {"east/g/orders": 160},
        "kafka_consumergroup_members": {"east/g": 1},
        "kafka_topic_partition_current_offset": {"east/0/orders": 100, "east/1/orders": 100},
        "kafka_topic_partition_oldest_offset": {"east/0/orders": 50, "east/1/orders": 0},
        "kafka_topic_partitions": {"east/orders": 2},
    }
    kminion = page("kminion")
    assert kminion["kminion_kafka_consumer_group_info"] == {"east//g///Stable": 1}
    assert kminion["kminion_kafka_consumer_group_topic_members"] == {"east/g/orders": 1}
    burrowed = page("kafka-lag-exporter")
    assert burrowed["kafka_consumergroup_group_lag_seconds"]["billing-1/east/m-1/g/10.0.0.1/0/orders"] == 12.5
    assert burrowed["kafka_consumergroup_group_max_lag"] == {"east/g": 60}
    names = [alias.name for aliases in ALIASES.values() for alias in aliases]
    assert page(*ALIASES).keys() == set(names)
    assert len(set(names)) == len(names)


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
