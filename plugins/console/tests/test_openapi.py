"""The document of the API, held against the routes and their answers."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest
from starlette.routing import Route
from starlette.testclient import TestClient

from odradek.client.admin import AdminClient
from odradek_console.cluster_rows import (
    BrokerRow,
    ConfigRow,
    DeadLetterRow,
    DeliveryRow,
    QuotaRow,
    SubscriptionRow,
    TopicListing,
)
from odradek_console.engine.client_entry import Places
from odradek_console.program_rows import DestinationRow
from odradek_console.reading.cluster_view import ClusterView
from odradek_console.reading.programs import Programs
from odradek_console.reading.push_points import decoded_push
from odradek_console.reading.pushes import Pushes, PushRow
from odradek_console.view import View
from odradek_console.web.app import make_app
from odradek_console.web.console import Console, make_console
from odradek_console.web.openapi import PATH
from support.console_client import operator_access, page_client
from support.delta_clients import metrics_data
from support.json_schema import misfits
from support.watched_clients import WatchedClients, level, ms, total

REFUSED = {"sort": "nothing"}


def named(path: str) -> str:
    """A path of the document with names of what there is."""
    names = {"instance": "orders-1", "group": "billing", "topic": "orders"}
    return path.format_map(names)


def nowhere() -> AdminClient:
    raise AssertionError("the cluster is not asked")


class FilledCluster(ClusterView):
    """A cluster with a row of each kind."""

    def kept(self, name: str, ask: Any, kept_s: float | None = None) -> Any:
        rows: dict[str, list[Any]] = {
            "subscriptions": [
                SubscriptionRow(name="a", metrics="*", interval_ms=None, match="", lease_end_s=None),
                SubscriptionRow(
                    name="b",
                    metrics="b.",
                    interval_ms=5_000,
                    match="client_id=x",
                    lease_end_s=1_000_000_300,
                ),
            ],
            "quotas": [
                QuotaRow(entity=(("client-id", None), ("user", "ann")), limits=(("request_percentage", 5.0),))
            ],
            "delivery": [DeliveryRow(name="otlp", group_id="g", partitions=1, lag_records=2)],
            "dead letters": [
                DeadLetterRow(
                    partition=0,
                    offset=1,
                    time_ms=ms(5),
                    client_id="orders-1",
                    client_instance_id="AQ",
                    forwarder="otlp",
                    reason="HTTP 400",
                    origin_partition=0,
                    origin_offset=7,
                    payload_bytes=3,
                )
            ],
            "topics": [TopicListing(name="orders", partitions=1, last_ms=ms(5))],
            "brokers": [BrokerRow(node_id=1, host="127.0.0.1", port=9092, is_controller=True)],
            "configs": [ConfigRow(resource="broker 1", name="telemetry.x", value=None, source="DEFAULT")],
        }
        return rows[name]

    def pushes(self, places: Places, key: str) -> Pushes:
        decoded = decoded_push(metrics_data([level("x", 1, 60, topic="a")], {"app": "x"}).SerializeToString())
        push = PushRow(
            partition=places.partition,
            offset=places.offsets[-1],
            received_ms=ms(60),
            size=100,
            codec="zstd",
            error="",
            terminating=False,
            interval_ms=60_000,
            subscription_id=1,
            api_version=0,
            address="127.0.0.1",
            port=40_000,
            node_id=1,
            decoded=decoded,
        )
        return Pushes(pushes=(push,), notes=("note",))


@pytest.fixture
def console() -> Console:
    view = View(nowhere, now_ms=lambda: ms(100))
    clients = WatchedClients(view.fleet)
    for second in (10, 60):
        clients.push(
            second,
            total("producer.record.send.total", 5.0, second, second - 10),
            level("producer.request.latency.avg", 9.0, second),
            level("producer.node.request.latency.avg", 9.0, second, node_id="1"),
            group_id="billing",
        )
    access = operator_access(requests_per_second=1_000)  # each parameter of each path
    found = make_console(view, nowhere, "localhost:9092", access)
    found.programs = Programs(["http://127.0.0.1:9"])
    found.programs.programs[0].destinations["otlp"] = DestinationRow(
        program="http://127.0.0.1:9",
        name="east",
        destination="otlp",
        health="lost",
        still_s=60.0,
        error="Retry: refused",
        waiting=1.0,
        per_s=None,
        done_s=None,
        delivered=2.0,
        given_up=0.0,
    )
    found.now_ms = view.now_ms
    found.cluster = FilledCluster(nowhere, "t")
    found.history.observe({}, ms(10))
    found.history.observe({"a": {"metrics": "*"}}, ms(20))
    return found


@pytest.fixture
def browser(console: Console) -> Iterator[TestClient]:
    with page_client(make_app(console)) as client:
        yield client


@pytest.fixture
def document(browser: TestClient) -> dict[str, Any]:
    found: dict[str, Any] = browser.get(PATH).json()
    return found


def test_the_document_is_valid(document: dict[str, Any]) -> None:
    from openapi_spec_validator import validate  # here: its import takes seconds

    validate(document)


def test_each_route_of_the_api_is_described(console: Console, document: dict[str, Any]) -> None:
    routes = [each for each in make_app(console).routes if isinstance(each, Route)]
    paths = {each.path.replace(":path", "") for each in routes if each.path.startswith("/api/v1/")}

    assert set(document["paths"]) == paths - {PATH}


def test_each_answer_fits_its_schema(browser: TestClient, document: dict[str, Any]) -> None:
    for path, methods in document["paths"].items():
        answer = browser.get(named(path))

        assert answer.status_code == HTTPStatus.OK, path
        good = methods["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        assert misfits(answer.json(), good) == [], path
        if (
            "total" in answer.json() and path != "/api/v1/causes"
        ):  # one client has nothing in common with others
            assert answer.json()["total"] > 0, path


def test_each_parameter_is_taken_and_others_are_refused(
    browser: TestClient, document: dict[str, Any]
) -> None:
    values = {"integer": "1", "string": "x"}
    for path, methods in document["paths"].items():
        queries = [each for each in methods["get"].get("parameters", ()) if each["in"] == "query"]
        for each in queries:
            value = each["schema"].get("enum", [values[each["schema"]["type"]]])[0]
            answer = browser.get(named(path), params={each["name"]: value})
            assert answer.status_code == HTTPStatus.OK, (path, each["name"])
        if any(each["name"] == "sort" for each in queries):
            refused = browser.get(named(path), params=REFUSED)
            assert refused.status_code == HTTPStatus.BAD_REQUEST
            schema = document["components"]["schemas"]["Error"]
            assert misfits(refused.json(), schema) == []
