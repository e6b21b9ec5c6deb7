"""Why a client is slow: the parts of its requests, beside its peers and its past."""

from __future__ import annotations

import math
from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from starlette.testclient import TestClient

from odradek_console.reading.older_points import Older, OlderPoints
from odradek_console.reading.tables_settings import TablesSettings
from odradek_console.rows import SeriesRow
from odradek_console.view import View
from odradek_console.web.app import make_app
from odradek_console.web.console import Console, make_console
from support.console_client import no_cluster, operator_access, page_client
from support.watched_clients import WatchedClients, level, ms

A, B, C, SEEN = b"A" * 16, b"B" * 16, b"C" * 16, b"S" * 16
QUEUE, THROTTLE = "producer.record.queue.time.avg", "producer.produce.throttle.time.avg"
REQUEST, FETCH = "producer.node.request.latency.avg", "consumer.fetch.manager.fetch.latency.avg"
BETWEEN, IDLE = "consumer.time.between.poll.avg", "consumer.poll.idle.ratio.avg"
LIBRDKAFKA: dict[str, Any] = {"client_software_name": "librdkafka", "client_software_version": "2.12.0"}
FRANZ_GO: dict[str, Any] = {"client_software_name": "kgo", "client_software_version": "v1.20.0"}
OTHER: dict[str, Any] = {"client_software_name": "aiokafka", "client_software_version": "0.14.0"}
NOW_S = 7_205


class Scene:
    """Clients that push every minute for two hours, and a console."""

    def __init__(self) -> None:
        view = View(no_cluster, now_ms=lambda: ms(NOW_S))
        self.clients = WatchedClients(view.fleet)
        self.console: Console = make_console(view, no_cluster, "localhost:9092", operator_access())
        self.console.now_ms = view.now_ms

    def push(self, values: dict[str, float], *, instance: bytes = A, late: dict[str, float] | None = None,
             **facts: Any) -> None:  # fmt: skip
        for at in range(60, 7_201, 60):
            now = values | (late or {}) if at > 6_600 else values
            self.clients.push(at, *metrics(now, at), instance=instance, **facts)

    def why(self, name: str = "orders-1") -> dict[str, Any]:
        found: dict[str, Any] = self.pages().get(f"/api/v1/clients/{name}/why").json()
        return found

    def pages(self) -> TestClient:
        return page_client(make_app(self.console))


def metrics(values: dict[str, float], at: float) -> list[Metric]:
    return [
        level(name, value, at, **({"node_id": "node-1"} if ".node." in name else {}))
        for name, value in values.items()
    ]


def parts(found: dict[str, Any], what: str = "value_ms") -> dict[str, float | None]:
    return {each["id"]: each[what] for each in found["steps"]}


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_the_network_is_between_what_the_client_and_the_gateway_see(scene: Scene) -> None:
    scene.push({QUEUE: 3, THROTTLE: 0, REQUEST: 120})
    scene.push({REQUEST: 20}, instance=SEEN, observed=True)

    found = scene.why()

    assert parts(found) == {"queue": 3, "throttle": 0, "network": 100, "broker": 20}


@pytest.mark.parametrize(
    ("facts", "told"),
    [({}, {"request": 120}), ({"observed": True} | OTHER, {"broker": 120})],
    ids=["pushed", "observed"],
)
def test_one_teller_leaves_what_it_cannot_tell_apart_together(
    scene: Scene, facts: dict[str, Any], told: dict[str, float]
) -> None:
    scene.push({REQUEST: 120}, **facts)

    assert parts(scene.why()) == told


def test_what_takes_longer_than_at_the_peers_is_the_verdict(scene: Scene) -> None:
    for number, instance in enumerate((B, C)):
        scene.push({QUEUE: 2, REQUEST: 10 + number}, instance=instance, client_id=f"orders-{number + 2}")
    scene.push({QUEUE: 900, REQUEST: 11})

    found = scene.why()

    assert parts(found, "peers_ms") == {"queue": 2, "request": 10.5}
    assert found["peers"] == "2 clients of the application orders"
    assert found["verdict"].startswith("Queue: 900 ms, where its peers have 2 ms")


def test_without_an_application_the_library_is_compared(scene: Scene) -> None:
    scene.push({REQUEST: 10}, instance=B, client_id="stock", client_address="10.0.0.9")
    scene.push({REQUEST: 11})

    assert scene.why()["peers"] == "1 client of the library apache-kafka-java 4.3.0"


def test_what_takes_longer_than_usual_is_the_verdict(scene: Scene) -> None:
    scene.push({QUEUE: 2, REQUEST: 8}, late={REQUEST: 400})

    found = scene.why()

    assert (parts(found)["request"], parts(found, "usual_ms")["request"]) == (400, 8)
    assert found["past_ms"] > 6_000_000
    assert found["verdict"].startswith("Network and broker: 400 ms, where it usually has 8 ms")


def test_the_application_of_a_consumer_is_the_time_outside_poll(scene: Scene) -> None:
    scene.push({BETWEEN: 2_000, IDLE: 0.25, FETCH: 30}, group_id="billing")

    found = scene.why()

    assert parts(found) == {"poll": 1_500, "request": 30}
    assert "The longest is: poll, 1.5 s" in found["verdict"]


def test_what_a_library_does_not_report_is_told_apart_from_what_is_not_pushed(scene: Scene) -> None:
    scene.push({IDLE: 0.1}, client_id="librdkafka-1", **LIBRDKAFKA)
    scene.push({REQUEST: 9}, client_id="franz-1", instance=B, **FRANZ_GO)
    scene.push({QUEUE: 9}, client_id="java-1", instance=C)

    of_librdkafka, franz, java = (scene.why(each) for each in ("librdkafka-1", "franz-1", "java-1"))

    assert "org.apache.kafka." + BETWEEN in of_librdkafka["not_reported"]
    assert "org.apache.kafka." + FETCH in of_librdkafka["missing"]
    assert {"org.apache.kafka." + each for each in (QUEUE, THROTTLE)} <= set(franz["not_reported"])
    assert franz["missing"] == []
    assert "org.apache.kafka." + THROTTLE in java["missing"]
    assert java["missing_series"] == 2


def test_values_that_are_no_time_do_not_count(scene: Scene) -> None:
    for at in (7_140, 7_200):
        bootstrap = level(REQUEST, 5_000, at, node_id="node--1")
        coordinator = level(REQUEST, 9_000, at, node_id="node-2147483646")
        scene.clients.push(at, level(QUEUE, math.inf, at), bootstrap, coordinator, level(THROTTLE, 1, at))

    assert parts(scene.why()) == {"throttle": 1}


def test_its_week_comes_from_the_tables(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.push({REQUEST: 400}, late={REQUEST: 400})
    row = SeriesRow(
        metric="org.apache.kafka." + REQUEST,
        labels=(("node_id", "node-1"),),
        kind="gauge",
        source="tables",
        unit="ms",
        help="",
        value=7.0,
        peers=None,
        points=tuple((ms(-600_000 + 1_000 * each), 7.0) for each in range(600)),
    )
    tables = OlderPoints(TablesSettings(path=None))  # type: ignore[arg-type]
    monkeypatch.setattr(tables, "ask", lambda wanted: Older(series=(row,), step_ms=1_000))
    scene.console.tables = tables

    found = scene.why()

    assert parts(found, "usual_ms") == {"request": 7}
    assert found["past_ms"] > 600_000_000


def test_the_page_shows_it_and_offers_a_watch_of_what_is_missing(scene: Scene) -> None:
    scene.push({QUEUE: 900, REQUEST: 11})
    pages = scene.pages()

    shown = pages.get("/clients/orders-1/why").text

    assert "Why is orders-1 slow?" in shown
    assert '<rect x="0.0%" width="98.8%"' in shown
    assert "1 series more, with a push every 5 s, for 10 minutes" in shown
    assert f'value="org.apache.kafka.{THROTTLE}"' in shown
    assert "style=" not in shown
    assert 'href="/clients/QUFBQUFBQUFBQUFBQUFBQQ/why"' in pages.get("/clients/orders-1").text


def test_a_client_of_which_nobody_tells(scene: Scene) -> None:
    scene.push({"producer.connection.count": 1})

    assert "Nobody tells where its time goes" in scene.pages().get("/clients/orders-1/why").text
    assert scene.pages().get("/clients/nobody/why").status_code == 404


def test_no_cluster_is_no_error(scene: Scene) -> None:
    scene.push({QUEUE: 1})

    assert scene.pages().get("/clients/orders-1/why").status_code == 200
