"""Who writes and reads a topic, which ones nobody uses, and which groups were abandoned."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from odradek.client.errors import ClientError
from odradek.lag.group_lag import GroupLag, Owner, PartitionLag, TopicLag
from odradek.lag.report import group_points, payloads
from odradek.lag.standing import Ends, standing
from odradek.plugin import LAG_SOURCE, ClientTelemetryPayload
from odradek_console.cluster_rows import TopicListing
from odradek_console.reading.cluster_view import ClusterView
from odradek_console.view import View
from odradek_console.web.app import make_app
from odradek_console.web.console import Console, make_console
from support.console_client import no_cluster, page_client
from support.delta_clients import counter, point
from support.watched_clients import WatchedClients, ms, total

NOW_S = 185
SENT, READ = "producer.topic.record.send.total", "consumer.fetch.manager.records.consumed.total"
DAY_S = 86_400
OTHER = {"client_software_name": "sarama", "client_software_version": "1.43"}


class Cluster(ClusterView):
    """A cluster with five topics."""

    listed: list[TopicListing] | None = None

    def topics(self) -> list[TopicListing]:
        if self.listed is None:
            raise ClientError("no broker answers")
        return self.listed


def listing(name: str, ago_s: float | None) -> TopicListing:
    return TopicListing(name=name, partitions=3, last_ms=None if ago_s is None else ms(NOW_S - ago_s))


@pytest.fixture
def console() -> Console:
    view = View(no_cluster, now_ms=lambda: ms(NOW_S))
    clients = WatchedClients(view.fleet)
    for at in (60, 120, 180):
        clients.push(at, total(SENT, 600, at, at - 60, topic="a.orders"), instance=b"A" * 16)
        clients.push(
            at,
            total(READ, 300, at, at - 60),
            total(READ, 300, at, at - 60, topic="a_orders"),  # as Java consumers before 4.1 name it
            instance=b"B" * 16,
            client_id="billing-0",
            client_address="10.0.0.1",
            group_id="billing",
        )
        seen = counter(
            point(60, at - 60, at, {"topic": "logs"}), name="io.odradek.observed.client.topic.produce.records"
        )
        clients.push(at, seen, instance=b"C" * 16, client_id="logger", observed=True, **OTHER)
    groups = [
        (
            "billing",
            "Stable",
            2,
            {0: Owner("m0", "billing-0", "10.0.0.1"), 1: Owner("m1", "kafkajs", "10.0.0.2")},
            "a.orders",
        ),
        ("old-report", "Empty", 0, {}, "stock"),
    ]
    for number, (name, state, members, owners, topic) in enumerate(groups):
        lags = [PartitionLag(index, 90, standing(90, Ends(0, 100, 100)), 1_500) for index in range(2)]
        lag = TopicLag(partitions=lags, assigned=len(owners), owners=owners)
        group = GroupLag(group=name, type="classic", state=state, members=members, topics={topic: lag})
        for data in payloads(group_points(group), ms(180), "east"):
            record = clients.record(180)
            record.source, record.payload = (
                LAG_SOURCE,
                ClientTelemetryPayload(bytes([number]) * 16, False, data),
            )
            view.fleet.add(record)
    view.fleet.lags.read(ms(NOW_S))
    found = make_console(view, no_cluster, "localhost:9092")
    found.now_ms = view.now_ms
    cluster = found.cluster = Cluster(no_cluster, "t")
    cluster.listed = [
        listing("a.orders", 1),
        listing("logs", 1),
        listing("stock", 30 * DAY_S),
        listing("forgotten", 40 * DAY_S),
        listing("empty", None),
        listing("strange", 60),
    ]
    return found


@pytest.fixture
def pages(console: Console) -> TestClient:
    return page_client(make_app(console))


def rows(pages: TestClient) -> dict[str, dict[str, Any]]:
    return {each["topic"]: each for each in pages.get("/api/v1/topics").json()["topics"]}


def test_whether_a_topic_is_used(pages: TestClient) -> None:
    assert {name: row["usage"] for name, row in rows(pages).items()} == {
        "a.orders": "used",
        "logs": "not read",
        "stock": "unused",
        "forgotten": "unused",
        "empty": "unused",
        "strange": "not read",  # somebody writes it of whom nobody tells
    }


def test_writers_readers_groups_and_their_figures(pages: TestClient) -> None:
    orders, stock = rows(pages)["a.orders"], rows(pages)["stock"]

    assert (orders["writers"], orders["readers"], orders["written"], orders["read"]) == (1, 2, 10, 5)
    assert (orders["groups"], orders["abandoned"], orders["lag"]) == (["billing"], [], 20)
    assert (stock["groups"], stock["abandoned"]) == (["old-report"], ["old-report"])


def test_a_topic_has_those_that_use_it_also_members_that_are_no_known_clients(pages: TestClient) -> None:
    uses = pages.get("/api/v1/topics/a.orders").json()["uses"]

    assert [(each["client_id"], each["use"], each["source"], each["rate"]) for each in uses] == [
        ("orders-1", "writes", "pushed", 10),
        ("billing-0", "reads", "pushed", 5),
        ("kafkajs", "reads", "measured", None),
    ]


def test_the_pages_link_to_clients_and_groups(pages: TestClient) -> None:
    all_topics, topic = pages.get("/topics").text, pages.get("/topics/stock").text

    assert '<a href="/topics/a.orders">' in all_topics
    assert "30d ago" in topic
    assert '<a href="/groups/old-report">old-report</a> (abandoned)' in topic
    assert '<a href="/clients/QUFB' in pages.get("/topics/a.orders").text


def test_without_the_cluster_there_are_the_topics_that_clients_tell_of(
    console: Console, pages: TestClient
) -> None:
    console.cluster.listed = None  # type: ignore[attr-defined]

    assert "Only topics that clients or groups tell of are here" in pages.get("/topics").text
    assert {name: row["usage"] for name, row in rows(pages).items()} == {
        "a.orders": "used",
        "logs": "not read",
        "stock": "not known",
    }


def test_nobody_is_said_to_read_nothing_where_no_group_is_measured(
    console: Console, pages: TestClient
) -> None:
    for instance in list(console.view.fleet.lags.reports):
        console.view.fleet.lags.forget(instance)

    usages = {name: row["usage"] for name, row in rows(pages).items()}

    assert (usages["a.orders"], usages["logs"], usages["stock"]) == ("used", "not known", "not known")
    assert "The lag of groups is not measured" in pages.get("/topics").text


def test_a_topic_that_nobody_knows(pages: TestClient) -> None:
    assert pages.get("/topics/nothing").status_code == 404
    assert pages.get("/api/v1/topics/nothing").status_code == 404


def test_a_client_that_is_gone_writes_no_longer(console: Console, pages: TestClient) -> None:
    clients = WatchedClients(console.view.fleet)
    clients.next_offset = 1_000
    clients.push(NOW_S, instance=b"A" * 16, terminating=True)

    assert rows(pages)["a.orders"]["writers"] == 0
    assert pages.get("/api/v1/topics/a.orders").json()["uses"][0]["state"] == "gone"
