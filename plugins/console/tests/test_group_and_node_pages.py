"""The pages of groups and of nodes, without a cluster."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from starlette.testclient import TestClient

from odradek.lag.group_lag import GroupLag, Owner, PartitionLag, TopicLag
from odradek.lag.report import group_points, payloads
from odradek.lag.standing import Ends, standing
from odradek.plugin import LAG_SOURCE, ClientTelemetryPayload
from odradek_console.view import View
from odradek_console.web.app import make_app
from odradek_console.web.console import make_console
from support.console_client import no_cluster, page_client
from support.watched_clients import WatchedClients, level, ms, total

LATENCY = "node.request.latency.avg"
REBALANCED = "consumer.coordinator.rebalance.latency.total"


@pytest.fixture
def view() -> View:
    """Two consumers of a group, one of them slow at a broker, and a member that nobody knows."""
    view = View(no_cluster, now_ms=lambda: ms(185))
    clients = WatchedClients(view.fleet)
    for at in (60, 120, 180):
        for number, latency in enumerate((5, 4000)):
            clients.push(
                at,
                level(f"consumer.{LATENCY}", latency, at, node_id="node-2"),
                level(f"consumer.{LATENCY}", 3, at, node_id="node-2147483646"),
                total(REBALANCED, 250, at, at - 60),
                instance=bytes([number + 1]) * 16,
                client_id=f"billing-{number}",
                client_address=f"10.0.0.{number}",
                group_id="billing",
            )
    lags = [PartitionLag(index, 90, standing(90, Ends(0, 100 + index, 100)), 1_500) for index in range(3)]
    owners = {index: Owner(f"m{index}", f"billing-{index}", f"10.0.0.{index}") for index in range(3)}
    topic = TopicLag(partitions=lags, assigned=3, owners=owners)
    group = GroupLag(group="billing", type="classic", state="Stable", members=3, topics={"orders": topic})
    for data in payloads(group_points(group), ms(180), "east"):
        record = clients.record(180)
        record.source, record.payload = LAG_SOURCE, ClientTelemetryPayload(b"G" * 16, False, data)
        view.fleet.add(record)
    view.fleet.lags.read(ms(185))
    return view


@pytest.fixture
def pages(view: View) -> TestClient:
    console = make_console(view, no_cluster, "localhost:9092")
    console.now_ms = view.now_ms
    return page_client(make_app(console))


def test_a_group_has_its_clients_and_its_lag(pages: TestClient) -> None:
    (row,) = pages.get("/api/v1/groups").json()["groups"]

    facts = row["group_id"], row["type"], row["state"], row["members"], row["live"]
    assert facts == ("billing", "classic", "Stable", 3, 2)
    assert (row["lag"], row["lag_s"], row["rebalance_ms"]) == (33, 1.5, 1500)


def test_a_group_shows_members_assignment_and_partitions(pages: TestClient) -> None:
    found = pages.get("/api/v1/groups/billing").json()
    shown = pages.get("/groups/billing").text

    assert [(each["client_id"], each["state"], each["partitions"]) for each in found["members_in_full"]] == [
        ("billing-0", "live", ["orders-0"]),
        ("billing-1", "live", ["orders-1"]),
        ("billing-2", "unknown", ["orders-2"]),
    ]
    assert [(each["partition"], each["lag"], each["member"]) for each in found["partitions"]] == [
        (0, 10, "billing-0"),
        (1, 11, "billing-1"),
        (2, 12, "billing-2"),
    ]
    assert "33 records, 1.5 s behind" in shown
    assert shown.count('<a href="/clients/') == 2


def test_a_group_that_only_clients_tell_is_told_from_one_that_is_measured(
    view: View, pages: TestClient
) -> None:
    view.fleet.lags.forget(b"G" * 16)

    shown = pages.get("/groups").text

    assert "The lag of groups is not measured" in shown
    assert "not measured" in pages.get("/groups/billing").text


def test_a_node_shows_who_suffers_on_it(pages: TestClient) -> None:
    rows = pages.get("/api/v1/nodes").json()["nodes"]
    clients = pages.get("/api/v1/sufferers?node=2").json()["sufferers"]

    assert [(row["node"], row["clients"], row["slow"], row["median_ms"]) for row in rows] == [
        ("2", 2, 1, 2002.5)
    ]
    assert [(each["client_id"], each["average_ms"]) for each in clients] == [
        ("billing-1", 4000),
        ("billing-0", 5),
    ]
    assert "2, 1 of them above 1 s on average" in pages.get("/nodes/2").text


@pytest.mark.parametrize("path", ["/groups/nobody", "/nodes/99", "/api/v1/groups/nobody"])
def test_what_nobody_tells_of_is_missing(pages: TestClient, path: str) -> None:
    assert pages.get(path).status_code == HTTPStatus.NOT_FOUND


def test_the_first_page_ranks_and_groups(pages: TestClient) -> None:
    first = pages.get("/").text
    (group,) = pages.get("/api/v1/clients?group=group_id").json()["groups"]
    sorted_by_lag = pages.get("/api/v1/clients?sort=-lag").json()["clients"]

    assert "1.5 s*" in first
    assert 'role="img"' in first
    assert (group["rows"], group["live"], group["gone"], group["lag"]) == (2, 2, 0, 21)
    assert [each["client_id"] for each in sorted_by_lag] == ["billing-1", "billing-0"]


def test_pages_lead_to_grafana(view: View) -> None:
    console = make_console(view, no_cluster, "localhost:9092")
    console.now_ms, console.grafana = view.now_ms, "https://grafana.example"
    pages = page_client(make_app(console))

    client = pages.get("/clients/billing-1").text
    assert (
        "https://grafana.example/d/odradek-client?var-client_id=billing-1&amp;var-client_instance_id="
        in client
    )
    assert "https://grafana.example/d/odradek-groups?var-group=billing" in pages.get("/groups/billing").text


def test_the_first_page_without_a_client_leads_to_groups(pages: TestClient) -> None:
    console = make_console(View(no_cluster, now_ms=lambda: ms(185)), no_cluster, "localhost:9092")
    nobody = '<a href="/groups">Groups</a> tells who is behind'

    assert nobody in page_client(make_app(console)).get("/").text
    assert nobody not in pages.get("/").text
