"""The page of a client, its JSON and its tables, without a cluster."""

from __future__ import annotations

import csv
import io
import math

import pytest
from starlette.testclient import TestClient

from odradek.client.errors import ClientError
from odradek.findings.presets import PRESETS
from odradek_console.cluster_rows import QuotaRow, SubscriptionRow
from odradek_console.reading.applied_quotas import applied_quotas
from odradek_console.reading.cluster_view import ClusterView
from odradek_console.view import View
from odradek_console.web.app import make_app
from odradek_console.web.console import make_console
from odradek_console.web.pages.runbook import advice
from support.console_client import page_client
from support.watched_clients import WatchedClients, level, ms, total

A, B, C = b"A" * 16, b"B" * 16, b"C" * 16
LIBRDKAFKA = {"client_software_name": "librdkafka", "client_software_version": "2.12.0"}
NOW_S = 905
SENT = "producer.record.send.total"
LATENCY = "producer.node.request.latency.max"


class FakeCluster(ClusterView):
    """A cluster with fixed answers."""

    def __init__(self) -> None:
        super().__init__(lambda: pytest.fail("a page has asked the cluster"), "t")
        self.is_away = False

    def subscriptions(self) -> list[SubscriptionRow]:
        if self.is_away:
            raise ClientError("no broker answers")
        return [
            SubscriptionRow(
                name="producers",
                metrics="org.apache.kafka.producer.record.,org.apache.kafka.producer.node.",
                interval_ms=10_000,
                match="client_id=orders-.*",
                lease_end_s=None,
            ),
            SubscriptionRow(
                name="others", metrics="*", interval_ms=None, match="client_id=x", lease_end_s=None
            ),
        ]

    def quotas(self) -> list[QuotaRow]:
        if self.is_away:
            raise ClientError("no broker answers")
        return [
            QuotaRow(entity=(("user", "ANONYMOUS"),), limits=(("producer_byte_rate", 2000.0),)),
            QuotaRow(entity=(("client-id", "orders-1"),), limits=(("producer_byte_rate", 9000.0),)),
        ]


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def pages(cluster: FakeCluster) -> TestClient:
    """Three clients of an application, of which one waits for a broker."""
    view = View(lambda: pytest.fail("a page has read the topic"), now_ms=lambda: ms(NOW_S))
    clients = WatchedClients(view.fleet)
    for second in range(0, 901, 10):
        for instance, client_id, rate, latency in ((B, "orders-2", 70, 8), (C, "orders-3", 90, 8)):
            clients.push(
                second,
                total(SENT, rate, second, second - 10),
                level(LATENCY, latency, second, node_id="node-1"),
                client_id=client_id,
                instance=instance,
                interval_s=10,
            )
        if not 300 < second < 500:
            clients.push(
                second,
                total(SENT, 20, second, second - 10),
                level(LATENCY, 6000, second, node_id="node-1"),
                level("producer.record.queue.time.avg", math.inf, second),
                instance=A,
                interval_s=10,
            )
    clients.push(
        900,
        level("consumer.poll.idle.ratio.avg", 0.9, 900),
        client_id="a/b",
        instance=b"L" * 16,
        **LIBRDKAFKA,
    )
    console = make_console(view, view.reader.connect, "localhost:9092")
    console.cluster = cluster
    console.now_ms = view.now_ms
    return page_client(make_app(console))


def text_of(pages: TestClient, path: str) -> str:
    found = pages.get(path)
    assert found.status_code == 200, found.text
    return found.text


def test_facts_finding_and_plots(pages: TestClient) -> None:
    found = text_of(pages, "/clients/QUFBQUFBQUFBQUFBQUFBQQ")

    assert "apache-kafka-java 4.3.0" in found
    assert '<a href="/runbook#slow-produce-requests">' in found
    assert '<strong class="bad">6 s</strong>, where the threshold is &gt; 5 s' in found
    assert "threshold of slow-produce-requests" in found
    assert "median of its peers now" in found
    assert "style=" not in found


def test_a_time_without_pushes_is_a_gap(pages: TestClient) -> None:
    found = text_of(pages, "/clients/QUFBQUFBQUFBQUFBQUFBQQ")
    sent = found[found.index('id="plot-1"') :]

    path = sent[sent.index(' d="') :].split('"')[1]
    assert path.count("M") == 2


def test_each_missing_value_has_a_reason(pages: TestClient, cluster: FakeCluster) -> None:
    java = text_of(pages, "/clients/orders-1")
    librdkafka = text_of(pages, "/clients/a/b")
    cluster.is_away = True
    new = text_of(pages, "/clients/a/b")

    assert "Not asked for (preset producer)" in java  # bytes sent
    assert "Not in its pushes so far" in java  # request latency
    assert 'data-name="average"' in java
    assert "largest: not in its pushes" in java
    assert "No values yet" not in java
    assert "No values yet" in new  # it has pushed once
    assert "gateway.observe" in librdkafka
    assert "Not reported by this library" in librdkafka  # records consumed
    assert "No subscription matches it, so it is told to push nothing." in librdkafka


def test_a_preset_stands_for_its_metrics(
    pages: TestClient, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = SubscriptionRow(
        name="mine",
        metrics=",".join(PRESETS["essential"].metrics),
        interval_ms=10_000,
        match="",
        lease_end_s=None,
    )
    monkeypatch.setattr(cluster, "subscriptions", lambda: [row])

    found = text_of(pages, "/clients/orders-1")

    assert "It is told to push the metrics of the preset essential, every 10s." in found
    assert "<td>mine</td><td>essential</td>" in found


def test_a_client_id_stands_for_its_live_instance(pages: TestClient) -> None:
    assert "QUFBQUFBQUFBQUFBQUFBQQ" in text_of(pages, "/clients/orders-1")


def test_subscriptions_and_why_they_match(pages: TestClient) -> None:
    found = text_of(pages, "/clients/orders-1")

    assert "<code>client_id</code> orders-1 fits <code>orders-.*</code>" in found
    assert "every 10s" in found
    assert "<td>others</td>" not in found


def test_quota_of_the_user_wins_over_that_of_the_client_id(pages: TestClient) -> None:
    found = text_of(pages, "/clients/orders-1")

    assert "<td>user=ANONYMOUS</td><td>all clients of the user</td>" in found
    assert "client-id=orders-1" not in found


def test_a_page_without_the_cluster(pages: TestClient, cluster: FakeCluster) -> None:
    cluster.is_away = True

    found = text_of(pages, "/clients/orders-1")

    assert "The cluster at localhost:9092: no broker answers" in found
    assert found.count("no broker answers") == 1
    assert pages.get("/api/v1/clients/orders-1").json()["subscriptions"] is None


def test_json(pages: TestClient) -> None:
    found = pages.get("/api/v1/clients/orders-1?window=15m").json()

    assert found["client_instance_id"] == "QUFBQUFBQUFBQUFBQUFBQQ"
    assert found["subscriptions"]["metrics"] == [
        "org.apache.kafka.producer.node.",
        "org.apache.kafka.producer.record.",
    ]
    assert found["subscriptions"]["matched"][0]["reasons"] == [
        {"selector": "client_id", "pattern": "orders-.*", "value": "orders-1"}
    ]
    assert found["quotas"] == [
        {"key": "producer_byte_rate", "value": 2000.0, "entity": {"user": "ANONYMOUS"}}
    ]
    sent = next(each for each in found["series"] if each["metric"].endswith(SENT))
    assert (sent["value"], sent["peers"]) == (2.0, 8.0)
    assert len(sent["points"]) > 50


def test_an_infinite_value_is_null_in_json(pages: TestClient) -> None:
    found = pages.get("/api/v1/clients/orders-1").json()

    queue = next(each for each in found["series"] if each["metric"].endswith("queue.time.avg"))
    assert queue["value"] is None
    assert pages.get("/api/v1/clients/orders-1/series").status_code == 200


def test_the_window_is_in_the_url(pages: TestClient) -> None:
    short, long = (
        pages.get(f"/api/v1/clients/orders-1?window={each}").json()["series"][0]["points"]
        for each in ("15m", "2h")
    )

    assert len(short) <= len(long)
    assert 'href="?window=2h&amp;sort=metric#plots"' in text_of(pages, "/clients/orders-1")
    refused = pages.get("/clients/orders-1?window=3h")
    assert refused.status_code == 400
    assert "window must be one of 15m, 2h, 12h" in refused.text


def test_the_table_of_series(pages: TestClient) -> None:
    found = text_of(pages, "/clients/orders-1?window=2h&metric=*.send.*&sort=-value")
    rows = list(csv.DictReader(io.StringIO(text_of(pages, "/clients/orders-1/series.csv?metric=*.send.*"))))

    assert '<input type="hidden" name="window" value="2h">' in found
    assert "/series.csv?window=2h&amp;metric=" in found
    assert [(row["value"], row["peers"]) for row in rows] == [("2.0", "8.0")]
    series = pages.get("/api/v1/clients/orders-1/series?metric=*.send.*").json()
    assert (series["total"], series["series"][0]["kind"]) == (1, "counter")


@pytest.mark.parametrize("path", ["/clients/nobody", "/api/v1/clients/nobody", "/clients/nobody/series.csv"])
def test_an_unknown_client(pages: TestClient, path: str) -> None:
    found = pages.get(path)

    assert found.status_code == 404
    assert "No client nobody has pushed" in found.text


def test_the_runbook_has_each_finding(pages: TestClient) -> None:
    found = text_of(pages, "/runbook")

    assert 'id="slow-produce-requests"' in found
    assert 'id="clock-skew"' in found
    assert "If many clients of the node are slow (slow-broker fires too), look at the broker" in found
    assert "```" not in "".join(text for each in advice().values() for text in each)


ORDER: tuple[dict[str, str | None], ...] = (
    {"user": "a", "client-id": "1"},
    {"user": "a", "client-id": None},
    {"user": "a"},
    {"user": None, "client-id": "1"},
    {"user": None, "client-id": None},
    {"user": None},
    {"client-id": "1"},
    {"client-id": None},
)


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_order_of_quotas(first: int) -> None:
    rows = [
        QuotaRow(entity=tuple(sorted(each.items())), limits=(("producer_byte_rate", float(place)),))
        for place, each in enumerate(ORDER)
    ]
    strangers = [
        QuotaRow(entity=(("user", "b"),), limits=(("producer_byte_rate", 99.0),)),
        QuotaRow(entity=(("client-id", "2"), ("user", "a")), limits=(("producer_byte_rate", 99.0),)),
    ]

    (found,) = applied_quotas([*strangers, *reversed(rows[first:])], "User:a", "1", "10.0.0.1")

    assert found.value == first


def test_each_key_has_its_own_order() -> None:
    rows = [
        QuotaRow(entity=(("user", "a"),), limits=(("producer_byte_rate", 1.0),)),
        QuotaRow(entity=(("client-id", "1"),), limits=(("consumer_byte_rate", 2.0),)),
        QuotaRow(entity=(("ip", None),), limits=(("connection_creation_rate", 3.0),)),
    ]

    found = applied_quotas(rows, "User:a", "1", "10.0.0.1")

    assert [(each.key, each.value, each.shared_by) for each in found] == [
        ("connection_creation_rate", 3.0, "all connections of the address"),
        ("consumer_byte_rate", 2.0, "all clients of the client id"),
        ("producer_byte_rate", 1.0, "all clients of the user"),
    ]
