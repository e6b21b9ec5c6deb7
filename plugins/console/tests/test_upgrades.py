"""What breaks at the next upgrade of Kafka, by what clients send."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from starlette.testclient import TestClient

from odradek_console.view import View
from odradek_console.web.app import make_app
from odradek_console.web.console import make_console
from support.console_client import no_cluster, page_client
from support.delta_clients import gauge, point
from support.watched_clients import WatchedClients, level, ms

OLD: dict[str, Any] = {"client_software_name": "", "client_software_version": "", "observed": True}
JAVA_4: dict[str, Any] = {"client_software_name": "apache-kafka-java", "client_software_version": "4.2.0"}
LIBRDKAFKA: dict[str, Any] = {"client_software_name": "librdkafka", "client_software_version": "2.12.0"}
BINDING: dict[str, Any] = {"client_software_name": "rdkafka-ruby", "client_software_version": "0.1"}


def sent(api: str, version: int, node: int = 1, at: float = 60) -> Metric:
    found = gauge(time=at)
    found.name = "io.odradek.observed.client.api.version"
    found.gauge.data_points.append(point(version, None, at, {"api": api, "node_id": str(node)}))
    return found


@pytest.fixture
def pages() -> TestClient:
    view = View(no_cluster, now_ms=lambda: ms(65))
    clients = WatchedClients(view.fleet)
    for number, (name, metrics, facts) in enumerate(
        [
            ("ancient", [sent("Produce", 2), sent("Produce", 7, node=2), sent("Metadata", 0)], OLD),
            ("edge", [sent("Fetch", 4), sent("JoinGroup", 0)], OLD),
            ("java", [sent("JoinGroup", 9), sent("Fetch", 17)], JAVA_4 | {"observed": True}),
            ("new", [level("producer.connection.count", 1, 60)], LIBRDKAFKA),
            ("who", [level("producer.connection.count", 1, 60)], BINDING),
        ]
    ):
        clients.push(60, *metrics, client_id=name, instance=bytes([number + 1]) * 16, **facts)
    console = make_console(view, no_cluster, "localhost:9092")
    console.now_ms = view.now_ms
    return page_client(make_app(console))


def verdicts(pages: TestClient, kafka: str) -> dict[str, str]:
    rows = pages.get(f"/api/v1/upgrades?kafka={kafka}").json()["upgrades"]
    return {each["client_id"]: each["verdict"] for each in rows}


def test_the_floor_of_kafka_4_is_held_against_what_clients_send(pages: TestClient) -> None:
    assert verdicts(pages, "4.0") == {
        "ancient": "breaks",
        "edge": "served",
        "java": "served",
        "new": "served",
        "who": "not seen",
    }


def test_a_plan_touches_those_that_use_what_changes(pages: TestClient) -> None:
    assert verdicts(pages, "5.0") == {
        "ancient": "breaks",
        "edge": "served",
        "java": "changes",
        "new": "served",
        "who": "not seen",
    }


def test_the_reason_names_api_and_versions(pages: TestClient) -> None:
    rows: list[dict[str, Any]] = pages.get("/api/v1/upgrades?kafka=4.0").json()["upgrades"]

    reasons = {each["client_id"]: each["reasons"] for each in rows}
    assert reasons["ancient"] == ["Produce v2, served from v3 on"]
    assert reasons["who"] == ["nobody observes what it sends"]
    assert rows[0]["client_id"] == "ancient"  # what breaks comes first


def test_the_page_begins_with_the_first_version(pages: TestClient) -> None:
    first, later = (pages.get(f"/upgrades{each}").text for each in ("", "?kafka=5.0"))

    assert "What breaks with Kafka 4.0?" in first
    assert first.count('<td class="verdict"') == 5
    assert "<strong>1</strong> breaks" in first
    assert "What breaks with Kafka 5.0?" in later
    assert "<strong>1</strong> changes" in later
