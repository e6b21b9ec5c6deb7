"""The pages of the console at Apache Kafka, whose clients push to its relay or to a gateway in front."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from http import HTTPStatus
from typing import Any

import httpx2 as httpx
import pytest
from contrib.capture.kafka_node import CLUSTER_ID, kafka_node
from starlette.testclient import TestClient

from integration.java.conftest import TOOLS_VERSION
from integration.java.jvm import Jvm, built_classpath
from odradek.client.admin import AdminClient
from odradek.client.cluster_watch import read_subscriptions
from odradek.client.lease import lease_end_s
from odradek.client.subscriptions import alter_subscription
from odradek_console.view import View, ViewSettings
from odradek_console.web.app import make_app
from odradek_console.web.console import Console, make_console
from support.console_client import operator_access, page_client
from support.consoles import console_site
from support.gateways import gateway_of
from support.kafka_export import TOPIC
from support.waiting import wait_until
from support.working_clients import working_clients

pytestmark = [pytest.mark.java, pytest.mark.timeout(240)]
PATIENCE_S = 90
INTERVAL_MS, WATCHED_MS = 2_000, 1_000
PAGES = ("/", "/?group=gateway", "/subscriptions", "/quotas", "/delivery", "/host", "/runbook")
DOWNLOADS = (
    *("/clients.csv", "/subscriptions.csv", "/quotas.csv", "/subscriptions/edit", "/subscriptions/changes"),
    *("/clients/{instance}", "/clients/{instance}/series.csv", "/clients/{instance}/pushes"),
)
NODE = 1
DIRECT, BEHIND = "at-the-relay", "at-the-gateway"


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Bootstrap servers: a broker with a relay, and a gateway in front of it; a producer pushes to each."""
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
        yield {DIRECT: cluster, BEHIND: gateway.bootstrap}


@pytest.fixture(scope="module")
def bootstrap(addresses: dict[str, str]) -> str:
    """The broker."""
    return addresses[DIRECT]


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


@pytest.fixture(scope="module")
def java_clients(jvm: Jvm, addresses: dict[str, str]) -> dict[str, str]:
    """The client ids of Java producers that have pushed, by their way; they are gone."""
    found = {way: f"java-{way}" for way in addresses}
    for way, client_id in found.items():
        done = jvm.run("odradek.TelemetryProducer", addresses[way], "orders", "1", client_id)
        assert done.status == 0, done.said
    return found


@pytest.fixture(params=[DIRECT, BEHIND])
def site(
    request: pytest.FixtureRequest, addresses: dict[str, str], java_clients: dict[str, str]
) -> Iterator[httpx.Client]:
    """The pages over HTTP, of a console that reads the topic at the broker, or through the gateway."""
    settings = ViewSettings(topic=TOPIC)
    with (
        console_site(addresses[request.param], clients=4, settings=settings) as url,
        httpx.Client(base_url=url, timeout=PATIENCE_S) as found,
    ):
        yield found


def test_every_path_answers_with_java_and_librdkafka_behind(
    site: httpx.Client, java_clients: dict[str, str]
) -> None:
    rows = {row["client_id"]: row for row in site.get("/api/v1/clients").json()["clients"]}
    at_relay, at_gateway = rows[java_clients[DIRECT]], rows[java_clients[BEHIND]]
    instance = at_gateway["client_instance_id"]
    documented = site.get("/api/v1/openapi.json").json()["paths"]
    known = [each for each in documented if "{group}" not in each]  # there is none
    paths = [each.format(instance=instance, topic="orders") for each in (*PAGES, *DOWNLOADS, *known)]

    statuses = {path: site.get(path).status_code for path in paths}
    detail = site.get(f"/api/v1/clients/{instance}").json()

    assert statuses == dict.fromkeys(paths, HTTPStatus.OK)
    assert (at_relay["software"], at_gateway["software"]) == ("apache-kafka-java", "apache-kafka-java")
    assert (at_relay["source"], at_relay["gateway"], at_relay["node_id"]) == ("relay", "", NODE)
    assert (at_gateway["gateway"], at_gateway["cluster_id"]) == ("edge", CLUSTER_ID)
    assert any(each["metric"].startswith("org.apache.kafka.producer.") for each in detail["series"])
    assert [each["name"] for each in detail["subscriptions"]["matched"]] == ["all"]


def test_a_subscription_is_set_by_the_forms_and_taken_back(site: httpx.Client, bootstrap: str) -> None:
    wanted = {"name": "narrow", "metrics": "org.apache.kafka.none.", "interval.ms": "1000", "match": ""}
    tried = site.get("/subscriptions/edit", params=wanted).text
    token = re.search(r'name="csrf" value="([^"]+)"', tried)
    assert token is not None, tried
    headers = {"Origin": str(site.base_url).rstrip("/")}

    def send(act: str, fields: dict[str, str]) -> int:
        form = fields | {"csrf": token[1]}
        return site.post(f"/subscriptions/{act}", data=form, headers=headers).status_code

    with AdminClient(bootstrap) as admin:
        saved = send("save", wanted)
        wait_until(lambda: "narrow" in read_subscriptions(admin), "the subscription", PATIENCE_S)
        deleted = send("delete", {"name": "narrow"})
        wait_until(lambda: "narrow" not in read_subscriptions(admin), "its end", PATIENCE_S)

    assert (saved, deleted) == (HTTPStatus.SEE_OTHER, HTTPStatus.SEE_OTHER)
