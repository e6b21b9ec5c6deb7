"""The pages of the console at Apache Kafka, whose clients push to its relay or to a gateway in front."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from http import HTTPStatus
from typing import Any

import pytest
from contrib.capture.kafka_node import kafka_node
from starlette.testclient import TestClient

from integration.java.conftest import TOOLS_VERSION
from integration.java.jvm import built_classpath
from odradek.client.admin import AdminClient
from odradek.client.cluster_watch import read_subscriptions
from odradek.client.subscriptions import alter_subscription
from odradek.plugin.lease import lease_end_s
from odradek_console.view import View, ViewSettings
from odradek_console.web.app import make_app
from odradek_console.web.console import Console, make_console
from support.console_client import operator_access, page_client
from support.gateways import gateway_of
from support.kafka_export import TOPIC
from support.waiting import wait_until
from support.working_clients import working_clients

pytestmark = [pytest.mark.java, pytest.mark.timeout(240)]
PATIENCE_S = 90
INTERVAL_MS, WATCHED_MS = 2_000, 1_000
PAGES = ("/", "/?group=gateway", "/subscriptions", "/quotas", "/delivery", "/host", "/runbook")
DIRECT, BEHIND = "at-the-relay", "at-the-gateway"


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with a relay, a gateway in front of it, and a producer at each, which pushes."""
    overrides = ["telemetry.max.bytes=1048576"]
    jars = [built_classpath("--relay")]
    with ExitStack() as running:
        enter = running.enter_context
        node = enter(kafka_node("odradek.relay.TelemetryExporter", overrides, TOOLS_VERSION, jars=jars))
        cluster = f"127.0.0.1:{node.port}"
        with AdminClient(cluster) as admin:
            alter_subscription(admin, "all", {"metrics": "*", "interval.ms": str(INTERVAL_MS)})
        settings = (
            "gateway.name=edge",
            "gateway.nodes=1",
            "gateway.subscriptions.interval.ms=300",
            f"plugins.kafka.bootstrap.servers={cluster}",
            f"plugins.kafka.topic={TOPIC}",
        )
        gateway = enter(gateway_of(cluster, tmp_path_factory.mktemp("gateway"), *settings))
        enter(working_clients(cluster, "orders", producers=[DIRECT]))
        enter(working_clients(gateway.bootstrap, "orders", producers=[BEHIND]))
        yield cluster


@pytest.fixture(scope="module")
def console(bootstrap: str) -> Iterator[Console]:
    """A console that knows both clients."""
    view = View(lambda: AdminClient(bootstrap), ViewSettings(topic=TOPIC))
    with make_console(view, view.reader.connect, bootstrap, operator_access()) as found:
        both = {DIRECT, BEHIND}
        wait_until(lambda: {row.client_id for row in view.clients()} == both, view.reading, PATIENCE_S)
        yield found


@pytest.fixture
def browser(console: Console) -> Iterator[TestClient]:
    with page_client(make_app(console)) as client:
        yield client


def client(browser: TestClient, name: str) -> dict[str, Any]:
    found: dict[str, Any] = browser.get(f"/api/v1/clients/{name}").json()
    return found


def leases(bootstrap: str) -> dict[str, dict[str, str]]:
    with AdminClient(bootstrap) as admin:
        found = read_subscriptions(admin)
    return {name: properties for name, properties in found.items() if lease_end_s(name) is not None}


@pytest.mark.parametrize("path", [*PAGES, f"/clients/{DIRECT}", f"/clients/{BEHIND}"])
def test_a_page(browser: TestClient, path: str) -> None:
    answer = browser.get(path)

    assert answer.status_code == HTTPStatus.OK
    assert "is not being read" not in answer.text
    assert "The cluster at" not in answer.text


def test_the_ways_of_the_clients_are_told(browser: TestClient) -> None:
    direct, behind = client(browser, DIRECT), client(browser, BEHIND)

    assert (direct["source"], direct["gateway"]) == ("relay", "")
    assert behind["gateway"] == "edge"
    assert direct["cluster_id"] == behind["cluster_id"]
    assert {each["state"] for each in (direct, behind)} == {"live"}


@pytest.mark.parametrize("name", [DIRECT, BEHIND])
def test_a_client_is_watched_and_left(
    bootstrap: str, console: Console, browser: TestClient, name: str
) -> None:
    def interval_ms() -> int:
        (row,) = console.view.clients(lambda row: row.client_id == name)
        return row.interval_ms

    begin = browser.post(f"/clients/{name}/watch", data={"seconds": "1"})
    ((lease, properties),) = leases(bootstrap).items()
    wait_until(lambda: interval_ms() == WATCHED_MS, interval_ms, PATIENCE_S)
    browser.post(f"/clients/{name}/watch/end", data={"name": lease})
    wait_until(lambda: interval_ms() == INTERVAL_MS, interval_ms, PATIENCE_S)

    assert "Stop watching" in begin.text
    assert properties["interval.ms"] == str(WATCHED_MS)
    wait_until(lambda: leases(bootstrap) == {}, lambda: leases(bootstrap), PATIENCE_S)
